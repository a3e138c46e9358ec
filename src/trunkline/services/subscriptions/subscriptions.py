"""Subscriptions: saved, shown, paused and resumed, tested, and their deliveries sent again by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import structlog

from trunkline.clock import rfc3339
from trunkline.errors import Conflict, NotFound
from trunkline.id_generation import new_id
from trunkline.jsontypes import encode
from trunkline.services.callbacks.sender import send_callback
from trunkline.services.callbacks.sources import CallbackNotReady, MailSender, OutgoingCallback
from trunkline.services.heavy_work import HeavyWork
from trunkline.services.operations.audit_log import audit_entry
from trunkline.services.subscriptions.definition import (
    TEST_TYPE,
    canonical_subscription,
    load_subscription,
    subscription_from_canonical,
)
from trunkline.services.subscriptions.directory import SubscriptionDirectory
from trunkline.services.subscriptions.reporter import CALLBACK_KIND, cloud_event, queue_of, queues_of
from trunkline.services.subscriptions.source import DeliveryRequests
from trunkline.stores.base import Store, Transaction
from trunkline.stores.port.automation.callbacks import NewCallback
from trunkline.stores.port.automation.subscriptions import Attempt, Delivery, SubscriptionRecord
from trunkline.telemetry import log_events
from trunkline.transports.base import Transport

log = structlog.stdlib.get_logger()

# Each is compared with every change.
MAX_SUBSCRIPTIONS = 100
_LIST_THEM = "List the subscriptions: trunkline subscriptions list."


class SavedSubscription(NamedTuple):
    record: SubscriptionRecord
    created: bool


class Subscriptions:
    def __init__(
        self,
        store: Store,
        directory: SubscriptionDirectory,
        requests: DeliveryRequests,
        transport: Transport,
        work: HeavyWork | None = None,
        mailer: MailSender | None = None,
    ) -> None:
        self._store = store
        self._directory = directory
        self._requests = requests
        self._transport = transport
        self._work = work or HeavyWork()
        self._mailer = mailer

    async def create(self, text: bytes) -> SubscriptionRecord:
        """Raises `AlreadyExists`, and `Invalid` with every finding and its place in the text."""
        definition = await self._work.run(lambda: load_subscription(text))
        self._requests.check(definition)
        async with self._store.transaction() as tx:
            record = await _insert(tx, definition.name, canonical_subscription(definition))
            await tx.audit.put([audit_entry("subscription", "create", record.name)])
        self._changed(record)
        return record

    async def save(self, name: str, text: bytes) -> SavedSubscription:
        """Create it or replace its definition. Without a change it stays as it is."""
        definition = await self._work.run(lambda: load_subscription(text, name))
        self._requests.check(definition)
        canonical = canonical_subscription(definition)
        async with self._store.transaction() as tx:
            earlier = await tx.subscriptions.get(name)
            if earlier is None:
                record = await _insert(tx, name, canonical)
            elif earlier.definition == canonical:
                return SavedSubscription(earlier, False)
            else:
                record = await _replace(tx, earlier, canonical)
            action = "create" if earlier is None else "update"
            await tx.audit.put([audit_entry("subscription", action, name, version=record.version)])
        self._changed(record)
        return SavedSubscription(record, earlier is None)

    async def set_enabled(self, name: str, *, enabled: bool) -> SubscriptionRecord:
        """While it is paused its deliveries wait. Resuming also enables one that was disabled after failures."""
        async with self._store.transaction() as tx:
            earlier = await tx.subscriptions.get(name)
            if earlier is None:
                raise _unknown(name)
            definition = subscription_from_canonical(earlier.definition)
            if definition.enabled == enabled and not (enabled and earlier.failing_since is not None):
                return earlier
            changed = msgspec.structs.replace(definition, enabled=enabled)
            record = await _replace(tx, earlier, canonical_subscription(changed))
            action = "resume" if enabled else "pause"
            await tx.audit.put([audit_entry("subscription", action, name, version=record.version)])
        self._changed(record)
        return record

    async def delete(self, name: str) -> None:
        """With its history, and with what is not delivered yet."""
        async with self._store.transaction() as tx:
            record = await tx.subscriptions.get(name)
            if record is None or not await tx.subscriptions.delete(name):
                raise _unknown(name)
            await tx.callbacks.delete(queues_of(record.id))
            await tx.audit.put([audit_entry("subscription", "delete", name)])
        self._directory.forget()
        log.info(log_events.SUBSCRIPTION_DELETED, subscription=name)

    async def get(self, name: str) -> SubscriptionRecord:
        found = await self._store.subscriptions.get(name)
        if found is None:
            raise _unknown(name)
        return found

    async def list(self, *, limit: int, after: str | None = None) -> Sequence[SubscriptionRecord]:
        """In the order of their names; `after` is the last name seen."""
        return await self._store.subscriptions.page(limit=limit, after=after)

    async def deliveries(self, name: str, *, limit: int, before: str | None = None) -> Sequence[Delivery]:
        """Newest first; `before` is the last id seen."""
        record = await self.get(name)
        return await self._store.subscriptions.deliveries(record.id, limit=limit, before=before)

    async def redeliver(self, name: str, delivery_id: str) -> Delivery:
        """Send a delivery again that was delivered or given up. It keeps its id."""
        record = await self.get(name)
        delivery = await self._delivery(record, delivery_id)
        async with self._store.transaction() as tx:
            if not await tx.subscriptions.renew_delivery(delivery.id):
                raise Conflict(
                    f"The delivery {delivery.id} is still being sent.",
                    fix="Wait until it is delivered or given up, or resume the subscription.",
                )
            queue = queue_of(record.id, delivery.run_id)
            await tx.audit.put([audit_entry("subscription", "redeliver", name, delivery=delivery.id)])
            await tx.callbacks.put(
                [NewCallback(queue=queue, kind=CALLBACK_KIND, payload=delivery.id.encode())]
            )
        return await self._delivery(record, delivery_id)

    async def test(self, name: str) -> Delivery:
        """Send a test delivery now, once, also of a paused subscription."""
        record = await self.get(name)
        definition = subscription_from_canonical(record.definition)
        async with self._store.transaction() as tx:
            now, delivery_id = tx.now, new_id()
            data = {"subscription": name, "message": "This is a test delivery of a Trunkline subscription."}
            event = cloud_event(delivery_id, TEST_TYPE, name, rfc3339(now), {**data})
            delivery = Delivery(
                id=delivery_id,
                subscription_id=record.id,
                event_id=delivery_id,
                type=TEST_TYPE,
                run_id=None,
                event=encode(event),
                created_at=now,
                # Until the answer is known; nothing sends it again.
                status="failed",
                error="The process that sent it has stopped.",
            )
            await tx.audit.put([audit_entry("subscription", "test", name)])
            await tx.subscriptions.put_deliveries([delivery])
        try:
            error = await self._send(await self._requests.requests(definition, delivery, now))
        except CallbackNotReady as exc:
            error = exc.message
        status = "delivered" if error is None else "failed"
        async with self._store.transaction() as tx:
            await tx.subscriptions.note_attempts(
                [Attempt(delivery_id=delivery_id, status=status, error=error)]
            )
        return await self._delivery(record, delivery_id)

    async def _send(self, requests: Sequence[OutgoingCallback]) -> str | None:
        """Why not all of them were accepted."""
        if not requests:
            return "There is no recipient for it."
        for request in requests:
            error = await send_callback(self._transport, self._mailer, request)
            if error is not None:
                return error
        return None

    async def _delivery(self, record: SubscriptionRecord, delivery_id: str) -> Delivery:
        found = await self._store.subscriptions.delivery(delivery_id)
        if found is None or found.subscription_id != record.id:
            raise NotFound(
                f"The subscription {record.name} has no delivery {delivery_id}.",
                fix=f"List its deliveries: trunkline subscriptions show {record.name}.",
            )
        return found

    def _changed(self, record: SubscriptionRecord) -> None:
        self._directory.forget()
        log.info(log_events.SUBSCRIPTION_SAVED, subscription=record.name, version=record.version)


async def _insert(tx: Transaction, name: str, canonical: bytes) -> SubscriptionRecord:
    known = await tx.subscriptions.all()
    if len(known) >= MAX_SUBSCRIPTIONS and all(each.name != name for each in known):
        raise Conflict(
            f"There are {len(known)} subscriptions, and the limit is {MAX_SUBSCRIPTIONS}.",
            fix="Delete one, or report to one receiver that passes the events on.",
        )
    record = SubscriptionRecord(
        id=new_id(), name=name, definition=canonical, version=1, created_at=tx.now, updated_at=tx.now
    )
    await tx.subscriptions.insert(record)
    return record


async def _replace(tx: Transaction, earlier: SubscriptionRecord, canonical: bytes) -> SubscriptionRecord:
    """What waits is due at once, as if nothing had failed."""
    record = msgspec.structs.replace(
        earlier,
        definition=canonical,
        version=earlier.version + 1,
        updated_at=tx.now,
        failing_since=None,
        error=None,
        disabled_at=None,
    )
    await tx.subscriptions.update(record)
    await tx.callbacks.resume(queues_of(record.id))
    return record


def _unknown(name: str) -> NotFound:
    return NotFound(f"Unknown subscription {name!r}.", fix=_LIST_THEM)
