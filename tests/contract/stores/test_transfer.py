"""What every store promises about moving: whatever one store gives away another takes, and it reads the same."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from tests.contract.bridges import LEASE, ME, answer, claim, done, hold, numbers, reclaim, stop, taken
from tests.contract.samples import (
    NOW,
    event,
    id_of,
    insert,
    item,
    key_of,
    new_run,
    put,
    queue,
    run_id,
    task,
    timer,
    transition,
    woken,
    write,
)
from tests.contract.stores.test_agent_events import check, comparison, new_event
from tests.contract.stores.test_agents import FULL
from tests.contract.stores.test_dead_letters import letter
from tests.contract.stores.test_outbox import dispatch_all, due, message, send, take

from trunkline.errors import Conflict, DataInUse
from trunkline.executor.input_sources import queue_results
from trunkline.jsontypes import decode, encode
from trunkline.machine.state import StepState
from trunkline.messages import AgentResult, CancelTask, StepError, TraceContext
from trunkline.messages.codec import encode_task
from trunkline.services.operations.store_transfer import export_store, import_store
from trunkline.stores.base import ApiKey, ExchangeRecord, ExportRecord, ParentStep, Store, WorkflowVersion
from trunkline.stores.port.transfer import AGENTS, DISPATCHES, RUNS, TABLES, TableRow, TransferTable
from trunkline.stores.sqlite import open_sqlite
from trunkline.testing import FakeClock

pytestmark = pytest.mark.anyio

TRACE = TraceContext("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "congo=t61rcWkgMzE")
# What a person or an agent may write, and one database or the other refuses.
ODD = "ü 漢字 \u0000 \u001a \u001a0000"

SOURCE = "a process at the source"


def no_progress(table: str, rows: int) -> None:
    del table, rows


async def fill(store: Store) -> None:
    """A bit of everything; nearly every column is set somewhere."""
    config = {"text": ODD, "n": [1, None, {"b": 2.5, "a": True}]}
    version = WorkflowVersion(
        workflow_id=id_of("w"), name="w", version=1, canonical=b"{}", source=b"\x00\xff", created_at=NOW
    )
    async with store.transaction() as tx:
        await tx.agents.insert(msgspec.structs.replace(FULL, description=ODD, protocol_config=config))
        await tx.workflows.insert_version(version)
        await tx.workflows.insert_version(msgspec.structs.replace(version, version=2))
        await tx.schemas.put("review", b"{}")
        await tx.keys.insert(
            ApiKey(id=id_of("key"), name="ci", role="admin", digest=b"digest", created_at=NOW)
        )
    second = msgspec.structs.replace(new_run(2), retry_of=run_id(1), correlation_id=ODD, trace=TRACE)
    child = msgspec.structs.replace(
        new_run(3),
        parent=ParentStep(run_id(1), ODD),
        depth=1,
        routing_version=7,
        started_by="ann",
        labels={"customer": "ü 漢字", "team": "a:b"},
    )
    await insert(store, new_run(1, key="once", digest=b"\x00\x01"), second, child)
    # Begun in this order.
    steps = [StepState(name=name, status="RUNNING", attempts=2, context_id=ODD) for name in ("b", "c", "a")]
    steps[1].error, steps[1].warnings = StepError(code="agent_error", message=ODD), (ODD,)
    steps[1].reply, steps[1].remote_task_id, steps[1].started_at = b"\x00", ODD, NOW
    await write(
        store,
        transition(1, steps=steps, events=[event(1), event(2)], timers=[timer(1, "t", 60)]),
        transition(2, status="COMPLETED", events=[event(1)], finished_at=NOW),
    )
    await put(store, item(1, "waits", b"\x00payload"), item(3, "start"))
    await queue(store, task(1), task(1, step="b", pool="gpu"), task(1, step="c", at_most_once=True), task(3))
    first, second_claim = await claim(store, limit=2)
    await answer(store, taken(first), msgspec.structs.replace(done(second_claim), result=b"\x00"))
    await stop(store, key_of(task(1, step="tombstone")))
    async with store.transaction() as tx:
        await tx.exchanges.put([ExchangeRecord(run_id(1), ODD, 1, b'{"n":1}')])
        await tx.dead_letters.put([letter(1)])
        await tx.agent_events.put([new_event(FULL.id), new_event(FULL.id, "card_changed")])
        await tx.checks.put(check(1, FULL.id), 10)
        await tx.comparisons.put([comparison(1, FULL.id)], 10)
    await dispatch_all(store, task(1))
    await send(store, message(1))


async def rows_of(store: Store, table: TransferTable) -> list[TableRow]:
    """Sorted, and JSON in one way."""
    async with store.transaction() as tx:
        found = [tuple(row) async for batch in tx.transfer.dump(table) for row in batch]
    if table is AGENTS:
        place = AGENTS.place("protocol_config")
        found = [(*row[:place], _normal(row[place]), *row[place + 1 :]) for row in found]
    return sorted(found, key=repr)


def _normal(text: object) -> str:
    return repr(sorted(dict(decode(str(text))).items()))  # pyright: ignore[reportArgumentType, reportCallIssue, reportUnknownMemberType, reportUnknownArgumentType] - an object


async def everything(store: Store, *, but: TransferTable | None = None) -> dict[str, list[TableRow]]:
    return {table.name: await rows_of(store, table) for table in TABLES if table is not but}


async def move(source: Store, target: Store, file: Path, clock: FakeClock, *, travels: bool = True) -> None:
    # Whoever held a lease is gone.
    clock.advance(LEASE * 2)
    await export_store(source, file, no_progress)
    await import_store(target, file, no_progress, hand_over=None if travels else queue_results)


async def test_everything_arrives_as_it_left_and_comes_back_the_same(
    store: Store, clock: FakeClock, tmp_path: Path
) -> None:
    async with (
        open_sqlite(tmp_path / "first.db", clock=clock) as first,
        open_sqlite(tmp_path / "last.db", clock=clock) as last,
    ):
        await fill(first)
        await move(first, store, tmp_path / "there", clock)
        await move(store, last, tmp_path / "back", clock)
        assert await everything(store, but=DISPATCHES) == await everything(first, but=DISPATCHES)
        assert await everything(last, but=DISPATCHES) == await everything(store, but=DISPATCHES)
        # When they are sent again is another matter.
        sent = slice(0, DISPATCHES.place("pause"))
        assert [row[sent] for row in await rows_of(last, DISPATCHES)] == [
            row[sent] for row in await rows_of(store, DISPATCHES)
        ]
        run = await first.runs.get(run_id(1))
        assert run is not None
        assert [step.name for step in run[1]] == ["b", "c", "a"]
        child = await first.runs.get(run_id(3))
        assert child is not None
        assert (child[0].parent, child[0].depth, child[0].routing_version) == (
            ParentStep(run_id(1), ODD),
            1,
            7,
        )
        for other in (store, last):
            assert await other.runs.get(run_id(1)) == run
            assert await other.runs.get(run_id(3)) == child
            assert await other.runs.events(run_id(1), after=0, limit=10) == [event(1), event(2)]


async def test_what_this_store_has_arrives_in_another(store: Store, clock: FakeClock, tmp_path: Path) -> None:
    await fill(store)
    async with open_sqlite(tmp_path / "other.db", clock=clock) as other:
        await move(store, other, tmp_path / "file", clock)
        assert await everything(other, but=DISPATCHES) == await everything(store, but=DISPATCHES)


async def test_secrets_and_keys_stay_behind(store: Store, clock: FakeClock, tmp_path: Path) -> None:
    async with open_sqlite(tmp_path / "first.db", clock=clock) as first:
        await fill(first)
        clock.advance(LEASE * 2)
        await export_store(first, tmp_path / "file", no_progress)
        imported = await import_store(store, tmp_path / "file", no_progress)
    agent = await store.agents.get("Full")
    assert agent is not None
    assert (agent.secret, agent.auth_type, agent.id) == (None, "bearer", FULL.id)
    assert (agent.options, agent.dialect) == (FULL.options, FULL.dialect)
    assert await store.keys.page(limit=10) == []
    assert (imported.agents_without_secret, imported.unfinished_runs) == (["Full"], 2)
    assert imported.counts["runs"] == 3


async def test_rows_that_come_later_are_numbered_after_those_that_were_moved(
    store: Store, clock: FakeClock, tmp_path: Path
) -> None:
    async with open_sqlite(tmp_path / "first.db", clock=clock) as first:
        await fill(first)
        await move(first, store, tmp_path / "file", clock)
    await put(store, item(1, "later"))
    await write(store, transition(3, events=[event(1)]))
    await queue(store, task(3, step="later"))
    await send(store, message(2))
    assert await take(store) == [message(1), message(2)]
    (run,) = [each for each in await woken(store) if each.run_id == run_id(1)]
    assert [payload for _, payload in run.items] == [b"\x00payload", b"{}"]


async def test_an_idempotency_key_is_known_in_the_other_store(
    store: Store, clock: FakeClock, tmp_path: Path
) -> None:
    async with open_sqlite(tmp_path / "first.db", clock=clock) as first:
        await fill(first)
        await move(first, store, tmp_path / "file", clock)
    async with store.transaction() as tx:
        (existing,) = await tx.runs.insert([new_run(9, key="once", digest=b"\x00\x01")])
    assert existing is not None
    assert existing.id == run_id(1)


# --- what was on its way


async def test_tasks_that_have_not_ended_are_sent_again_where_they_travel(
    store: Store, clock: FakeClock, tmp_path: Path
) -> None:
    async with open_sqlite(tmp_path / "first.db", clock=clock) as first:
        await queue(first, task(1), task(2))
        await claim(first, SOURCE, limit=1)
        await move(first, store, tmp_path / "file", clock)
    await reclaim(store)
    assert numbers(await claim(store)) == {run_id(1), run_id(2)}
    clock.advance(timedelta(seconds=30))
    assert set(await due(store)) == {key_of(task(1)), key_of(task(2))}


async def test_where_nothing_travels_what_was_under_way_is_handed_over(
    store: Store, clock: FakeClock, tmp_path: Path
) -> None:
    result = AgentResult(
        task_id=task(1).task_id, run_id=run_id(1), step="a", attempt=1, status="success", at=NOW
    )
    async with open_sqlite(tmp_path / "first.db", clock=clock) as first:
        # The result of the first was on its way, the second had not reached a bridge, the third was to be stopped.
        await queue(first, task(1), task(3))
        (claimed,) = [each for each in await claim(first, SOURCE) if each.task.run_id == run_id(1)]
        await answer(first, msgspec.structs.replace(done(claimed), result=encode(result)), owner=SOURCE)
        await insert(first, new_run(2))
        await dispatch_all(first, task(1), task(2), task(3))
        cancel = CancelTask(task_id=task(3).task_id, attempt=1, run_id=run_id(3))
        await send(first, message(1), encode_task(cancel, "tasks"))
        await move(first, store, tmp_path / "file", clock, travels=False)
    assert [run.run_id for run in await woken(store)] == [run_id(1)]
    assert [each.task.run_id for each in (await reclaim(store)).stopped] == [run_id(3)]
    assert numbers(await claim(store)) == {run_id(2)}
    assert await take(store) == []
    clock.advance(timedelta(hours=1))
    assert await due(store) == []


async def test_tasks_of_runs_that_have_ended_end_too(store: Store, clock: FakeClock, tmp_path: Path) -> None:
    async with open_sqlite(tmp_path / "first.db", clock=clock) as first:
        await queue(first, task(1), task(2), task(3))
        (claimed,) = await claim(first, SOURCE, limit=1)
        await write(first, *(transition(number, status="FAILED", finished_at=NOW) for number in (1, 2)))
        await dispatch_all(first, task(1), task(2))
        await move(first, store, tmp_path / "file", clock)
    assert [each.key for each in (await reclaim(store)).stopped] == [claimed.key]
    assert numbers(await claim(store)) == {run_id(3)}
    async with store.transaction() as tx:
        assert set(await tx.dispatches.payloads([key_of(task(number)) for number in (1, 2, 3)])) == {
            key_of(task(3))
        }


# --- what is refused


async def test_a_store_says_when_it_was_exported(store: Store, clock: FakeClock, tmp_path: Path) -> None:
    assert await store.transfer.export_record() is None
    await export_store(store, tmp_path / "first", no_progress)
    clock.advance(timedelta(hours=1))
    await export_store(store, tmp_path / "second", no_progress)
    assert await store.transfer.export_record() == ExportRecord(at=NOW)
    with pytest.raises(Conflict, match="was exported at 2026-01-01T00:00:00"):
        await import_store(store, tmp_path / "first", no_progress)


async def test_a_store_with_claimed_tasks_is_not_exported(
    store: Store, clock: FakeClock, tmp_path: Path, is_shared: bool
) -> None:
    await hold(store, ME)
    if is_shared:
        with pytest.raises(DataInUse, match="Other Trunkline processes"):
            await export_store(store, tmp_path / "file", no_progress)
        assert await store.transfer.export_record() is None
        assert list(tmp_path.iterdir()) == []
        clock.advance(LEASE * 2)
    await export_store(store, tmp_path / "file", no_progress)


@pytest.mark.parametrize("table", ["agents", "runs", "outbox"])
async def test_a_store_that_has_anything_takes_nothing(
    store: Store, clock: FakeClock, tmp_path: Path, table: str
) -> None:
    async with open_sqlite(tmp_path / "first.db", clock=clock) as first:
        await fill(first)
        clock.advance(LEASE * 2)
        await export_store(first, tmp_path / "file", no_progress)
    match table:
        case "agents":
            async with store.transaction() as tx:
                await tx.agents.insert(FULL)
        case "runs":
            await insert(store, new_run(7))
        case _:
            await send(store, message(7))
    before = await everything(store)
    with pytest.raises(Conflict, match=f"already contains {table}"):
        await import_store(store, tmp_path / "file", no_progress)
    assert await everything(store) == before


async def test_an_import_that_fails_in_the_middle_leaves_nothing(
    store: Store, clock: FakeClock, tmp_path: Path
) -> None:
    def fail(table: str, rows: int) -> None:
        del rows
        if table == "tasks":
            raise RuntimeError("on purpose")

    async with open_sqlite(tmp_path / "first.db", clock=clock) as first:
        await fill(first)
        clock.advance(LEASE * 2)
        await export_store(first, tmp_path / "file", no_progress)
    with pytest.raises(RuntimeError, match="on purpose"):
        await import_store(store, tmp_path / "file", fail)
    assert all(rows == [] for rows in (await everything(store)).values())
    await import_store(store, tmp_path / "file", no_progress)
    assert len(await rows_of(store, RUNS)) == 3


async def test_an_export_that_fails_in_the_middle_leaves_the_store_in_use_and_no_file(
    store: Store, clock: FakeClock, tmp_path: Path
) -> None:
    def fail(table: str, rows: int) -> None:
        del rows
        if table == "tasks":
            raise RuntimeError("on purpose")

    await fill(store)
    clock.advance(LEASE * 2)
    with pytest.raises(RuntimeError, match="on purpose"):
        await export_store(store, tmp_path / "file", fail)
    assert await store.transfer.export_record() is None
    assert [path.name for path in tmp_path.iterdir() if "file" in path.name] == []
    await put(store, item(1, "goes on"))
