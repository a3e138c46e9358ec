"""What every store promises about the steps that wait for a person."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.contract.samples import NOW, id_of, insert, new_run, run_id, transition, write

from trunkline.clock import Instant
from trunkline.jsontypes import JsonObject
from trunkline.machine.state import StepState, StepStatus, WaitingFor
from trunkline.stores.base import Store, WaitingStep, WaitPosition, WorkflowVersion

pytestmark = pytest.mark.anyio

DATA: JsonObject = {"id": "call-1", "name": "pay", "args": {"amount": 7}}


def asking(name: str = "a", *, since: int = 1, kind: str = "input") -> StepState:
    waiting = WaitingFor(
        kind="auth" if kind == "auth" else "input",
        text="Which?",
        until=Instant(99),
        data=DATA,
        since=Instant(since),
    )
    return StepState(
        name=name, status="WAITING", attempts=2, replies=1, protocol="a2a-0.3", waiting_for=waiting
    )


def unknown(name: str, *, since: int) -> StepState:
    waiting = WaitingFor(kind="outcome", text="Lost.", since=Instant(since))
    return StepState(name=name, status="OUTCOME_UNKNOWN", attempts=1, waiting_for=waiting)


def busy(name: str, status: StepStatus, waiting: WaitingFor | None = None) -> StepState:
    return StepState(name=name, status=status, attempts=1, waiting_for=waiting)


async def record(store: Store, number: int, *steps: StepState, expected: int = 0) -> None:
    if expected == 0:
        await insert(store, new_run(number))
    assert await write(store, transition(number, expected=expected, steps=steps)) == set()


def places(steps: Sequence[WaitingStep]) -> list[tuple[int, str, str]]:
    return [(step.place.since, step.place.run_id, step.place.step) for step in steps]


async def test_a_step_that_asks_is_given_with_all_that_it_asks(store: Store) -> None:
    await record(store, 1, asking(since=5))
    assert await store.runs.waiting_steps(limit=10) == [
        WaitingStep(
            place=WaitPosition(Instant(5), run_id(1), "a"),
            workflow_id=id_of("w"),
            workflow_name="w",
            workflow_version=1,
            attempts=2,
            replies=1,
            protocol="a2a-0.3",
            waiting_for=WaitingFor(
                kind="input", text="Which?", until=Instant(99), data=DATA, since=Instant(5)
            ),
        )
    ]


async def test_the_oldest_come_first_and_pages_go_on_where_the_last_one_ended(store: Store) -> None:
    await record(store, 1, asking("a", since=7), asking("b", since=3))
    await record(store, 2, asking("a", since=5), asking("c", since=7))
    every = places(await store.runs.waiting_steps(limit=10))
    assert every == [
        (3, run_id(1), "b"),
        (5, run_id(2), "a"),
        (7, run_id(1), "a"),
        (7, run_id(2), "c"),
    ]
    seen: list[WaitingStep] = []
    while page := await store.runs.waiting_steps(limit=1, after=seen[-1].place if seen else None):
        seen += page
    assert places(seen) == every


async def test_kinds_and_workflows_can_be_asked_for(store: Store) -> None:
    await record(store, 1, asking("a", since=1), asking("b", since=2, kind="auth"), unknown("c", since=3))
    assert [step.place.step for step in await store.runs.waiting_steps(limit=9, kind="input")] == ["a"]
    assert [step.place.step for step in await store.runs.waiting_steps(limit=9, kind="auth")] == ["b"]
    assert [step.place.step for step in await store.runs.waiting_steps(limit=9, kind="outcome")] == ["c"]
    assert len(await store.runs.waiting_steps(limit=9, workflow="w")) == 3
    assert await store.runs.waiting_steps(limit=9, workflow="another") == []
    assert [
        step.place.step for step in await store.runs.waiting_steps(limit=9, workflow="w", kind="outcome")
    ] == ["c"]


async def test_a_workflow_is_known_by_its_id_too(store: Store) -> None:
    saved = WorkflowVersion(
        workflow_id=id_of("w"), name="w", version=1, canonical=b"{}", source=b"", created_at=NOW
    )
    async with store.transaction() as tx:
        await tx.workflows.insert_version(saved)
    await record(store, 1, asking())
    assert len(await store.runs.waiting_steps(limit=9, workflow=id_of("w"), kind="input")) == 1
    assert await store.runs.waiting_steps(limit=9, workflow=id_of("v")) == []


async def test_a_step_that_waits_for_no_person_is_not_given(store: Store) -> None:
    retry = WaitingFor(kind="retry", text="Busy.", until=Instant(7))
    remote = WaitingFor(kind="remote", text="It works.")
    await record(store, 1, busy("a", "WAITING", retry), busy("b", "RUNNING", remote), busy("c", "COMPLETED"))
    assert await store.runs.waiting_steps(limit=9) == []


async def test_a_step_that_was_answered_waits_no_more(store: Store) -> None:
    await record(store, 1, asking("a", since=1), asking("b", since=2))
    await record(store, 1, busy("a", "RUNNING"), expected=1)
    assert [step.place.step for step in await store.runs.waiting_steps(limit=9)] == ["b"]
    await record(store, 1, asking("a", since=9), busy("b", "FAILED"), expected=2)
    assert places(await store.runs.waiting_steps(limit=9)) == [(9, run_id(1), "a")]
