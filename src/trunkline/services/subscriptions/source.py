"""The source of the callbacks of subscriptions: makes their requests, and keeps the history of their deliveries."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from trunkline.clock import Instant, after
from trunkline.errors import ConfigurationError
from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.services.callbacks.sender import RETRY_FOR
from trunkline.services.callbacks.sources import (
    AttemptedCallback,
    CallbackNotReady,
    CallbackReceiver,
    CallbackReport,
    CallbackRequest,
    signed_headers,
)
from trunkline.services.people.answer_links import ANSWER_PATH, DEFAULT_LIFETIME, AnswerTokens, link_to
from trunkline.services.people.rights import PeopleGroups
from trunkline.services.security.secrets import Secrets
from trunkline.services.subscriptions.definition import SubscriptionDefinition, subscription_from_canonical
from trunkline.services.subscriptions.reporter import subscription_of
from trunkline.stores.base import Store, Transaction
from trunkline.stores.port.automation.callbacks import StoredCallback
from trunkline.stores.port.automation.subscriptions import Attempt, Delivery, DeliveryStatus

_events: msgspec.json.Decoder[dict[str, Json]] = msgspec.json.Decoder(dict[str, Json])
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
        self, secrets: Secrets, tokens: AnswerTokens, groups: PeopleGroups, public_url: str | None
    ) -> None:
        """`public_url`: where answer links lead; None: there are none."""
        self._secrets = secrets
        self._tokens = tokens
        self._groups = groups
        self._public_url = public_url

    async def request(
        self, definition: SubscriptionDefinition, delivery: Delivery, now: Instant
    ) -> CallbackRequest:
        """Raises `CallbackNotReady`."""
        headers = {"content-type": CONTENT_TYPE}
        body = self._body(definition, delivery)
        secrets = [await self._secret(name) for name in definition.secrets]
        if secrets:
            headers |= signed_headers(secrets, delivery.event_id, now, body)
        else:
            # What identifies it is sent with every delivery; only a signature needs a secret.
            headers |= {"webhook-id": delivery.event_id, "webhook-timestamp": str(now // 1_000_000)}
        return CallbackRequest(url=definition.url, headers=headers, body=body)

    def _body(self, definition: SubscriptionDefinition, delivery: Delivery) -> bytes:
        """Links are made here, so that the history does not have them. They are the same in every attempt."""
        if (
            not definition.answer_links
            or self._public_url is None
            or not delivery.type.startswith("question.")
        ):
            return delivery.event
        event = _events.decode(delivery.event)
        question = event.get("data")
        assignees = question.get("assignees") if isinstance(question, dict) else None
        if not isinstance(question, dict) or not isinstance(assignees, list):
            return delivery.event
        until = after(delivery.created_at, DEFAULT_LIFETIME)
        links: JsonObject = {}
        for person in self._groups.people(map(str, assignees)):
            link = None if delivery.run_id is None else link_to(str(question["item"]), person, until)
            if link is not None:
                links[link.person] = f"{self._public_url}{ANSWER_PATH}/{self._tokens.token_of(link)}"
        return encode({**event, "data": {**question, "links": links}})

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

    async def requests(self, callback: StoredCallback, now: Instant) -> Sequence[CallbackRequest]:
        delivery = await self._store.subscriptions.delivery(callback.payload.decode())
        if delivery is None:
            return ()
        return [await self._requests.request(self._definition, delivery, now)]


def _attempt(attempted: AttemptedCallback) -> Attempt:
    status: DeliveryStatus = "delivered" if attempted.error is None else "pending"
    return Attempt(
        delivery_id=attempted.callback.payload.decode(),
        status="failed" if attempted.is_given_up else status,
        error=attempted.error,
    )
