"""
Agents that were updated in place: with `auto`, an agent that starts to speak another protocol is called in it at once.

No migration protects such a change, so its first calls are compared with recorded ones: the inputs of the last calls in
the old dialect are sent again, and their answers compared with the recorded outputs. The result is an agent event.
Only agents that are declared `repeatable` get their recorded calls again; for the others the event says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

import msgspec
import structlog

from trunkline.agents import Agent, Dialect
from trunkline.agents.migration.comparison import AnswerComparison
from trunkline.bridge.agents.routes import AgentRouter, Route
from trunkline.bridge.calls.detached import DetachedResult
from trunkline.bridge.calls.results import task_log
from trunkline.bridge.migration.shadow_calls import compare
from trunkline.clock import Clock
from trunkline.errors import NotFound, Unavailable
from trunkline.id_generation import new_id
from trunkline.jsontypes import decode
from trunkline.machine.state import StepState
from trunkline.messages import AgentResult, AgentTask
from trunkline.services.agents.drift import DialectChange, DriftRecorder
from trunkline.services.agents.registry import AgentRegistry
from trunkline.stores.base import Store
from trunkline.telemetry import log_events

log = structlog.stdlib.get_logger()

# Enough to show that outputs change.
_MAX_RECORDED_CALLS = 3
# Of the last calls that are looked through for them.
_MAX_LOOKED_AT = 50
# Larger inputs and outputs are left out.
_MAX_BYTES = 64 * 1024
_SECRET = b'"$secret"'


class RecordedCaller(Protocol):
    async def test_call(self, task: AgentTask, route: Route) -> DetachedResult: ...


class DialectChangeComparison:
    def __init__(
        self,
        caller: RecordedCaller,
        routes: AgentRouter,
        registry: AgentRegistry,
        drift_recorder: DriftRecorder,
        store: Store,
        clock: Clock,
    ) -> None:
        self._caller = caller
        self._agent_routes = routes
        self._registry = registry
        self._drift_recorder = drift_recorder
        self._store = store
        self._clock = clock
        # By agent: another change of the same agent is not compared meanwhile.
        self._under_way: dict[str, asyncio.Task[None]] = {}

    def note(self, agent: Agent, before: Dialect, after: Dialect) -> None:
        """An agent that has answered in the dialect `before` is called in `after` from now on."""
        if agent.id in self._under_way:
            return
        task = asyncio.create_task(self._run_logged(agent, before, after))
        self._under_way[agent.id] = task
        task.add_done_callback(lambda _: self._under_way.pop(agent.id, None))

    async def close(self) -> None:
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run_logged(self, agent: Agent, before: Dialect, after: Dialect) -> None:
        try:
            compared = await self._compared(agent, before)
            change = DialectChange(
                before=before.protocol,
                after=after.protocol,
                compared=None if compared is None else len(compared),
                differing=[each for each in compared or () if each.verdict != "agree"],
            )
            await self._drift_recorder.record_dialect_change(agent, change)
        except (NotFound, Unavailable) as exc:
            # Deleted meanwhile, or the store is unavailable. The calls of runs do not depend on it.
            log.warning(log_events.COMPARISONS_LOST, agent=agent.name, reason=exc.message)
        except Exception:
            log.exception(log_events.SHADOW_CRASHED, agent=agent.name)

    async def _compared(self, agent: Agent, before: Dialect) -> list[AnswerComparison] | None:
        """None: recorded calls may not be sent again."""
        if not agent.options.repeatable:
            return None
        # With its new dialect.
        present = await self._registry.get(agent.id)
        route = self._agent_routes.source(present)
        return [
            await self._compare(route, step) for step in await self._recorded_calls(agent, before.protocol)
        ]

    async def _recorded_calls(self, agent: Agent, protocol: str) -> Sequence[StepState]:
        """The last steps that the agent has answered in that protocol, newest first."""
        found: list[StepState] = []
        for call in await self._store.activity.calls(agent.name, limit=_MAX_LOOKED_AT):
            stored = await self._store.runs.get(call.run_id) if call.outcome == "success" else None
            found += [
                step
                for step in (() if stored is None else stored[1])
                if step.name == call.step and step.protocol == protocol and _can_be_repeated(step)
            ]
            if len(found) >= _MAX_RECORDED_CALLS:
                break
        return found[:_MAX_RECORDED_CALLS]

    async def _compare(self, route: Route, step: StepState) -> AnswerComparison:
        number = new_id()
        task = AgentTask(
            task_id=f"{number}/{step.name}/0",
            run_id=number,
            step=step.name,
            agent=route.agent.name,
            input_data=decode(step.input or b"null"),
            correlation_id=number,
        )
        task_log(task).info(log_events.RECORDED_CALL_REPEATED)
        recorded = AgentResult(
            task_id=task.task_id,
            run_id=number,
            step=step.name,
            attempt=1,
            status="success",
            at=self._clock.now(),
            output=msgspec.Raw(step.output or b"null"),
            protocol=step.protocol,
        )
        return compare(recorded, await self._caller.test_call(task, route))


def _can_be_repeated(step: StepState) -> bool:
    """Whether its input is all that the agent got: no secrets, no files, no conversation."""
    given, answered = step.input or b"", step.output or b""
    return (
        step.status == "COMPLETED"
        and max(len(given), len(answered)) <= _MAX_BYTES
        and not step.replies
        and _SECRET not in given
        and b'"parts"' not in given
    )
