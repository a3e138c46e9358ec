"""The source of the callbacks of subscriptions: makes their requests, and keeps the history of their deliveries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

import msgspec

from trunkline.clock import Instant, after
from trunkline.errors import ConfigurationError, Finding, Invalid
from trunkline.jsontypes import Json, encode
from trunkline.services.callbacks.sender import NO_MAIL_SERVER, RETRY_FOR
from trunkline.services.callbacks.sources import (
    MAIL_HOST,
    AttemptedCallback,
    CallbackMail,
    CallbackNotReady,
    CallbackReceiver,
    CallbackReport,
    CallbackRequest,
    OutgoingCallback,
    signed_headers,
)
from trunkline.services.people.answer_links import ANSWER_PATH, DEFAULT_LIFETIME, AnswerTokens, link_to
from trunkline.services.people.rights import PeopleGroups
from trunkline.services.security.secrets import Secrets
from trunkline.services.subscriptions.definition import (
    ASSIGNEES,
    SubscriptionDefinition,
    subscription_from_canonical,
)
from trunkline.services.subscriptions.mail import MailPolicy
from trunkline.services.subscriptions.messages import (
    ChangeMessage,
    mail_of,
    message_of,
    slack_body,
    teams_body,
)
from trunkline.services.subscriptions.reporter import subscription_of
from trunkline.stores.base import Store, Transaction
from trunkline.stores.port.automation.callbacks import StoredCallback
from trunkline.stores.port.automation.subscriptions import Attempt, Delivery, DeliveryStatus

_events: msgspec.json.Decoder[dict[str, Json]] = msgspec.json.Decoder(dict[str, Json])
JSON_TYPE = "application/json; charset=UTF-8"
CONTENT_TYPE = "application/cloudevents+json; charset=UTF-8"
# A subscription is disabled when every attempt has failed for so long: as long as a delivery is tried.
DISABLED_AFTER = RETRY_FOR


class SubscriptionCallbacks:
    """Implements `CallbackSource`."""

    def __init__(self, store: Store, requests: DeliveryRequests) -> None:
        self._store = store
        self._requests = requests

    async def receiver(self, queue: str) -> CallbackReceiver | None:
        record = await self._store.subscriptions.by_id(subscription_of(queue))
        if record is None:
            return None
        definition = subscription_from_canonical(record.definition)
        is_enabled = definition.enabled and record.disabled_at is None
        return _Receiver(self._store, self._requests, definition, is_enabled=is_enabled)

    async def note(self, tx: Transaction, queue: str, report: CallbackReport) -> bool:
        is_disabled = False
        if report.accepted:
            await tx.subscriptions.note_success(subscription_of(queue))
        if report.error is not None:
            is_disabled = await tx.subscriptions.note_failure(
                subscription_of(queue), report.error, disable_before=after(tx.now, -DISABLED_AFTER)
            )
        # After the subscription, in the order in which all transactions lock them.
        await tx.subscriptions.note_attempts([_attempt(each) for each in report.attempted])
        return is_disabled

    async def note_dropped(self, tx: Transaction, queue: str, dropped: Sequence[StoredCallback]) -> None:
        del queue
        error = "The subscription was paused or disabled for longer than deliveries wait."
        await tx.subscriptions.note_attempts(
            [
                Attempt(delivery_id=each.payload.decode(), status="failed", error=error, was_sent=False)
                for each in dropped
            ]
        )


class DeliveryRequests:
    """Makes the request of a delivery."""

    def __init__(
        self,
        secrets: Secrets,
        tokens: AnswerTokens,
        groups: PeopleGroups,
        public_url: str | None,
        mail: MailPolicy | None = None,
    ) -> None:
        """`public_url`: where answer links lead; None: there are none. `mail`: None: none can be sent."""
        self._secrets = secrets
        self._tokens = tokens
        self._groups = groups
        self._public_url = public_url
        self._mail = mail

    def check(self, definition: SubscriptionDefinition) -> None:
        """Raises `Invalid` for mail that cannot be sent."""
        if definition.mail:
            if self._mail is None:
                raise Invalid(NO_MAIL_SERVER, findings=[Finding(path="mail", message=NO_MAIL_SERVER)])
            self._mail.check(definition.mail)

    async def requests(
        self, definition: SubscriptionDefinition, delivery: Delivery, now: Instant
    ) -> Sequence[OutgoingCallback]:
        """Raises `CallbackNotReady`."""
        if definition.mail:
            return self._mails(definition, delivery)
        url = definition.url or ""
        if definition.is_read_by_people:
            message = self._message(definition, delivery, self._links(definition, delivery))
            body = slack_body(message) if definition.format == "slack" else teams_body(message)
            return [CallbackRequest(url=url, headers={"content-type": JSON_TYPE}, body=body)]
        return [await self._cloud_event(definition, url, delivery, now)]

    def _mails(self, definition: SubscriptionDefinition, delivery: Delivery) -> list[OutgoingCallback]:
        """One for each recipient. Assignees get their own link only."""
        mail = self._mail
        if mail is None:
            raise CallbackNotReady(NO_MAIL_SERVER)
        links = self._links(definition, delivery)
        readers: dict[str, Mapping[str, str]] = {}
        for address in definition.mail:
            if address != ASSIGNEES:
                readers[address] = links
                continue
            for person in self._groups.people(_assignees(_events.decode(delivery.event))):
                own = mail.address_of(person)
                if own is not None:
                    readers.setdefault(own, {person: links[person]} if person in links else {})
        return [
            CallbackMail(
                to=address,
                message=mail_of(
                    self._message(definition, delivery, of_reader),
                    delivery.event_id,
                    mail.sender,
                    address,
                    delivery.created_at,
                ),
            )
            for address, of_reader in readers.items()
        ]

    def _message(
        self, definition: SubscriptionDefinition, delivery: Delivery, links: Mapping[str, str]
    ) -> ChangeMessage:
        page = None
        if self._public_url is not None and delivery.run_id is not None:
            page = f"{self._public_url}/runs/{delivery.run_id}"
        return message_of(_events.decode(delivery.event), definition.template, links, page)

    async def _cloud_event(
        self, definition: SubscriptionDefinition, url: str, delivery: Delivery, now: Instant
    ) -> CallbackRequest:
        headers = {"content-type": CONTENT_TYPE}
        body = self._body(definition, delivery)
        secrets = [await self._secret(name) for name in definition.secrets]
        if secrets:
            headers |= signed_headers(secrets, delivery.event_id, now, body)
        else:
            # What identifies it is sent with every delivery; only a signature needs a secret.
            headers |= {"webhook-id": delivery.event_id, "webhook-timestamp": str(now // 1_000_000)}
        return CallbackRequest(url=url, headers=headers, body=body)

    def _body(self, definition: SubscriptionDefinition, delivery: Delivery) -> bytes:
        """Links are made here, so that the history does not have them. They are the same in every attempt."""
        links = self._links(definition, delivery)
        if not links:
            return delivery.event
        event = _events.decode(delivery.event)
        question = event.get("data")
        return (
            encode({**event, "data": {**question, "links": links}})
            if isinstance(question, dict)
            else delivery.event
        )

    def _links(self, definition: SubscriptionDefinition, delivery: Delivery) -> dict[str, str]:
        """Where each assignee can answer, by person."""
        if (
            not definition.answer_links
            or self._public_url is None
            or not delivery.type.startswith("question.")
        ):
            return {}
        event = _events.decode(delivery.event)
        question = event.get("data")
        if delivery.run_id is None or not isinstance(question, dict):
            return {}
        until = after(delivery.created_at, DEFAULT_LIFETIME)
        links: dict[str, str] = {}
        for person in self._groups.people(_assignees(event)):
            link = link_to(str(question["item"]), person, until)
            if link is not None:
                links[link.person] = f"{self._public_url}{ANSWER_PATH}/{self._tokens.token_of(link)}"
        return links

    async def _secret(self, name: str) -> str:
        try:
            opened = await self._secrets.open(name)
        except ConfigurationError as exc:
            raise CallbackNotReady(exc.message, fix=exc.fix) from exc
        if opened is None:
            raise CallbackNotReady(
                f"The secret {name!r} of the subscription does not exist.",
                fix=f"Set it: trunkline secrets set {name}.",
            )
        return opened.value


class _Receiver:
    def __init__(
        self,
        store: Store,
        requests: DeliveryRequests,
        definition: SubscriptionDefinition,
        *,
        is_enabled: bool,
    ) -> None:
        self._store = store
        self._requests = requests
        self._definition = definition
        self.is_enabled = is_enabled
        self.host = urlsplit(definition.url).netloc if definition.url else MAIL_HOST

    async def requests(self, callback: StoredCallback, now: Instant) -> Sequence[OutgoingCallback]:
        delivery = await self._store.subscriptions.delivery(callback.payload.decode())
        if delivery is None:
            return ()
        return await self._requests.requests(self._definition, delivery, now)


def _assignees(event: Mapping[str, Json]) -> list[str]:
    question = event.get("data")
    assignees = question.get("assignees") if isinstance(question, dict) else None
    return [*map(str, assignees)] if isinstance(assignees, list) else []


def _attempt(attempted: AttemptedCallback) -> Attempt:
    status: DeliveryStatus = "delivered" if attempted.error is None else "pending"
    return Attempt(
        delivery_id=attempted.callback.payload.decode(),
        status="failed" if attempted.is_given_up else status,
        error=attempted.error,
    )
