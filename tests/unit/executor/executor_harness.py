"""An executor on a real store, without a bridge: tasks that it publishes are kept, answers are put in by hand."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from trunkline.brokers.base import TaskMessage
from trunkline.brokers.memory import MemoryBroker
from trunkline.executor.candidate_lookup import CandidateLookup
from trunkline.executor.child_runs import ChildRuns
from trunkline.executor.driver import RunDriver
from trunkline.executor.event_triggers import EventTriggers
from trunkline.executor.input_sources import Timers, queue_results
from trunkline.executor.run_state_cache import RunStateCache
from trunkline.executor.schedules import Schedules
from trunkline.executor.start_gates import StartGates
from trunkline.ids import RunId
from trunkline.jsontypes import Json, encode
from trunkline.machine.inputs import Input, RunRequested, encode_input
from trunkline.machine.state import StepState
from trunkline.messages import AgentResult, AgentTask, Question, ResultStatus, StepError
from trunkline.services.runs.watchers import RunWatchers
from trunkline.services.workflows import Workflows
from trunkline.stores.base import NewRun, QueuedInput, RunRecord, Store, Transaction, WorkflowVersion
from trunkline.stores.sqlite import open_sqlite
from trunkline.telemetry.metrics import Metrics
from trunkline.testing import FakeClock


class ExecutorHarness:
    def __init__(self, store: Store, clock: FakeClock) -> None:
        self.store = store
        self.clock = clock
        self.published: list[TaskMessage] = []
        self.workflows = Workflows(store)
        self.watchers = RunWatchers()
        self.timers = Timers()
        self.schedules: Schedules | None = None
        self.event_triggers: EventTriggers | None = None
        self.gates: StartGates | None = None
        self.driver = self.another_driver()
        self._runs = 0

    def another_driver(self) -> RunDriver:
        """As a process of its own would have: nothing of what this one keeps in memory."""
        broker: MemoryBroker[Transaction] = MemoryBroker()
        broker.deliver_tasks_to(self._take_tasks)
        return RunDriver(
            broker,
            RunStateCache(self.workflows),
            ChildRuns(self.workflows, Metrics()),
            self.timers,
            self.watchers,
            Metrics(),
            CandidateLookup(self.store),
            schedules=self.schedules,
            event_triggers=self.event_triggers,
            gates=self.gates,
        )

    async def _take_tasks(self, _tx: Transaction, messages: Sequence[TaskMessage]) -> None:
        self.published += messages

    async def start(self, workflow: str, run_input: Json = None) -> RunId:
        """Saves the workflow, starts a run of it, and takes its first turn."""
        run_id = await self.accept((await self.workflows.save(workflow.encode())).version, run_input)
        await self.turn()
        return run_id

    async def accept(self, version: WorkflowVersion, run_input: Json = None, routes: int = 0) -> RunId:
        self._runs += 1
        run_id = RunId(f"018f0000-0000-7000-8000-{self._runs:012}")
        run = NewRun(
            id=run_id,
            workflow_id=version.workflow_id,
            workflow_name=version.name,
            workflow_version=version.version,
            input=encode(run_input),
            correlation_id=f"c-{self._runs}",
            created_at=self.clock.now(),
            routing_version=routes,
        )
        async with self.store.transaction() as tx:
            await tx.runs.insert([run])
        await self.put(run_id, "start", RunRequested())
        return run_id

    async def put(self, run_id: RunId, key: str, item: Input | bytes) -> None:
        payload = item if isinstance(item, bytes) else encode_input(item)
        async with self.store.transaction() as tx:
            await tx.input_queue.put([QueuedInput(run_id, key, payload)])

    async def answer(
        self,
        task: AgentTask,
        status: ResultStatus,
        *,
        output: Json = None,
        error: StepError | None = None,
        question: Question | None = None,
    ) -> None:
        result = AgentResult(
            task_id=task.task_id,
            run_id=task.run_id,
            step=task.step,
            attempt=task.attempt,
            status=status,
            at=self.clock.now(),
            output=msgspec.Raw(encode(output)),
            error=error,
            question=question,
        )
        async with self.store.transaction() as tx:
            await queue_results(tx, [result])

    async def turn(self, driver: RunDriver | None = None) -> None:
        """One turn of the commit loop."""
        driver = driver or self.driver
        async with self.store.transaction() as tx:
            await self.timers.work(tx)
            await driver.work(tx)
        self.timers.committed()
        driver.committed()

    def task(self, step: str) -> AgentTask:
        """The step's latest call."""
        return [task for task in self.published if isinstance(task, AgentTask) and task.step == step][-1]

    async def run(self, run_id: RunId) -> tuple[RunRecord, dict[str, StepState]]:
        found = await self.store.runs.get(run_id)
        assert found is not None
        record, steps = found
        return record, {step.name: step for step in steps}

    async def history(self, run_id: RunId) -> list[str]:
        events = await self.store.runs.events(run_id, after=0, limit=1_000)
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        return [event.type for event in events]


@asynccontextmanager
async def open_executor(folder: Path) -> AsyncGenerator[ExecutorHarness]:
    clock = FakeClock()
    async with open_sqlite(folder / "trunkline.db", clock=clock) as store:
        yield ExecutorHarness(store, clock)
