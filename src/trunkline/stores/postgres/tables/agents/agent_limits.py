"""
The state of agents that have a rate limit or a breaker, shared by all bridges. An agent without a row is fresh.

Bridges wait for one another only while they record how calls have ended, and have no other lock to wait for then; a
bridge that claims leaves an agent out whose row another one has locked.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from trunkline.agents.call_limits.limit_state import INITIAL_STATE, AgentLimitState
from trunkline.stores.postgres.database.session import Session, columns
from trunkline.stores.postgres.database.text_encoding import restored, restored_row
from trunkline.stores.rows import Row
from trunkline.stores.rows.agents import agent_state, agent_state_values

_COLUMNS = "agent, breaker, failures, recent, probing, opened_at, retry_at, reason, tokens, refilled_at"
_READ = f"SELECT {_COLUMNS} FROM agent_states WHERE agent = ANY($1::text[])"  # noqa: S608 - constants of this module
_LOCK = f"{_READ} ORDER BY agent FOR UPDATE"
# One row for each agent that is there, and nothing but its name where another bridge holds it.
_TRY_TO_LOCK = f"""
    WITH free AS MATERIALIZED ({_READ} ORDER BY agent FOR UPDATE SKIP LOCKED)
    SELECT present.agent, free.* FROM agent_states AS present LEFT JOIN free ON free.agent = present.agent
    WHERE present.agent = ANY($1::text[])
"""  # noqa: S608 - as above
# So that there is a row to lock.
_MAKE_ROWS = """
    INSERT INTO agent_states(agent) SELECT agent FROM unnest($1::text[]) AS new(agent) ORDER BY agent
    ON CONFLICT (agent) DO NOTHING
"""
_WRITE = f"""
    INSERT INTO agent_states({_COLUMNS})
    SELECT * FROM unnest($1::text[], $2::text[], $3::int[], $4::text[], $5::int[], $6::bigint[], $7::bigint[],
        $8::text[], $9::float8[], $10::bigint[])
    ON CONFLICT (agent) DO UPDATE SET
        breaker = excluded.breaker, failures = excluded.failures, recent = excluded.recent,
        probing = excluded.probing, opened_at = excluded.opened_at, retry_at = excluded.retry_at,
        reason = excluded.reason, tokens = excluded.tokens, refilled_at = excluded.refilled_at
"""  # noqa: S608 - as above


async def read_states(db: Session, agents: Sequence[str]) -> dict[str, AgentLimitState]:
    """Of those that are not fresh."""
    return _by_name(await db.rows(_READ, [*agents]))


async def lock_states(db: Session, agents: Sequence[str]) -> dict[str, AgentLimitState]:
    """Waits for other bridges."""
    await db.execute(_MAKE_ROWS, [*agents])
    return _by_name(await db.rows(_LOCK, [*agents]))


async def try_to_lock_states(db: Session, agents: Collection[str]) -> Mapping[str, AgentLimitState | None]:
    """None where another bridge has locked it at this moment."""
    found = await db.rows(_TRY_TO_LOCK, sorted(agents))
    states: dict[str, AgentLimitState | None] = dict.fromkeys(agents, INITIAL_STATE)
    return states | {restored(name): None if row[0] is None else _state(row) for name, *row in found}


async def write_states(db: Session, states: Mapping[str, AgentLimitState]) -> None:
    if states:
        rows = [agent_state_values(agent, states[agent]) for agent in sorted(states)]
        await db.execute(_WRITE, *columns(rows, 10))


def _by_name(rows: Sequence[Row]) -> dict[str, AgentLimitState]:
    return {restored(row[0]): _state(row) for row in rows}


def _state(row: Row) -> AgentLimitState:
    return agent_state(restored_row(row)[1:])
