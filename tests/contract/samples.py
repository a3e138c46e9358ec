"""Runs, transitions and tasks to put into a store."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import timedelta

from trunkline.clock import Instant, after
from trunkline.ids import RunId
from trunkline.jsontypes import encode
from trunkline.machine.state import RunState, RunStatus, StepState
from trunkline.messages import AgentTask
from trunkline.stores.base import (
    EventRecord,
    NewRun,
    QueuedInput,
    QueuedTask,
    Store,
    TaskKey,
    Timer,
    Transition,
    WokenRun,
)
from trunkline.workflow import StepDefinition, WorkflowDefinition, compile_workflow

NOW = Instant(1_767_225_600_000_000)
WORKFLOW = compile_workflow(
    WorkflowDefinition(
        name="w", steps={name: StepDefinition(name=name, agent="A") for name in ("a", "b", "c")}
    )
)


def id_of(name: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, name))


def run_id(number: int) -> RunId:
    return RunId(f"018f0000-0000-7000-8000-{number:012}")


def new_run(
    number: int, *, workflow: str = "w", key: str | None = None, digest: bytes | None = None
) -> NewRun:
    return NewRun(
        id=run_id(number),
        workflow_id=id_of(workflow),
        workflow_name=workflow,
        workflow_version=1,
        input=b'{"n":1}',
        correlation_id=f"c-{number}",
        created_at=NOW,
        idempotency_key=key,
        request_digest=digest,
    )


async def insert(store: Store, *runs: NewRun) -> None:
    async with store.transaction() as tx:
        await tx.runs.insert(runs)


def item(number: int, key: str, payload: bytes = b"{}") -> QueuedInput:
    return QueuedInput(run_id(number), key, payload)


def inputs_of(run: WokenRun) -> list[bytes]:
    """What a run takes in, encoded."""
    return [item if isinstance(item, bytes) else encode(item) for _, item in run.items]


async def put(store: Store, *items: QueuedInput) -> None:
    async with store.transaction() as tx:
        await tx.input_queue.put(items)


async def woken(store: Store, limit: int = 100) -> list[WokenRun]:
    """What is woken, without taking it."""
    async with store.transaction() as tx:
        return await tx.input_queue.claim_runs(limit)


def state_of(number: int, *, status: RunStatus = "RUNNING", version: int = 1, seq: int = 0) -> RunState:
    return RunState(
        id=run_id(number),
        workflow=WORKFLOW,
        correlation_id=f"c-{number}",
        input=b'{"n":1}',
        created_at=NOW,
        status=status,
        version=version,
        seq=seq,
    )


def transition(
    number: int,
    *,
    expected: int = 0,
    status: RunStatus = "RUNNING",
    steps: Sequence[StepState] = (),
    events: Sequence[EventRecord] = (),
    applied: Sequence[int] = (),
    timers: Sequence[Timer] = (),
    dropped: Sequence[str] = (),
    finished_at: Instant | None = None,
) -> Transition:
    state = state_of(
        number, status=status, version=expected + 1, seq=max((event.seq for event in events), default=0)
    )
    state.finished_at = finished_at
    return Transition(
        state=state,
        expected_version=expected,
        changed_steps=steps,
        events=events,
        applied=applied,
        timers=timers,
        dropped_timers=dropped,
    )


async def write(store: Store, *transitions: Transition) -> set[RunId]:
    async with store.transaction() as tx:
        return await tx.runs.write_transitions(transitions)


def event(seq: int, kind: str = "StepStarted", data: bytes = b'{"step":"a"}') -> EventRecord:
    return EventRecord(seq, kind, after(NOW, timedelta(seconds=seq)), data)


def timer(number: int, key: str, seconds: float, payload: bytes = b"{}") -> Timer:
    return Timer(run_id(number), key, after(NOW, timedelta(seconds=seconds)), payload)


def task(
    number: int,
    *,
    agent: str = "A",
    step: str = "a",
    attempt: int = 1,
    at_most_once: bool = False,
    pool: str | None = None,
) -> AgentTask:
    return AgentTask(
        task_id=f"{run_id(number)}/{step}/0",
        input_data={"n": number, "text": "ü \u0000"},
        correlation_id=f"c-{number}",
        run_id=run_id(number),
        step=step,
        attempt=attempt,
        agent=agent,
        at_most_once=at_most_once,
        pool=pool,
    )


def number_of(made: AgentTask) -> int:
    return int(made.run_id[-12:])


def key_of(made: AgentTask) -> TaskKey:
    return TaskKey(made.task_id, made.attempt)


def queued(made: AgentTask) -> QueuedTask:
    return QueuedTask(made, encode(made))


async def queue(store: Store, *tasks: AgentTask) -> list[bytes]:
    """Their runs exist from here on."""
    async with store.transaction() as tx:
        wanted = {made.run_id: number_of(made) for made in tasks}
        missing = await tx.runs.unknown([RunId(run) for run in wanted])
        await tx.runs.insert([new_run(wanted[run]) for run in sorted(missing)])
        return await tx.tasks.put([queued(each) for each in tasks])
