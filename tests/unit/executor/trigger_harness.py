"""An executor whose clock is moved by hand, with triggers that it fires by their schedules."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path

from tests.unit.executor.executor_harness import ExecutorHarness

from trunkline.clock import Instant
from trunkline.executor.event_triggers import EventTriggers
from trunkline.executor.schedules import Schedules
from trunkline.executor.start_gates import StartGates
from trunkline.ids import RunId
from trunkline.jsontypes import JsonObject, encode
from trunkline.services.commit_loop import CommitLoop
from trunkline.services.migration.routing_table import RoutingTable
from trunkline.services.runs.intake import Intake
from trunkline.services.triggers.starts import TriggeredRuns
from trunkline.services.triggers.triggers import Triggers
from trunkline.stores.base import RunRecord, Store
from trunkline.stores.port.automation.triggers import Firing
from trunkline.stores.sqlite import open_sqlite
from trunkline.telemetry.metrics import Metrics
from trunkline.testing import FakeClock

_START = Instant(1_767_225_600_000_000)
WORKFLOW = "{name: report, steps: {work: {agent: A}}}"


class TriggerHarness(ExecutorHarness):
    def __init__(self, store: Store, clock: FakeClock) -> None:
        super().__init__(store, clock)
        intake = Intake(CommitLoop(store, clock, Metrics()))
        self.triggers = Triggers(store, self.workflows, self._runs_of_triggers(), intake, clock, Metrics())
        self.gate_part = StartGates()
        self.event_part = EventTriggers(self._runs_of_triggers(), self.gate_part, Metrics())
        self.part = self.restart()

    def _runs_of_triggers(self) -> TriggeredRuns:
        return TriggeredRuns(self.workflows, RoutingTable(self.store.agent_events, self.clock))

    def restart(self) -> Schedules:
        """As a process of its own would begin: nothing is known of what was fired before."""
        self.gates = self.gate_part = StartGates()
        self.part = self.schedules = Schedules(self._runs_of_triggers(), self.gate_part, Metrics())
        self.event_triggers = self.event_part = EventTriggers(
            self._runs_of_triggers(), self.gate_part, Metrics()
        )
        self.driver = self.another_driver()
        return self.part

    async def schedule(self, schedule: JsonObject, **fields: object) -> None:
        """Saves the workflow, and a trigger `t` of it."""
        await self.workflows.save(WORKFLOW.encode())
        text = encode({"name": "t", "workflow": "report", "schedule": schedule, **fields})
        await self.triggers.save("t", text)

    async def at(self, **since: float) -> None:
        """Moves the clock, and lets the executor look."""
        self.clock.advance(timedelta(**since))
        await self.look()

    async def look(self) -> None:
        async with self.store.transaction() as tx:
            await self.part.work(tx)
            await self.gate_part.work(tx)
            await self.driver.work(tx)
        self.part.committed()
        self.driver.committed()

    async def listen(self) -> None:
        """Lets the executor look for what has happened since it looked last."""
        self.event_part.look()
        async with self.store.transaction() as tx:
            await self.event_part.work(tx)
            await self.gate_part.work(tx)
            await self.driver.work(tx)
        self.event_part.committed()
        self.driver.committed()

    async def crash(self) -> None:
        """A turn whose transaction never commits."""
        with suppress(_CrashError):
            async with self.store.transaction() as tx:
                await self.part.work(tx)
                raise _CrashError
        self.restart()

    async def firings(self, name: str = "t") -> list[Firing]:
        """Oldest first."""
        return [*await self.triggers.firings(name, limit=1_000)][::-1]

    async def outcomes(self) -> list[str]:
        return [firing.outcome for firing in await self.firings()]

    async def started(self) -> list[RunRecord]:
        """Oldest first."""
        return (await self.store.runs.page(limit=1_000))[::-1]

    async def end(self, run_id: RunId) -> None:
        task = next(task for task in self.published if task.run_id == run_id)
        await self.answer(task, "success", output={})  # pyright: ignore[reportArgumentType] - a task, not its end
        await self.look()


class _CrashError(Exception):
    """The process ends."""


def hour(number: float) -> Instant:
    """That long after the clock began."""
    return Instant(_START + int(number * 3_600_000_000))


@asynccontextmanager
async def open_triggers(folder: Path) -> AsyncGenerator[TriggerHarness]:
    clock = FakeClock()
    async with open_sqlite(folder / "trunkline.db", clock=clock) as store:
        yield TriggerHarness(store, clock)
