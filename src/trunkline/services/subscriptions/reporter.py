"""
Reports changes: puts a delivery, and a callback that sends it, for each subscription that wants a change.

Called in the transaction of the change, so either both happen or neither does. The deliveries of one subscription are
spread over a fixed number of queues by their runs: those of one run stay in their order, and a receiver that is down
is not called once for each run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple
from zlib import crc32

from trunkline.clock import rfc3339
from trunkline.id_generation import new_id
from trunkline.ids import RunId
from trunkline.jsontypes import JsonObject, encode
from trunkline.services.subscriptions.definition import ChangeType, SubscriptionDefinition
from trunkline.services.subscriptions.directory import KnownSubscription, SubscriptionDirectory
from trunkline.stores.base import Transaction
from trunkline.stores.port.automation.callbacks import NewCallback
from trunkline.stores.port.automation.subscriptions import Delivery

CALLBACK_KIND = "subscription"
# As many as requests that one host gets at a time.
LANES = 16
# How many deliveries one statement writes at most.
_BATCH = 500
SOURCE = "/trunkline"


class RunSubject(NamedTuple):
    """The run that a change is about."""

    id: RunId
    workflow: str
    # The number of the event in its history.
    seq: int


class Change(NamedTuple):
    type: ChangeType
    # What it is about: the id of a run, or the name of an agent or a topic.
    subject: str
    data: JsonObject
    run: RunSubject | None = None


class ChangeReporter:
    def __init__(self, directory: SubscriptionDirectory) -> None:
        self._directory = directory

    async def wanted_types(self, tx: Transaction) -> frozenset[str]:
        """Nothing else needs to be reported."""
        return await self._directory.wanted_types(tx)

    async def report(self, tx: Transaction, changes: Sequence[Change]) -> None:
        """In the order in which they happened."""
        if not changes or not await self.wanted_types(tx):
            return
        runs = {change.run.id for change in changes if change.run is not None}
        labels = await tx.subscriptions.labels_of(runs) if runs else {}
        deliveries: list[tuple[Delivery, str]] = []
        for change in changes:
            wanted_by = [
                each for each in self._directory.known if _is_wanted(change, each.definition, labels)
            ]
            if wanted_by:
                deliveries += _deliveries(tx, change, wanted_by, labels)
        # All queues at once: transactions that put into the same ones do not wait for each other.
        for start in range(0, len(deliveries), _BATCH):
            await tx.subscriptions.put_deliveries([each for each, _ in deliveries[start : start + _BATCH]])
        await tx.callbacks.put(
            [
                NewCallback(queue=queue, kind=CALLBACK_KIND, payload=each.id.encode())
                for each, queue in deliveries
            ]
        )


def queue_of(subscription_id: str, run_id: RunId | None) -> str:
    # A transaction reports changes of other things before those of runs, and queues must come in their order.
    if run_id is None:
        return f"{CALLBACK_KIND}/others/{subscription_id}"
    return _lane(subscription_id, crc32(run_id.encode()) % LANES)


def _lane(subscription_id: str, lane: int) -> str:
    return f"{CALLBACK_KIND}/runs/{subscription_id}/{lane:02}"


def queues_of(subscription_id: str) -> list[str]:
    return [queue_of(subscription_id, None), *(_lane(subscription_id, lane) for lane in range(LANES))]


def subscription_of(queue: str) -> str:
    return queue.split("/")[2]


def _is_wanted(
    change: Change, definition: SubscriptionDefinition, labels: dict[RunId, dict[str, str]]
) -> bool:
    if change.type not in definition.types:
        return False
    if change.run is None:
        return True
    if definition.workflow is not None and definition.workflow != change.run.workflow:
        return False
    of_run = labels.get(change.run.id, {})
    return all(of_run.get(key) == value for key, value in definition.labels)


def _deliveries(
    tx: Transaction,
    change: Change,
    wanted_by: Iterable[KnownSubscription],
    labels: dict[RunId, dict[str, str]],
) -> list[tuple[Delivery, str]]:
    event_id, event = _event(tx, change, labels)
    found: list[tuple[Delivery, str]] = []
    for subscription in wanted_by:
        delivery = Delivery(
            id=new_id(),
            subscription_id=subscription.id,
            event_id=event_id,
            type=change.type,
            run_id=None if change.run is None else change.run.id,
            event=event,
            created_at=tx.now,
        )
        found.append((delivery, queue_of(subscription.id, delivery.run_id)))
    return found


def _event(tx: Transaction, change: Change, labels: dict[RunId, dict[str, str]]) -> tuple[str, bytes]:
    """Its id, and the CloudEvent."""
    run = change.run
    event_id = new_id() if run is None else f"{run.id}/{run.seq}"
    event = cloud_event(event_id, change.type, change.subject, rfc3339(tx.now), change.data)
    if run is not None:
        # Extensions: what a receiver filters by, and the order within the run.
        event |= {"workflow": run.workflow, "sequence": str(run.seq)}
        event["data"] = {**change.data, "labels": {**labels.get(run.id, {})}}
    return event_id, encode(event)


def cloud_event(event_id: str, type_: str, subject: str, time: str, data: JsonObject) -> JsonObject:
    return {
        "specversion": "1.0",
        "id": event_id,
        "source": SOURCE,
        "type": type_,
        "subject": subject,
        "time": time,
        "datacontenttype": "application/json",
        "data": data,
    }
