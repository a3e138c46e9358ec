"""What every store promises about lists of runs: what is asked for, in order, at the cost of what is given."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import apsw
import msgspec
import pytest
from tests.contract.samples import NOW, id_of, insert, new_run, run_id, transition, write

from trunkline.machine.state import RUN_STATUSES, RunStatus
from trunkline.stores.base import NewRun, ParentStep, RunRecord, Store, WorkflowVersion
from trunkline.stores.port.run_filters import ANY_RUN, RunFilter, VersionKey
from trunkline.stores.port.workflows import SavedVersion
from trunkline.stores.postgres.database.connection import connect
from trunkline.stores.postgres.tables import run_lists as postgres_lists
from trunkline.stores.sqlite.tables import run_lists as sqlite_lists

pytestmark = pytest.mark.anyio

PAGE = 7
NAMES = ("a", "b", "c")
FILTERS = {
    "nothing": ANY_RUN,
    "a status": RunFilter(statuses=("FAILED",)),
    "statuses": RunFilter(statuses=("FAILED", "RUNNING", "WAITING")),
    "a workflow": RunFilter(workflows=("b",)),
    "workflows": RunFilter(workflows=("a", "c")),
    "no workflow": RunFilter(workflows=()),
    "a workflow in a state": RunFilter(workflows=("a",), statuses=("RUNNING",)),
    "versions": RunFilter(versions=(VersionKey("a", 1), VersionKey("b", 2))),
    "versions in states": RunFilter(
        versions=(VersionKey("a", 2), VersionKey("c", 1)), statuses=("COMPLETED", "FAILED")
    ),
    "no version": RunFilter(versions=()),
    "top": RunFilter(with_children=False),
    "top in a state": RunFilter(with_children=False, statuses=("RUNNING", "FAILED")),
    "top of a workflow": RunFilter(with_children=False, workflows=("a",)),
    "top of versions": RunFilter(with_children=False, versions=(VersionKey("a", 1),), statuses=("FAILED",)),
    "a correlation": RunFilter(correlation_id="c-3"),
    "a correlation in a state": RunFilter(correlation_id="c-3", statuses=("RUNNING", "FAILED")),
    "a correlation of versions": RunFilter(correlation_id="c-3", versions=(VersionKey("a", 1),)),
    "children": RunFilter(parent=run_id(1)),
    "children of a correlation": RunFilter(parent=run_id(1), correlation_id="c-3"),
    "children in a state": RunFilter(parent=run_id(1), statuses=("RUNNING",)),
    "children of a workflow": RunFilter(parent=run_id(1), workflows=("b",)),
    "a span": RunFilter(lowest=run_id(10), below=run_id(30)),
    "a span in a state": RunFilter(lowest=run_id(10), below=run_id(30), statuses=("RUNNING", "FAILED")),
    "nobody": RunFilter(parent=run_id(999)),
    "a label": RunFilter(labels=(("customer", "acme"),)),
    "labels": RunFilter(labels=(("customer", "acme"), ("even", "yes"))),
    "a label in a state": RunFilter(labels=(("even", "yes"),), statuses=("RUNNING", "FAILED")),
    "a label of a workflow": RunFilter(labels=(("even", "yes"),), workflows=("a",)),
    "a label of versions": RunFilter(labels=(("even", "yes"),), versions=(VersionKey("a", 1),)),
    "a label on top": RunFilter(labels=(("customer", "acme"),), with_children=False),
    "a label in a span": RunFilter(labels=(("even", "yes"),), lowest=run_id(10), below=run_id(30)),
    "a label of a correlation": RunFilter(labels=(("even", "yes"),), correlation_id="c-3"),
    "labels of children": RunFilter(labels=(("customer", "acme"), ("even", "yes")), parent=run_id(1)),
    "no such label": RunFilter(labels=(("customer", "yes"),)),
    "no run with both": RunFilter(labels=(("customer", "acme"), ("customer", "other"))),
}
Records: TypeAlias = Sequence[RunRecord]


def kind_of(number: int) -> NewRun:
    """Every fourth one is a child of the first run, and every eighth one a block of it."""
    run = msgspec.structs.replace(
        new_run(number, workflow=NAMES[number % 3]),
        workflow_version=1 + number // 3 % 2,
        correlation_id=f"c-{number % 5}",
        labels=labels_of(number),
    )
    if number > 1 and number % 4 == 0:
        block = "call" if number % 8 == 0 else None
        return msgspec.structs.replace(run, parent=ParentStep(run_id(1), "call"), depth=1, block=block)
    return run


def labels_of(number: int) -> dict[str, str]:
    labels = {"customer": "acme" if number % 6 == 4 else "other"} if number % 3 else {}
    return labels | ({} if number % 2 else {"even": "yes"})


def status_of(number: int) -> RunStatus:
    return RUN_STATUSES[number * 11 // 3 % len(RUN_STATUSES)]


async def fill(store: Store, numbers: Iterable[int]) -> None:
    all_of_them = list(numbers)
    await insert(store, *map(kind_of, all_of_them))
    await write(store, *(transition(number, status=status_of(number)) for number in all_of_them))


def fits(run: RunRecord, where: RunFilter) -> bool:
    return (
        (not where.statuses or run.status in where.statuses)
        and (where.workflows is None or run.workflow_name in where.workflows)
        and (where.versions is None or (run.workflow_name, run.workflow_version) in where.versions)
        and (where.correlation_id is None or run.correlation_id == where.correlation_id)
        and (where.parent is None or (run.parent is not None and run.parent.run_id == where.parent))
        and (where.with_children or run.parent is None)
        and (run.block is None or where.parent is not None)
        and all(run.labels.get(key) == value for key, value in where.labels)
        and (where.lowest is None or run.id >= where.lowest)
        and (where.below is None or run.id < where.below)
    )


async def read(store: Store, where: RunFilter) -> list[RunRecord]:
    """Page by page."""
    seen: list[RunRecord] = []
    while page := await store.runs.page(limit=PAGE, before=seen[-1].id if seen else None, where=where):
        assert len(page) <= PAGE
        seen += page
    return seen


async def test_a_list_has_all_that_is_asked_for_and_nothing_else_newest_first(store: Store) -> None:
    await fill(store, range(1, 61))
    every = await store.runs.page(limit=100)
    blocks = [run for run in await read(store, RunFilter(parent=run_id(1))) if run.block is not None]
    every = sorted([*every, *blocks], key=lambda run: run.id, reverse=True)
    assert [run.id for run in every] == [run_id(number) for number in range(60, 0, -1)]
    for what, where in FILTERS.items():
        expected = [run for run in every if fits(run, where)]
        assert await read(store, where) == expected, what
        assert bool(expected) is (not what.startswith("no")) or what == "nothing", what


async def test_a_list_without_payloads_has_all_but_input_and_output(store: Store) -> None:
    await fill(store, [1])
    (full,) = await store.runs.page(limit=1)
    (light,) = await store.runs.page(limit=1, payloads=False)
    assert full.input == b'{"n":1}'
    assert not light.input
    assert not light.output
    light.input, light.output = full.input, full.output
    assert light == full


async def test_an_id_that_is_none_finds_nothing(store: Store) -> None:
    await fill(store, [1, 4])
    strange = RunFilter(parent=type(run_id(1))("nobody's"))
    assert await store.runs.page(limit=10, where=strange) == []


async def test_every_saved_version_is_reported_by_name(store: Store) -> None:
    assert await store.workflows.all_versions() == []
    async with store.transaction() as tx:
        for name, version in (("b", 1), ("a", 1), ("b", 2)):
            await tx.workflows.insert_version(
                WorkflowVersion(
                    workflow_id=id_of(name),
                    name=name,
                    version=version,
                    canonical=b"{}",
                    source=b"",
                    created_at=NOW,
                )
            )
    assert await store.workflows.all_versions() == [
        SavedVersion(id_of("a"), "a", 1),
        SavedVersion(id_of("b"), "b", 1),
        SavedVersion(id_of("b"), "b", 2),
    ]


# What a page costs: of one kind of run there are ever more, and of the kinds below only these.
RARE = {
    "a status": (RunFilter(statuses=("FAILED",)), 5),
    "statuses": (RunFilter(statuses=("FAILED", "WAITING")), 5),
    "a workflow": (RunFilter(workflows=("rare",)), 6),
    "versions": (RunFilter(versions=(VersionKey("rare", 1), VersionKey("rare", 2))), 6),
    "versions in a state": (RunFilter(versions=(VersionKey("usual", 1),), statuses=("FAILED",)), 7),
    "a usual version": (RunFilter(versions=(VersionKey("usual", 1),)), None),
    "top": (RunFilter(with_children=False), 1),
    "top in a state": (RunFilter(with_children=False, statuses=("FAILED",)), 5),
    "a correlation": (RunFilter(correlation_id="c-7"), 7),
    "children": (RunFilter(parent=run_id(2)), 8),
    "a span": (RunFilter(lowest=run_id(5), below=run_id(8)), 5),
    "a label": (RunFilter(labels=(("customer", "rare"),)), 3),
    "a usual label": (RunFilter(labels=(("team", "all"),)), None),
    # Whichever of them is named first.
    "a rare label and a usual one": (RunFilter(labels=(("team", "all"), ("customer", "rare"))), 3),
    "an empty span": (RunFilter(lowest=run_id(100_000), statuses=("PENDING",)), None),
}
FIRST = range(1, 9)


def usual(number: int) -> NewRun:
    """Most runs are children or blocks of the first one; some of the first eight are something rare."""
    run = msgspec.structs.replace(
        new_run(number, workflow="rare" if number == 6 else "usual"),
        correlation_id=f"c-{number}" if number in FIRST else "same",
        labels={"team": "all"} | ({"customer": "rare"} if number in FIRST else {}),
    )
    if number in {1, 5}:
        return run
    block = "call" if number > FIRST.stop and number % 2 else None
    parent = ParentStep(run_id(2 if number == 8 else 1), "call")
    return msgspec.structs.replace(run, parent=parent, depth=1, block=block)


async def grow(store: Store, numbers: Iterable[int]) -> None:
    all_of_them = list(numbers)
    await insert(store, *map(usual, all_of_them))
    failed = [number for number in (5, 7) if number in all_of_them]
    await write(store, *(transition(number, status="FAILED") for number in failed))


async def test_a_page_costs_as_much_among_thousands_of_runs_as_among_a_few(
    store: Store, is_shared: bool, request: pytest.FixtureRequest
) -> None:
    """Measured in the steps of SQLite's machine, and in the rows and pages that PostgreSQL has looked at."""
    cost: Callable[[RunFilter], Any] = (
        rows_read(str(request.getfixturevalue("postgres_url")))
        if is_shared
        else steps_done(request.getfixturevalue("tmp_path") / "trunkline.db")
    )
    asked = {"nothing": ANY_RUN, **{what: where for what, (where, _) in RARE.items()}}
    if is_shared:
        # It ends a walk where the key ends, not where the span does.
        del asked["an empty span"]
    await grow(store, range(1, 201))
    before = {what: await cost(where) for what, where in asked.items()}
    for start in range(201, 3_001, 400):
        await grow(store, range(start, start + 400))
    after = {what: await cost(where) for what, where in asked.items()}
    for what, (where, number) in RARE.items():
        found = [run.id for run in await store.runs.page(limit=PAGE, where=where)]
        assert number is None or run_id(number) in found, what
    dearer = {what: (before[what], after[what]) for what in asked if after[what] > before[what] * 1.3 + 10}
    assert dearer == {}


def steps_done(file: Path) -> Callable[[RunFilter], Any]:
    async def cost(where: RunFilter) -> int:
        steps: list[int] = []

        def profile(event: dict[str, Any]) -> None:
            steps.append(event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"])

        db = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            db.trace_v2(apsw.SQLITE_TRACE_PROFILE, profile)  # pyright: ignore[reportUnknownMemberType] - untyped
            sqlite_lists.page_of_runs(db, limit=PAGE, before=None, where=where, payloads=False)
        finally:
            db.close()
        assert steps
        return sum(steps)

    return cost


def rows_read(url: str) -> Callable[[RunFilter], Any]:
    def of(plan: dict[str, Any]) -> float:
        own = plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)
        return plan["Actual Loops"] * own + sum(map(of, plan.get("Plans", ())))

    async def cost(where: RunFilter) -> float:
        db = await connect(url)
        costs: list[float] = []
        try:
            where = await postgres_lists.rarest_label_first(db, where)
            sql, values = postgres_lists.statement(limit=PAGE, before=None, where=where, payloads=False)
            await db.command("ANALYZE runs, run_labels")
            # A statement that comes often is planned for whatever values.
            for mode in ("force_custom_plan", "force_generic_plan"):
                await db.command(f"SET plan_cache_mode = {mode}")
                ((text,),) = await db.rows(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}", *values)
                plan = json.loads(text)[0]["Plan"]
                costs.append(of(plan) + plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])
        finally:
            await db.close()
        return max(costs)

    return cost
