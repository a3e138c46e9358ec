"""The state of agents that have a rate limit or a breaker. An agent without a row is fresh."""

from __future__ import annotations

from collections.abc import Mapping

import apsw

from trunkline.agents.call_limits.limit_state import INITIAL_STATE, AgentLimitState
from trunkline.clock import Instant
from trunkline.stores.agent_limits import CallAllowances, limiting
from trunkline.stores.port.tasks import ClaimedTask
from trunkline.stores.rows.agents import agent_state, agent_state_values
from trunkline.stores.sqlite.database.statements import execute_many, first

_COLUMNS = "breaker, failures, recent, probing, opened_at, retry_at, reason, tokens, refilled_at"
_SELECT = f"SELECT {_COLUMNS} FROM agent_states WHERE agent = ?"  # noqa: S608 - constants of this module
_WRITE = f"INSERT OR REPLACE INTO agent_states (agent, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - as above
_WAITS = "SELECT 1 FROM tasks WHERE status = 'queued' AND agent = ? LIMIT 1"


class ClaimBudget:
    """How many tasks of which agent one call of `claim` may take."""

    def __init__(self, db: apsw.Connection, now: Instant) -> None:
        self._db = db
        self._allowances = CallAllowances(now)
        # Agents that could be given no more; whether any task still waits for them is looked up in `write`.
        self._held_back: list[str] = []

    def left(self, agent: str, options: str | None) -> int:
        """How many calls of the agent with these stored options may begin; asked once, before any is taken."""
        limits = limiting(options)
        if limits is not None:
            self._allowances.add(agent, limits, read_state(self._db, agent))
        return self._allowances.left(agent)

    def take(self, claims: list[ClaimedTask]) -> list[ClaimedTask]:
        if not self._allowances:
            return claims
        for claim in claims:
            self._allowances.take(claim.task.agent, 1)
        return [self._allowances.marked(claim) for claim in claims]

    def hold_back(self, agent: str) -> None:
        self._held_back.append(agent)

    def write(self) -> Instant | None:
        """Store what was taken; returns when the first task that was held back may be claimed."""
        write_states(self._db, self._allowances.changed())
        limited = (agent for agent in self._held_back if agent in self._allowances)
        return self._allowances.next_begin([agent for agent in limited if self._waits(agent)])

    def _waits(self, agent: str) -> bool:
        return first(self._db, _WAITS, (agent,)) is not None


def read_state(db: apsw.Connection, agent: str) -> AgentLimitState:
    row = first(db, _SELECT, (agent,))
    return INITIAL_STATE if row is None else agent_state(row)


def write_states(db: apsw.Connection, states: Mapping[str, AgentLimitState]) -> None:
    if states:
        execute_many(db, _WRITE, [agent_state_values(agent, state) for agent, state in states.items()])
