"""How many calls of which agent one transaction may begin: the same rules for every backend."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import msgspec

from trunkline.agents import AgentOptions, BreakerPolicy
from trunkline.agents.call_limits.breaker import BreakerStatus, CallEnd, after_ended
from trunkline.agents.call_limits.limit_state import (
    INITIAL_STATE,
    AgentLimitState,
    after_calls_begun,
    allowed_calls,
    next_call_at,
)
from trunkline.clock import Instant
from trunkline.stores.port.agents.registry import BreakerChange, RecordedCallEnd
from trunkline.stores.port.tasks import ClaimedTask

NO_LIMIT = 2**31 - 1

_options = msgspec.json.Decoder(AgentOptions)


# As many as there are agents with options, each read at every look for tasks.
@lru_cache(maxsize=4_096)
def limiting(options: str | None) -> AgentOptions | None:
    """The stored options of an agent, if there is a rate or a breaker among them."""
    if options is None:
        return None
    decoded = _options.decode(options)
    return None if decoded.rate is None and decoded.breaker is None else decoded


class CallAllowances:
    """Agents without a limit are not in it."""

    def __init__(self, now: Instant) -> None:
        self._now = now
        self._options: dict[str, AgentOptions] = {}
        self._before: dict[str, AgentLimitState] = {}
        self._begun: dict[str, int] = {}

    def add(self, agent: str, options: AgentOptions, state: AgentLimitState) -> None:
        self._options[agent] = options
        self._before[agent] = state
        self._begun[agent] = 0

    def __contains__(self, agent: str) -> bool:
        return agent in self._options

    def __bool__(self) -> bool:
        return bool(self._options)

    def left(self, agent: str) -> int:
        """How many calls of it may still begin."""
        options = self._options.get(agent)
        if options is None:
            return NO_LIMIT
        allowed = allowed_calls(self._before[agent], options, self._now)
        return NO_LIMIT if allowed is None else allowed - self._begun[agent]

    def take(self, agent: str, calls: int) -> None:
        if agent in self._begun:
            self._begun[agent] += calls

    def marked(self, claim: ClaimedTask) -> ClaimedTask:
        """The claim of a task of one of these agents, with what its call is to know."""
        options = self._options.get(claim.task.agent)
        if options is None or options.breaker is None:
            return claim
        is_probe = self._before[claim.task.agent].breaker.status != "closed"
        return msgspec.structs.replace(claim, breaker=options.breaker, is_probe=is_probe)

    def changed(self) -> dict[str, AgentLimitState]:
        """What is to be written."""
        states = {agent: self._after(agent) for agent, calls in self._begun.items() if calls}
        return {agent: state for agent, state in states.items() if state != self._before[agent]}

    def next_begin(self, agents: Iterable[str]) -> Instant | None:
        """When the first of these agents, whose tasks still wait, may be called again."""
        waits = (
            next_call_at(self._after(agent), self._options[agent], self._now)
            for agent in agents
            if agent in self
        )
        return min((wait for wait in waits if wait is not None), default=None)

    def _after(self, agent: str) -> AgentLimitState:
        return after_calls_begun(self._before[agent], self._options[agent], self._begun[agent], self._now)


def after_calls(
    states: Mapping[str, AgentLimitState], calls: Sequence[RecordedCallEnd], now: Instant
) -> tuple[dict[str, AgentLimitState], list[BreakerChange]]:
    """The states that change by how these calls have ended, and the breakers that open or close."""
    ends: dict[str, list[CallEnd]] = {}
    policies: dict[str, BreakerPolicy] = {}
    for call in calls:
        ends.setdefault(call.agent, []).append(call.end)
        policies[call.agent] = call.policy
    changed: dict[str, AgentLimitState] = {}
    breaker_changes: list[BreakerChange] = []
    for agent, ended in ends.items():
        state = states.get(agent, INITIAL_STATE)
        breaker = after_ended(state.breaker, policies[agent], ended, now)
        if breaker != state.breaker:
            changed[agent] = msgspec.structs.replace(state, breaker=breaker)
        if breaker.status != state.breaker.status:
            breaker_changes.append(BreakerChange(agent, breaker.status, breaker.reason))
    return changed, breaker_changes


def breakers_of(rows: Iterable[tuple[str, str, BreakerStatus]]) -> dict[str, BreakerStatus]:
    """Of the agents that have one, from names, stored options and what a breaker would be."""
    return {
        agent: status
        for agent, options, status in rows
        if (limits := limiting(options)) is not None and limits.breaker is not None
    }


def earlier(first: Instant | None, second: Instant | None) -> Instant | None:
    """The earlier of two moments, if there is any."""
    moments = [moment for moment in (first, second) if moment is not None]
    return min(moments, default=None)
