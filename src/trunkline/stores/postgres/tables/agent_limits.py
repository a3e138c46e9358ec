"""
What all bridges know of agents that have a rate or a breaker. An agent without a row is fresh.

Bridges wait for one another only while they note how calls have ended, and have no other lock to wait for then; whoever
claims leaves an agent out whose row another one holds.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from trunkline.agents.call_limits.breaker import Breaker
from trunkline.agents.call_limits.limit_state import INITIAL_STATE, AgentLimitState
from trunkline.agents.call_limits.token_bucket import TokenBucket
from trunkline.clock import Instant
from trunkline.stores.agent_limits import columns_of, noted
from trunkline.stores.base import AgentLoad, BreakerChange, NotedCall
from trunkline.stores.postgres.database.session import Row, Session, columns
from trunkline.stores.postgres.database.text_encoding import restored, restored_if_any

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
_LOAD = """
    SELECT (SELECT count(*) FROM tasks WHERE status IN ('claimed', 'remote') AND agent = $1),
        (SELECT count(*) FROM tasks WHERE status = 'queued' AND agent = $1)
"""


async def lock_states(db: Session, agents: Collection[str]) -> Mapping[str, AgentLimitState | None]:
    """What is known of each; None: another bridge holds it at this moment."""
    found = await db.rows(_TRY_TO_LOCK, sorted(agents))
    held: dict[str, AgentLimitState | None] = dict.fromkeys(agents, INITIAL_STATE)
    return held | {restored(name): None if row[0] is None else _state_of(row) for name, *row in found}


async def write_states(db: Session, states: Mapping[str, AgentLimitState]) -> None:
    if states:
        await db.execute(_WRITE, *columns([columns_of(agent, states[agent]) for agent in sorted(states)], 10))


async def note_calls(db: Session, calls: Sequence[NotedCall], now: Instant) -> list[BreakerChange]:
    agents = sorted({call.agent for call in calls})
    # Nearly always a call has ended well, which changes nothing: then nobody waits for anybody.
    seen, _ = noted(_by_name(await db.rows(_READ, agents)), calls, now)
    if not seen:
        return []
    changing = sorted(seen)
    await db.execute(_MAKE_ROWS, changing)
    states = _by_name(await db.rows(_LOCK, changing))
    changed, news = noted(states, [call for call in calls if call.agent in seen], now)
    await write_states(db, changed)
    return news


async def reset_agent(db: Session, name: str) -> None:
    await db.execute("DELETE FROM agent_states WHERE agent = $1", name)


async def states_of(db: Session, names: Sequence[str]) -> dict[str, AgentLimitState]:
    """Of those that are not fresh."""
    return _by_name(await db.rows(_READ, [*names]))


async def agent_load(db: Session, name: str, now: Instant) -> AgentLoad:
    row = await db.first(_LOAD, name)
    in_flight, queued = row if row is not None else (0, 0)
    states = await states_of(db, [name])
    return AgentLoad(at=now, in_flight=in_flight, queued=queued, state=states.get(name, INITIAL_STATE))


def _by_name(rows: Sequence[Row]) -> dict[str, AgentLimitState]:
    return {restored(row[0]): _state_of(row) for row in rows}


def _state_of(row: Row) -> AgentLimitState:
    _, status, failures, recent, probing, opened_at, retry_at, reason, tokens, refilled_at = row
    return AgentLimitState(
        breaker=Breaker(
            status=status,
            failures=failures,
            recent=recent,
            probing=probing,
            opened_at=opened_at,
            retry_at=retry_at,
            reason=restored_if_any(reason),
        ),
        bucket=None if tokens is None else TokenBucket(tokens, refilled_at),
    )
