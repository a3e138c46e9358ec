"""Messages for runs that do not exist: late ones are dropped and counted, others become dead letters."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest
from tests.contract.samples import insert, new_run, task
from tests.unit.services.messaging.test_deliveries import FakeSource, letters, turn

from trunkline.brokers.base import TaskMessage
from trunkline.clock import Instant
from trunkline.id_generation import new_id
from trunkline.ids import made_at
from trunkline.messages import AgentTask
from trunkline.messages.codec import encode_task
from trunkline.services.messaging.deliveries import task_deliveries
from trunkline.services.messaging.orphan_messages import OrphanMessages
from trunkline.stores.base import Store, Transaction
from trunkline.telemetry.metrics import Metrics

pytestmark = pytest.mark.anyio

LATE = "trunkline_late_messages_total 1.0"
# Long before the clock of the tests.
OLD = "00000000-0000-7000-8000-000000000000"


async def deliver(store: Store, run_id: str, keep: timedelta) -> tuple[list[str], Metrics]:
    """What is taken of a message for a run that exists and one for `run_id`."""
    taken: list[str] = []

    async def take(_tx: Transaction, messages: Sequence[TaskMessage]) -> None:
        taken.extend(message.run_id for message in messages)

    await insert(store, new_run(1))
    metrics = Metrics()
    orphan = AgentTask(task_id=f"{run_id}/a/0", run_id=run_id, step="a", agent="A")
    source = FakeSource(encode_task(task(1), "tasks"), encode_task(orphan, "tasks"))
    await turn(store, task_deliveries(source, take, metrics, OrphanMessages(keep, metrics)))
    assert source.records == []
    return taken, metrics


@pytest.mark.parametrize("run_id", [new_id(), "no id at all"], ids=["young", "no-id"])
async def test_a_message_for_a_run_that_never_was_is_a_dead_letter(store: Store, run_id: str) -> None:
    taken, metrics = await deliver(store, run_id, timedelta(days=30))
    assert taken == [task(1).run_id]
    assert [f"There is no run {run_id}." in letter.reason for letter in await letters(store)] == [True]
    assert LATE not in metrics.render().decode()


async def test_a_message_for_a_run_that_is_old_enough_to_be_deleted_is_dropped_and_counted(
    store: Store,
) -> None:
    taken, metrics = await deliver(store, OLD, timedelta(days=30))
    assert taken == [task(1).run_id]
    assert await letters(store) == []
    assert LATE in metrics.render().decode()


async def test_where_runs_are_kept_for_ever_none_is_late(store: Store) -> None:
    await deliver(store, OLD, timedelta(0))
    assert len(await letters(store)) == 1


def test_an_id_tells_when_it_was_made() -> None:
    assert made_at("0000000003e8-7000-8000-000000000000") is None
    assert made_at("00000000-03e8-7000-8000-000000000000") == Instant(1_000_000)
