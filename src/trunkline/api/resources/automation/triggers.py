"""Triggers and their firings."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Literal, NotRequired, TypedDict, cast

import msgspec
from msgspec import UNSET, Meta, UnsetType

from trunkline.api.resources.common import JsonValue, NextCursor, Timestamp, time_or_none
from trunkline.clock import Instant, rfc3339
from trunkline.durations import DURATION_PATTERN, format_duration
from trunkline.jsontypes import Json, decode, encode
from trunkline.services.triggers.triggers import (
    MAX_BACKFILLED,
    MAX_UPCOMING_FIRINGS,
    MAX_UPCOMING_TRIGGERS,
    BackfilledRun,
    UpcomingFirings,
)
from trunkline.stores.port.automation.triggers import Firing, FiringOutcome, TriggerRecord
from trunkline.triggers import (
    CatchUp,
    EndStatus,
    EventDefinition,
    Overlap,
    RunEndDefinition,
    ScheduleDefinition,
    WebhookDefinition,
    definition_from_canonical,
)
from trunkline.triggers.cron import MAX_CHARACTERS
from trunkline.triggers.definition import DEFAULT_BODY_BYTES, Respond
from trunkline.triggers.signatures import Scheme
from trunkline.triggers.validate import MAX_TIMES, NAME_PATTERN
from trunkline.triggers.validate_listening import MAX_TYPES
from trunkline.triggers.validate_webhook import MAX_BODY_BYTES
from trunkline.workflow import write_yaml
from trunkline.workflow.flow_control.definition import FlowControl, OnLimit
from trunkline.workflow.flow_control.reader import MAX_LIMIT, MAX_PRIORITY

_Duration = Annotated[str, Meta(examples=["15m"], extra_json_schema={"pattern": DURATION_PATTERN})]
_Cron = Annotated[
    str,
    Meta(
        description="Five fields, or six with seconds first. Names, `L` and `#` are allowed.",
        max_length=MAX_CHARACTERS,
        examples=["0 9 * * MON-FRI"],
    ),
]
_ZONE = Meta(description="Time zone of `cron` and of times without an offset, such as `Europe/Berlin`.")
_OVERLAP = Meta(description="What happens to a firing if the run of an earlier one has not ended.")
_CATCH_UP = Meta(
    description="Which of the firings that were missed while no executor was running still start."
)
_WINDOW = Meta(description="Maximum age of a missed firing that still starts.")
_JITTER = Meta(description="Each firing starts up to this much later than scheduled.")


# --- requests


class ScheduleRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Exactly one of `cron`, `every` and `at`."""

    cron: _Cron | UnsetType = UNSET
    every: (
        Annotated[_Duration, Meta(description="Counted from `start`, or from the start of 1970 in UTC.")]
        | UnsetType
    ) = UNSET
    at: (
        Annotated[
            list[str] | str,
            Meta(
                description=f"A time, or a list of up to {MAX_TIMES:,} times.",
                examples=["2026-03-01T09:00:00"],
            ),
        ]
        | UnsetType
    ) = UNSET
    timezone: Annotated[str, _ZONE] = "UTC"
    jitter: Annotated[_Duration, _JITTER] | UnsetType = UNSET
    overlap: Annotated[Overlap, _OVERLAP] = "skip"
    catch_up: Annotated[CatchUp, _CATCH_UP] = "last"
    catch_up_window: Annotated[_Duration, _WINDOW] = "1d"
    start: Annotated[str, Meta(description="Nothing fires before this time.")] | UnsetType = UNSET
    end: Annotated[str, Meta(description="Nothing fires at this time or later.")] | UnsetType = UNSET


class VerifyRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    scheme: Annotated[
        Scheme, Meta(description="How deliveries are signed. `none`: anyone who knows the URL can send one.")
    ]
    secret: (
        Annotated[str | list[str], Meta(description="Name of the secret, or two names during a rotation.")]
        | UnsetType
    ) = UNSET
    header: (
        Annotated[
            str,
            Meta(description="Header of `hmac` (default `X-Signature`) and `api-key` (default `X-API-Key`)."),
        ]
        | UnsetType
    ) = UNSET


class WebhookRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    verify: VerifyRequest
    filter: (
        Annotated[str, Meta(description="A CEL expression over `request`. If it is false, no run starts.")]
        | UnsetType
    ) = UNSET
    idempotency_key: (
        Annotated[
            str,
            Meta(
                description="A template over `request`. Deliveries with the same key start one run. Defaults to the "
                "delivery id of the scheme."
            ),
        ]
        | UnsetType
    ) = UNSET
    respond: Annotated[
        Respond, Meta(description="`run`: answer immediately with the run. `output`: wait for its output.")
    ] = "run"
    wait: Annotated[_Duration, Meta(description="How long `output` waits.")] = "30s"
    rate: Annotated[
        str, Meta(description="Maximum number of deliveries per second, minute or hour.", examples=["600/m"])
    ] = "600/m"
    max_body_bytes: Annotated[int, Meta(ge=1, le=MAX_BODY_BYTES)] = DEFAULT_BODY_BYTES


_EVENT_TYPES = Meta(
    description=f"Type of the events that start a run, or a list of up to {MAX_TYPES} types.",
    examples=["payment.received"],
)
_STATUSES = Meta(description="Statuses with which the run can end. Defaults to `COMPLETED`.")


_FLOW_KEY = Meta(
    description="An expression over `input`. Runs for which it has the same value count together. Defaults to all runs "
    "of the trigger.",
    examples=["input.customer"],
)
_ON_LIMIT = Meta(
    description="What happens to a run above the limit: it waits, is cancelled, or replaces the oldest one."
)
_THROTTLE = Meta(description="How many runs start per second, minute or hour.", examples=["10/m"])
_DEBOUNCE = Meta(
    description="A run starts when no other one has come for so long. Only the last one starts. Such as `30s` or "
    "`30s by input.customer`, or an object.",
    examples=["30s"],
)
_PRIORITY = Meta(description="Of the runs that wait, those with the highest priority start first.")


class EventTriggerRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    type: Annotated[str | list[str], _EVENT_TYPES]
    filter: (
        Annotated[str, Meta(description="A CEL expression over `event`. If it is false, no run starts.")]
        | UnsetType
    ) = UNSET
    idempotency_key: (
        Annotated[
            str,
            Meta(description="A template over `event`. Events with the same key start one run."),
        ]
        | UnsetType
    ) = UNSET


class RunTriggerRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    workflow: Annotated[str, Meta(description="Name of the workflow whose runs are meant.")]
    status: Annotated[EndStatus | list[EndStatus], _STATUSES] | UnsetType = UNSET
    filter: (
        Annotated[str, Meta(description="A CEL expression over `run`. If it is false, no run starts.")]
        | UnsetType
    ) = UNSET


class ConcurrencyRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    limit: Annotated[int, Meta(ge=1, le=MAX_LIMIT, description="How many runs go on at the same time.")]
    key: Annotated[str, _FLOW_KEY] | UnsetType = UNSET
    on_limit: Annotated[OnLimit, _ON_LIMIT] = "queue"


class DebounceRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    wait: _Duration
    key: Annotated[str, _FLOW_KEY] | UnsetType = UNSET


class TriggerRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    name: Annotated[str, Meta(extra_json_schema={"pattern": NAME_PATTERN})]
    workflow: Annotated[str, Meta(description="Name of the workflow that it starts.")]
    schedule: Annotated[ScheduleRequest, Meta(description="Starts runs at certain times.")] | UnsetType = (
        UNSET
    )
    webhook: Annotated[WebhookRequest, Meta(description="Starts runs by HTTP requests.")] | UnsetType = UNSET
    event: (
        Annotated[EventTriggerRequest, Meta(description="Starts a run for each event that arrives.")]
        | UnsetType
    ) = UNSET
    run: (
        Annotated[RunTriggerRequest, Meta(description="Starts a run when a run of a workflow ends.")]
        | UnsetType
    ) = UNSET
    concurrency: ConcurrencyRequest | UnsetType = UNSET
    throttle: Annotated[str, _THROTTLE] | UnsetType = UNSET
    debounce: Annotated[str | DebounceRequest, _DEBOUNCE] | UnsetType = UNSET
    priority: Annotated[int, Meta(ge=-MAX_PRIORITY, le=MAX_PRIORITY), _PRIORITY] = 0
    kind: (
        Annotated[Literal["trigger"], Meta(description="Marks a file as a trigger for `trunkline apply`.")]
        | UnsetType
    ) = UNSET
    description: str | UnsetType = UNSET
    version: (
        Annotated[int, Meta(ge=1, description="Version of the workflow. Defaults to the latest.")] | UnsetType
    ) = UNSET
    input: (
        Annotated[
            JsonValue,
            Meta(
                description="Template of the run input. Expressions read `trigger.name`, `trigger.scheduled_at` and "
                "`trigger.fired_at`, and what fired it: `request` (`headers`, `query`, `body`), `event` (`type`, "
                "`key`, `data`, `id`, `at`, `source`) or `run` (`id`, `workflow`, `version`, `status`, `output`, "
                "`error`, `correlation_id`). Defaults to `{}`."
            ),
        ]
        | UnsetType
    ) = UNSET
    enabled: Annotated[bool, Meta(description="False if the trigger is paused.")] = True


class FireRequest(msgspec.Struct, forbid_unknown_fields=True):
    input: (
        Annotated[JsonValue, Meta(description="The run input, instead of the one that the trigger creates.")]
        | UnsetType
    ) = UNSET


class BackfillRequest(msgspec.Struct, forbid_unknown_fields=True, rename={"from_": "from"}):
    from_: Annotated[datetime, Meta(tz=True, description="Start of the period, with an offset.")]
    to: Annotated[
        datetime,
        Meta(
            tz=True,
            description="End of the period. A scheduled time at exactly this instant, or in the future, is not "
            f"included. The period can have at most {MAX_BACKFILLED:,} firings.",
        ),
    ]


# --- responses


class ScheduleResource(TypedDict):
    cron: NotRequired[str]
    every: NotRequired[_Duration]
    at: NotRequired[Sequence[Timestamp]]
    timezone: Annotated[str, _ZONE]
    jitter: NotRequired[Annotated[_Duration, _JITTER]]
    overlap: Annotated[Overlap, _OVERLAP]
    catch_up: Annotated[CatchUp, _CATCH_UP]
    catch_up_window: Annotated[_Duration, _WINDOW]
    start: NotRequired[Timestamp]
    end: NotRequired[Timestamp]


class VerifyResource(TypedDict):
    scheme: Scheme
    secret: NotRequired[Annotated[Sequence[str], Meta(description="Names of secrets.")]]
    header: NotRequired[str]


class WebhookResource(TypedDict):
    url: Annotated[
        str | None,
        Meta(
            description="The address for deliveries: an absolute URL if `public_url` is set, otherwise a path. "
            "Null for viewers, because this address can start runs."
        ),
    ]
    verify: VerifyResource
    filter: NotRequired[str]
    idempotency_key: NotRequired[str]
    respond: Respond
    wait: _Duration
    rate: str
    max_body_bytes: int


class EventTriggerResource(TypedDict):
    type: Annotated[Sequence[str], Meta(description="Types of the events that start a run.")]
    filter: NotRequired[str]
    idempotency_key: NotRequired[str]


class RunTriggerResource(TypedDict):
    workflow: str
    status: Annotated[Sequence[EndStatus], Meta(description="Statuses with which the run can end.")]
    filter: NotRequired[str]


class ConcurrencyResource(TypedDict):
    limit: int
    key: NotRequired[Annotated[str, _FLOW_KEY]]
    on_limit: Annotated[OnLimit, _ON_LIMIT]


class DebounceResource(TypedDict):
    wait: _Duration
    key: NotRequired[Annotated[str, _FLOW_KEY]]


class WebhookAnswer(TypedDict):
    id: Annotated[str | None, Meta(description="The run. Null if the filter is false.")]
    status: str


class TriggerSummary(TypedDict):
    """A trigger in a list."""

    id: str
    name: str
    description: NotRequired[str]
    workflow: str
    version: Annotated[int | None, Meta(description="Version of the workflow. Null means the latest.")]
    input: Annotated[JsonValue, Meta(description="Template of the run input.")]
    enabled: bool
    schedule: NotRequired[ScheduleResource]
    webhook: NotRequired[WebhookResource]
    event: NotRequired[EventTriggerResource]
    run: NotRequired[RunTriggerResource]
    concurrency: NotRequired[ConcurrencyResource]
    throttle: NotRequired[Annotated[str, _THROTTLE]]
    debounce: NotRequired[DebounceResource]
    priority: NotRequired[Annotated[int, _PRIORITY]]
    next_at: Annotated[
        Timestamp | None,
        Meta(
            description="Scheduled time of the next firing. Null if the trigger is paused, or its schedule has ended."
        ),
    ]
    created_at: Timestamp
    updated_at: Timestamp


class FiringResource(TypedDict):
    """An entry of the history of a trigger."""

    at: Timestamp
    scheduled_at: Annotated[Timestamp | None, Meta(description="Null unless the schedule fired the trigger.")]
    outcome: FiringOutcome
    run_id: Annotated[str | None, Meta(description="The run that the firing started.")]
    reason: Annotated[str | None, Meta(description="Why the firing started no run.")]


class ListedTrigger(TriggerSummary):
    last_firing: Annotated[FiringResource | None, Meta(description="The newest entry of its history.")]


class TriggerResource(TriggerSummary):
    next_firings: Annotated[Sequence[Timestamp], Meta(description="Up to ten of the next scheduled times.")]
    yaml: Annotated[str, Meta(description="The definition as YAML, for an editor.")]


class TriggerPage(TypedDict):
    items: list[ListedTrigger]
    next_cursor: NextCursor


class FiringPage(TypedDict):
    items: list[FiringResource]
    next_cursor: NextCursor


class UpcomingTrigger(TypedDict):
    trigger: str
    workflow: str
    firings: Annotated[
        Sequence[Timestamp],
        Meta(description=f"Scheduled times, up to {MAX_UPCOMING_FIRINGS:,}."),
    ]
    has_more: Annotated[bool, Meta(description="True if more times follow within the hours.")]


class UpcomingFiringsResource(TypedDict):
    items: list[UpcomingTrigger]
    is_complete: Annotated[
        bool, Meta(description=f"False if only the first {MAX_UPCOMING_TRIGGERS:,} triggers were looked at.")
    ]


class SchedulePreview(TypedDict):
    firings: Annotated[Sequence[Timestamp], Meta(description="Up to ten of the next scheduled times.")]


class BackfilledRunResource(TypedDict):
    scheduled_at: Timestamp
    run_id: str
    created: Annotated[bool, Meta(description="False if this scheduled time had already started the run.")]


class Backfill(TypedDict):
    items: list[BackfilledRunResource]


def trigger_summary(record: TriggerRecord, url: str | None) -> TriggerSummary:
    """`url`: of its webhook, if the caller may see it."""
    definition = definition_from_canonical(record.definition)
    summary: TriggerSummary = {
        "id": record.id,
        "name": record.name,
        "workflow": definition.workflow,
        "version": definition.version,
        "input": definition.input,
        "enabled": definition.enabled,
        "next_at": time_or_none(record.scheduled_at),
        "created_at": rfc3339(record.created_at),
        "updated_at": rfc3339(record.updated_at),
    }
    if definition.description is not None:
        summary["description"] = definition.description
    if definition.schedule is not None:
        summary["schedule"] = schedule_resource(definition.schedule)
    if definition.webhook is not None:
        summary["webhook"] = webhook_resource(definition.webhook, url)
    if definition.event is not None:
        summary["event"] = _event_resource(definition.event)
    if definition.run is not None:
        summary["run"] = _run_resource(definition.run)
    if definition.flow is not None:
        _add_flow_control(summary, definition.flow)
    return summary


def _add_flow_control(summary: TriggerSummary, flow: FlowControl) -> None:
    if flow.concurrency is not None:
        concurrency: ConcurrencyResource = {
            "limit": flow.concurrency.limit,
            "on_limit": flow.concurrency.on_limit,
        }
        if flow.concurrency.key is not None:
            concurrency["key"] = flow.concurrency.key
        summary["concurrency"] = concurrency
    if flow.throttle is not None:
        summary["throttle"] = flow.throttle.text
    if flow.debounce is not None:
        debounce: DebounceResource = {"wait": format_duration(flow.debounce.wait)}
        if flow.debounce.key is not None:
            debounce["key"] = flow.debounce.key
        summary["debounce"] = debounce
    if flow.priority:
        summary["priority"] = flow.priority


def _rate_text(count: int, per: timedelta) -> str:
    unit = {1: "s", 60: "m", 3600: "h"}[int(per.total_seconds())]
    return f"{count}/{unit}"


def _event_resource(event: EventDefinition) -> EventTriggerResource:
    resource: EventTriggerResource = {"type": event.types}
    if event.filter is not None:
        resource["filter"] = event.filter
    if event.idempotency_key is not None:
        resource["idempotency_key"] = event.idempotency_key
    return resource


def _run_resource(run: RunEndDefinition) -> RunTriggerResource:
    resource: RunTriggerResource = {"workflow": run.workflow, "status": run.statuses}
    if run.filter is not None:
        resource["filter"] = run.filter
    return resource


def trigger_resource(record: TriggerRecord, following: Sequence[Instant], url: str | None) -> TriggerResource:
    summary = trigger_summary(record, url)
    return {
        **summary,
        "next_firings": [rfc3339(instant) for instant in following],
        "yaml": write_yaml(encode(_definition_of(summary)).decode()) or "",
    }


def _definition_of(summary: TriggerSummary) -> dict[str, Json]:
    """What to send to get this trigger."""
    found = cast("dict[str, Json]", decode(encode({"kind": "trigger", **summary})))
    for key in ("id", "next_at", "created_at", "updated_at"):
        del found[key]
    if found["version"] is None:
        del found["version"]
    if isinstance(webhook := found.get("webhook"), dict):
        del webhook["url"]
    return found


def listed_trigger(record: TriggerRecord, url: str | None, last: Firing | None) -> ListedTrigger:
    return {**trigger_summary(record, url), "last_firing": None if last is None else firing_resource(last)}


def upcoming_resource(upcoming: Sequence[UpcomingFirings], *, is_complete: bool) -> UpcomingFiringsResource:
    return {
        "items": [
            {
                "trigger": each.record.name,
                "workflow": definition_from_canonical(each.record.definition).workflow,
                "firings": [rfc3339(instant) for instant in each.instants],
                "has_more": each.has_more,
            }
            for each in upcoming
        ],
        "is_complete": is_complete,
    }


def schedule_resource(schedule: ScheduleDefinition) -> ScheduleResource:
    resource: ScheduleResource = {
        "timezone": schedule.timezone,
        "overlap": schedule.overlap,
        "catch_up": schedule.catch_up,
        "catch_up_window": format_duration(schedule.catch_up_window),
    }
    if schedule.cron is not None:
        resource["cron"] = schedule.cron
    if schedule.every is not None:
        resource["every"] = format_duration(schedule.every)
    if schedule.at is not None:
        resource["at"] = [rfc3339(instant) for instant in schedule.at]
    if schedule.jitter:
        resource["jitter"] = format_duration(schedule.jitter)
    if schedule.start is not None:
        resource["start"] = rfc3339(schedule.start)
    if schedule.end is not None:
        resource["end"] = rfc3339(schedule.end)
    return resource


def webhook_resource(webhook: WebhookDefinition, url: str | None) -> WebhookResource:
    verify: VerifyResource = {"scheme": webhook.scheme}
    if webhook.secrets:
        verify["secret"] = webhook.secrets
    if webhook.header is not None:
        verify["header"] = webhook.header
    resource: WebhookResource = {
        "url": url,
        "verify": verify,
        "respond": webhook.respond,
        "wait": format_duration(webhook.wait),
        "rate": _rate_text(webhook.rate.count, webhook.rate.per),
        "max_body_bytes": webhook.max_body_bytes,
    }
    if webhook.filter is not None:
        resource["filter"] = webhook.filter
    if webhook.idempotency_key is not None:
        resource["idempotency_key"] = webhook.idempotency_key
    return resource


def firing_resource(firing: Firing) -> FiringResource:
    return {
        "at": rfc3339(firing.at),
        "scheduled_at": time_or_none(firing.scheduled_at),
        "outcome": firing.outcome,
        "run_id": firing.run_id,
        "reason": firing.reason,
    }


def backfilled_run_resource(run: BackfilledRun) -> BackfilledRunResource:
    return {"scheduled_at": rfc3339(run.scheduled_at), "run_id": run.run_id, "created": run.created}
