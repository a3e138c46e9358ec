"""Subscriptions and their deliveries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, NotRequired, TypedDict
from urllib.parse import urlsplit

import msgspec
from msgspec import UNSET, Meta, UnsetType

from trunkline.api.resources.common import JsonValue, NextCursor, Timestamp, time_or_none
from trunkline.clock import rfc3339
from trunkline.jsontypes import decode
from trunkline.services.subscriptions.definition import (
    MAX_LABELS,
    MAX_RECIPIENTS,
    MAX_SECRETS,
    MAX_TEMPLATE,
    MAX_URL,
    NAME_PATTERN,
    ChangeType,
    DeliveryFormat,
    subscription_from_canonical,
)
from trunkline.stores.port.automation.subscriptions import Delivery, DeliveryStatus, SubscriptionRecord

SubscriptionStatus = Literal["active", "failing", "paused", "disabled"]

_TYPES = Meta(description="The changes that are reported.", examples=[["run.failed"]])
_WORKFLOW = Meta(description="Report only changes of runs of this workflow.")
_LABEL = Meta(
    description=f"Report only changes of runs with this label, as `key:value`. A list of up to {MAX_LABELS}: runs "
    "with all of them."
)
_SECRET = Meta(
    description=f"Name of the secret that signs the deliveries, or up to {MAX_SECRETS} names during a rotation: each "
    "delivery then has a signature for each."
)

_LINKS = Meta(
    description="Whether questions come with a link for each assignee, in a CloudEvent in `data.links`. Everyone who "
    "can read the delivery can then answer in their names. It needs the setting `public_url`."
)
_MAIL = Meta(
    description=f"Up to {MAX_RECIPIENTS} addresses that get a mail for each change. `assignees` stands for the people "
    "whose answer a question waits for: each gets a mail with a link of their own. It needs the setting `mail`."
)
_FORMAT = Meta(
    description="What is sent to `url`: the CloudEvent, or a message for an incoming webhook of Slack or "
    "Microsoft Teams."
)
_TEMPLATE = Meta(
    description="Text of messages and mails. Strings in `${ … }` are expressions over `event`, the CloudEvent. Without "
    "it, and for an event that it does not fit, the text says what has changed.",
    examples=["${ event.data.workflow } failed: ${ event.data.error.message }"],
)


class SubscriptionRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    kind: Literal["subscription"] | UnsetType = UNSET
    schema_: Annotated[str, Meta(description="Ignored. For editors.")] | UnsetType = msgspec.field(
        name="$schema", default=UNSET
    )
    name: Annotated[str, Meta(extra_json_schema={"pattern": NAME_PATTERN})]
    description: Annotated[str, Meta(min_length=1)] | UnsetType = UNSET
    url: (
        Annotated[
            str,
            Meta(
                description="Where deliveries are sent. Either this or `mail`.",
                max_length=MAX_URL,
                examples=["https://example.com/hooks"],
            ),
        ]
        | UnsetType
    ) = UNSET
    mail: Annotated[str | list[str], _MAIL] | UnsetType = UNSET
    format: Annotated[DeliveryFormat, _FORMAT] = "cloudevents"
    template: Annotated[str, _TEMPLATE, Meta(max_length=MAX_TEMPLATE)] | UnsetType = UNSET
    types: Annotated[list[ChangeType], _TYPES, Meta(min_length=1)]
    workflow: Annotated[str, _WORKFLOW] | UnsetType = UNSET
    label: Annotated[str | list[str], _LABEL] | UnsetType = UNSET
    secret: Annotated[str | list[str], _SECRET] | UnsetType = UNSET
    answer_links: Annotated[bool, _LINKS] = False
    enabled: Annotated[bool, Meta(description="False if the subscription is paused.")] = True


class SubscriptionResource(TypedDict):
    id: str
    name: str
    description: NotRequired[str]
    url: Annotated[
        str | None,
        Meta(description="For viewers without its path, because the address alone can be a secret."),
    ]
    mail: Annotated[Sequence[str], _MAIL]
    format: Annotated[DeliveryFormat, _FORMAT]
    template: NotRequired[Annotated[str, _TEMPLATE]]
    types: Annotated[Sequence[ChangeType], _TYPES]
    workflow: Annotated[str | None, _WORKFLOW]
    label: Annotated[Sequence[str], Meta(description="Labels that a run must have, as `key:value`.")]
    secret: Annotated[Sequence[str], Meta(description="Names of secrets.")]
    answer_links: Annotated[bool, _LINKS]
    enabled: bool
    status: Annotated[
        SubscriptionStatus,
        Meta(
            description="`failing`: the last attempt failed, and deliveries are tried again. `disabled`: every attempt "
            "of the last 24 hours failed. In both cases, and while it is `paused`, deliveries wait for up to 24 hours."
        ),
    ]
    failing_since: Timestamp | None
    error: Annotated[str | None, Meta(description="Why the last attempt failed.")]
    disabled_at: Timestamp | None
    created_at: Timestamp
    updated_at: Timestamp


class SubscriptionPage(TypedDict):
    items: list[SubscriptionResource]
    next_cursor: NextCursor


class DeliveryResource(TypedDict):
    """An entry of the history of a subscription."""

    id: str
    event_id: Annotated[
        str,
        Meta(description="The event's id, also sent as `webhook-id`. It stays the same in every attempt."),
    ]
    type: Annotated[str, Meta(description="The event's type.")]
    run_id: str | None
    status: Annotated[
        DeliveryStatus,
        Meta(
            description="`pending`: not accepted yet. `failed`: given up after 24 hours, or a test that failed."
        ),
    ]
    attempts: int
    created_at: Timestamp
    attempted_at: Annotated[Timestamp | None, Meta(description="When it was last sent.")]
    error: Annotated[str | None, Meta(description="Why the last attempt failed.")]
    event: Annotated[JsonValue, Meta(description="The CloudEvent.")]


class DeliveryPage(TypedDict):
    items: list[DeliveryResource]
    next_cursor: NextCursor


def subscription_resource(record: SubscriptionRecord, *, is_viewer: bool) -> SubscriptionResource:
    definition = subscription_from_canonical(record.definition)
    resource: SubscriptionResource = {
        "id": record.id,
        "name": record.name,
        "url": _without_path(definition.url) if is_viewer and definition.url is not None else definition.url,
        "mail": definition.mail,
        "format": definition.format,
        "types": definition.types,
        "workflow": definition.workflow,
        "label": [f"{key}:{value}" for key, value in definition.labels],
        "secret": definition.secrets,
        "answer_links": definition.answer_links,
        "enabled": definition.enabled,
        "status": _status(record, is_enabled=definition.enabled),
        "failing_since": time_or_none(record.failing_since),
        "error": record.error,
        "disabled_at": time_or_none(record.disabled_at),
        "created_at": rfc3339(record.created_at),
        "updated_at": rfc3339(record.updated_at),
    }
    if definition.description is not None:
        resource["description"] = definition.description
    if definition.template is not None:
        resource["template"] = definition.template
    return resource


def _without_path(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}/…"


def _status(record: SubscriptionRecord, *, is_enabled: bool) -> SubscriptionStatus:
    if not is_enabled:
        return "paused"
    if record.disabled_at is not None:
        return "disabled"
    return "active" if record.failing_since is None else "failing"


def delivery_resource(delivery: Delivery) -> DeliveryResource:
    return {
        "id": delivery.id,
        "event_id": delivery.event_id,
        "type": delivery.type,
        "run_id": delivery.run_id,
        "status": delivery.status,
        "attempts": delivery.attempts,
        "created_at": rfc3339(delivery.created_at),
        "attempted_at": time_or_none(delivery.attempted_at),
        "error": delivery.error,
        "event": decode(delivery.event),
    }
