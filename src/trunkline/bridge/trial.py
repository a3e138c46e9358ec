"""One message to an agent that belongs to no run: the same dialect, credentials and rules as every call's."""

from __future__ import annotations

from datetime import timedelta
from time import perf_counter

from trunkline.agents import Agent
from trunkline.bridge.beside import DetachedCaller, DetachedResult
from trunkline.bridge.sides import AgentRoutes
from trunkline.clock import Clock, Instant
from trunkline.id_generation import new_id
from trunkline.jsontypes import Json
from trunkline.messages import AgentTask
from trunkline.protocols import Failed, Interrupted, Succeeded
from trunkline.services.trials import Trial

# What people look at; the wire has the beginning of a longer one.
_MOST_OUTPUT_BYTES = 1024 * 1024
_STEP = "try"


class AgentTestCaller:
    def __init__(self, invoker: DetachedCaller, routes: AgentRoutes, clock: Clock) -> None:
        self._invoker = invoker
        self._agent_routes = routes
        self._clock = clock

    async def __call__(
        self, agent: Agent, message: Json, *, longest: timedelta, correlation_id: str
    ) -> Trial:
        number = new_id()
        task = AgentTask(
            task_id=f"{number}/{_STEP}/0",
            run_id=number,
            step=_STEP,
            agent=agent.name,
            input_data=message,
            correlation_id=correlation_id,
            timeout_ms=max(1, longest // timedelta(milliseconds=1)),
        )
        started_at, started = self._clock.now(), perf_counter()
        result = await self._invoker.test_call(task, self._agent_routes.source(agent))
        return _trial(result, started_at, round((perf_counter() - started) * 1000, 3))


def _trial(result: DetachedResult, started_at: Instant, duration_ms: float) -> Trial:
    exchanges = [exchange.record for exchange in result.exchanges]
    match result.outcome:
        case Succeeded(output=output, warnings=warnings):
            too_long = len(output) > _MOST_OUTPUT_BYTES
            if too_long:
                warnings = (
                    *warnings,
                    f"The output has {len(output):,} bytes and is not shown: more than {_MOST_OUTPUT_BYTES:,}.",
                )
            return Trial(
                outcome="success",
                started_at=started_at,
                duration_ms=duration_ms,
                output=None if too_long else output,
                warnings=warnings,
                protocol=result.protocol,
                exchanges=exchanges,
            )
        case Failed(error=error, warnings=warnings):
            return Trial(
                outcome="error",
                started_at=started_at,
                duration_ms=duration_ms,
                error=error,
                warnings=warnings,
                protocol=result.protocol,
                exchanges=exchanges,
            )
        case Interrupted(question=question):
            return Trial(
                outcome="interrupted",
                started_at=started_at,
                duration_ms=duration_ms,
                question=question,
                protocol=result.protocol,
                exchanges=exchanges,
            )
