"""Rules of agent limits: how fast an agent may be called, and when calls stop."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.mutation import Change, Drop
from tests.sabotage.rule import Rule

_LIMITS = "tests/contract/stores/test_agent_limits.py"
_TOGETHER = "tests/contract/postgres/test_concurrent_limits.py"
_BREAKER = "tests/unit/agents/call_limits/test_breaker.py"
_WATCH = "tests/unit/bridge/test_breaker.py"

AGENT_LIMITS: Sequence[Rule] = (
    Rule(
        name="rate-tokens-kept-sqlite",
        breaks="An agent is called faster than its rate limit.",
        symbol="trunkline.stores.sqlite.tables.agents.agent_limits:ClaimBudget.write",
        change=Change("argument", 2, of=4, becomes="{}"),
        caught_by=(f"{_LIMITS}::test_a_queue_drains_at_its_agents_rate_over_all_bridges[sqlite]",),
    ),
    Rule(
        name="rate-tokens-kept-postgres",
        breaks="An agent is called faster than its rate limit.",
        symbol="trunkline.stores.postgres.tables.task_claims:PostgresTaskClaims.claim",
        change=Change("argument", 23, of=26, becomes="{}"),
        caught_by=(f"{_LIMITS}::test_a_queue_drains_at_its_agents_rate_over_all_bridges[postgres]",),
    ),
    Rule(
        name="open-breaker-waits",
        breaks="A failing agent is still called, and its tasks use up their attempts.",
        symbol="trunkline.agents.call_limits.breaker:calls_allowed",
        change=Change("return value", 3, of=3, becomes="it.body if it.test else it.body.args[1].left"),
        caught_by=(
            f"{_BREAKER}::test_an_open_one_lets_nothing_through_until_its_time",
            f"{_LIMITS}::test_failures_that_two_bridges_note_open_one_breaker[sqlite]",
            f"{_LIMITS}::test_failures_that_two_bridges_note_open_one_breaker[postgres]",
        ),
    ),
    Rule(
        name="lost-probe-replaced",
        breaks="A bridge that dies during a probe leaves the circuit breaker half-open forever.",
        symbol="trunkline.agents.call_limits.breaker:calls_allowed",
        change=Change("condition", 2, of=3, becomes="it and it.args[0].status == 'open'"),
        caught_by=(
            f"{_BREAKER}::test_probes_without_a_result_are_replaced",
            f"{_LIMITS}::test_a_probe_whose_bridge_died_does_not_block_for_ever[sqlite]",
            f"{_LIMITS}::test_a_probe_whose_bridge_died_does_not_block_for_ever[postgres]",
        ),
    ),
    Rule(
        name="failures-of-all-bridges",
        breaks="Failures that two bridges record at the same time count once, and the breaker opens late or never.",
        symbol="trunkline.stores.postgres.tables.agents.agent_limits:lock_states",
        change=(Change("argument", 4, of=5, becomes="_READ"), Drop("call statement", 1)),
        caught_by=(f"{_TOGETHER}::test_failures_that_are_noted_at_once_add_up[after another failure]",),
    ),
    Rule(
        name="state-in-other-hands",
        breaks="A bridge treats an agent as healthy while another bridge is opening its breaker.",
        symbol="trunkline.stores.postgres.tables.agents.agent_limits:try_to_lock_states",
        change=Change("ternary", becomes="INITIAL_STATE if it.test else it.orelse"),
        caught_by=(f"{_TOGETHER}::test_who_claims_does_not_wait_for_who_notes",),
    ),
    Rule(
        name="held-back-task-wakes",
        breaks="A task that waits for an agent's limits starts a second late, or when something else happens.",
        symbol="trunkline.stores.agent_limits:CallAllowances.next_begin",
        change=Change("return value", becomes="None"),
        caught_by=(
            f"{_LIMITS}::test_a_queue_drains_at_its_agents_rate_over_all_bridges[sqlite]",
            f"{_LIMITS}::test_failures_that_two_bridges_note_open_one_breaker[postgres]",
        ),
    ),
    Rule(
        name="polls-do-not-count",
        breaks="Frequent polls of a long task close a breaker, or open it.",
        symbol="trunkline.bridge.breaker:_noted",
        change=Drop("operand", 2, of=2),
        caught_by=(f"{_WATCH}::test_a_call_that_goes_on_and_a_question_how_it_stands_count_for_nothing",),
    ),
)
