"""Rules about how fast an agent may be called, and when it is left alone."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.rule import Rule

_LIMITS = "tests/contract/test_store_agent_limits.py"
_TOGETHER = "tests/contract/test_postgres_limits.py"
_BREAKER = "tests/unit/agents/call_limits/test_breaker.py"
_WATCH = "tests/unit/bridge/test_breaker.py"

LIMITS: Sequence[Rule] = (
    Rule(
        name="tokens-kept-sqlite",
        breaks="An agent is called faster than its rate.",
        file="stores/sqlite/tables/agent_limits.py",
        old="        _write(self._db, self._allowances.changed())",
        new="        _write(self._db, {})",
        caught_by=(f"{_LIMITS}::test_a_queue_drains_at_its_agents_rate_whoever_claims[sqlite]",),
    ),
    Rule(
        name="tokens-kept-postgres",
        breaks="An agent is called faster than its rate.",
        file="stores/postgres/tables/task_claims.py",
        old="await write_states(self._db, allowances.changed())",
        new="await write_states(self._db, {})",
        caught_by=(f"{_LIMITS}::test_a_queue_drains_at_its_agents_rate_whoever_claims[postgres]",),
    ),
    Rule(
        name="open-breaker-waits",
        breaks="An agent that fails is called on, and its tasks use up their attempts.",
        file="agents/call_limits/breaker.py",
        old='if breaker.status == "half_open" else 0',
        new='if breaker.status == "half_open" else policy.probes',
        caught_by=(
            f"{_BREAKER}::test_an_open_one_lets_nothing_through_until_its_time",
            f"{_LIMITS}::test_failures_that_two_bridges_note_open_one_breaker[sqlite]",
            f"{_LIMITS}::test_failures_that_two_bridges_note_open_one_breaker[postgres]",
        ),
    ),
    Rule(
        name="lost-probe-replaced",
        breaks="A bridge that dies with a probe in its hands leaves the breaker half-open for ever.",
        file="agents/call_limits/breaker.py",
        old="    if _is_due(breaker, now):\n        return policy.probes\n",
        new='    if _is_due(breaker, now) and breaker.status == "open":\n        return policy.probes\n',
        caught_by=(
            f"{_BREAKER}::test_probes_that_nobody_hears_of_are_replaced",
            f"{_LIMITS}::test_a_probe_whose_bridge_died_blocks_nobody_for_ever[sqlite]",
            f"{_LIMITS}::test_a_probe_whose_bridge_died_blocks_nobody_for_ever[postgres]",
        ),
    ),
    Rule(
        name="failures-of-all-bridges",
        breaks="Failures that two bridges note at once are counted once, and the breaker opens late or never.",
        file="stores/postgres/tables/agent_limits.py",
        old="    await db.execute(_MAKE_ROWS, changing)\n    states = _by_name(await db.rows(_LOCK, changing))\n",
        new="    states = _by_name(await db.rows(_READ, changing))\n",
        caught_by=(f"{_TOGETHER}::test_failures_that_are_noted_at_once_add_up[after another failure]",),
    ),
    Rule(
        name="state-in-other-hands",
        breaks="A bridge takes an agent for fresh while another one is about to open its breaker.",
        file="stores/postgres/tables/agent_limits.py",
        old="None if row[0] is None else _state_of(row)",
        new="FRESH if row[0] is None else _state_of(row)",
        caught_by=(f"{_TOGETHER}::test_who_claims_does_not_wait_for_who_notes",),
    ),
    Rule(
        name="held-back-task-wakes",
        breaks="A task that an agent's limits hold back goes a second late, or when something else happens.",
        file="stores/agent_limits.py",
        old="return min((wait for wait in waits if wait is not None), default=None)",
        new="return max((wait for wait in waits if wait is None), default=None)",
        caught_by=(
            f"{_LIMITS}::test_a_queue_drains_at_its_agents_rate_whoever_claims[sqlite]",
            f"{_LIMITS}::test_failures_that_two_bridges_note_open_one_breaker[postgres]",
        ),
    ),
    Rule(
        name="questions-do-not-count",
        breaks="A long task that is asked often closes a breaker, or opens it.",
        file="bridge/breaker.py",
        old="policy is None or item.claim.remote_task_id is not None or",
        new="policy is None or",
        caught_by=(f"{_WATCH}::test_a_call_that_goes_on_and_a_question_how_it_stands_count_for_nothing",),
    ),
)
