"""What is known of agents that have a rate or a breaker. An agent without a row is fresh."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import apsw

from trunkline.agents.call_limits.breaker import Breaker
from trunkline.agents.call_limits.limit_state import INITIAL_STATE, AgentLimitState
from trunkline.agents.call_limits.token_bucket import TokenBucket
from trunkline.clock import Instant
from trunkline.stores.agent_limits import Allowances, columns_of, limiting, noted
from trunkline.stores.base import AgentLoad, BreakerChange, ClaimedTask, NotedCall
from trunkline.stores.sqlite.database.statements import Row, execute, execute_many, first

_COLUMNS = "breaker, failures, recent, probing, opened_at, retry_at, reason, tokens, refilled_at"
_SELECT = f"SELECT {_COLUMNS} FROM agent_states WHERE agent = ?"  # noqa: S608 - constants of this module
_WRITE = f"INSERT OR REPLACE INTO agent_states (agent, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - as above
_WAITS = "SELECT 1 FROM tasks WHERE status = 'queued' AND agent = ? LIMIT 1"
# In the words of the indexes of queued and of busy tasks.
_LOAD = """
    SELECT (SELECT count(*) FROM tasks WHERE status IN ('claimed', 'remote') AND agent = ?1),
        (SELECT count(*) FROM tasks WHERE status = 'queued' AND agent = ?1)
"""


class Restraint:
    """What the agents that one look for tasks has found may be given."""

    def __init__(self, db: apsw.Connection, now: Instant) -> None:
        self._db = db
        self._allowances = Allowances(now)
        # Those that could be given no more; whether anything still waits for them is another question.
        self._held_back: list[str] = []

    def left(self, agent: str, options: str | None) -> int:
        """How many calls of the agent with these stored options may begin; asked once, before any is taken."""
        limits = limiting(options)
        if limits is not None:
            self._allowances.add(agent, limits, _state(self._db, agent))
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
        """Keeps what was taken; when the first task may go that was held back."""
        _write(self._db, self._allowances.changed())
        limited = (agent for agent in self._held_back if agent in self._allowances)
        return self._allowances.next_begin([agent for agent in limited if self._waits(agent)])

    def _waits(self, agent: str) -> bool:
        return first(self._db, _WAITS, (agent,)) is not None


def note_calls(db: apsw.Connection, calls: Sequence[NotedCall], now: Instant) -> list[BreakerChange]:
    states = {agent: _state(db, agent) for agent in {call.agent for call in calls}}
    changed, news = noted(states, calls, now)
    _write(db, changed)
    return news


def reset_agent(db: apsw.Connection, name: str) -> None:
    execute(db, "DELETE FROM agent_states WHERE agent = ?", (name,))


def agent_load(db: apsw.Connection, name: str, now: Instant) -> AgentLoad:
    row = first(db, _LOAD, (name,))
    in_flight, queued = row if row is not None else (0, 0)
    return AgentLoad(at=now, in_flight=in_flight, queued=queued, state=_state(db, name))


def _state(db: apsw.Connection, agent: str) -> AgentLimitState:
    row = first(db, _SELECT, (agent,))
    return INITIAL_STATE if row is None else _state_of(row)


def _state_of(row: Row) -> AgentLimitState:
    status, failures, recent, probing, opened_at, retry_at, reason, tokens, refilled_at = row
    return AgentLimitState(
        breaker=Breaker(
            status=status,
            failures=failures,
            recent=recent,
            probing=probing,
            opened_at=opened_at,
            retry_at=retry_at,
            reason=reason,
        ),
        bucket=None if tokens is None else TokenBucket(tokens, refilled_at),
    )


def _write(db: apsw.Connection, states: Mapping[str, AgentLimitState]) -> None:
    if states:
        execute_many(db, _WRITE, [columns_of(agent, state) for agent, state in states.items()])
