"""Rules of test calls, agent cards and activity counts."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.mutation import Change, Drop, ReplaceText
from tests.sabotage.rule import Rule

_TRIALS = "tests/scenarios/api/test_agent_test_calls.py"
_ACTIVITY = "tests/contract/stores/test_activity.py"

DETACHED_CALLS: Sequence[Rule] = (
    Rule(
        name="test-call-cancels-its-task",
        breaks="An agent that asks a question during a test call waits forever for a reply.",
        symbol="trunkline.bridge.calls.detached:DetachedCall._call",
        change=ReplaceText("trial", "shadow"),
        caught_by=(f"{_TRIALS}::test_an_agent_that_asks_is_cancelled_because_no_one_can_answer[embedded]",),
    ),
    Rule(
        name="test-call-is-short",
        breaks="A test call to an agent that does not answer waits for the agent's whole timeout.",
        symbol="trunkline.services.agents.inspection:AgentTestCalls.call",
        change=Drop("operand", 1, of=2),
        caught_by=(f"{_TRIALS}::test_an_agent_that_does_not_answer_is_left_alone_in_time[embedded]",),
    ),
    Rule(
        name="card-shows-no-secret",
        breaks="An agent's secret, repeated in its card, is shown to every client that may see agents.",
        symbol="trunkline.bridge.agents.inspection:CardViewer.__call__",
        change=Change("argument", 18, of=22, becomes="it.func.value.args[0].func.value"),
        caught_by=(f"{_TRIALS}::test_a_card_is_shown_as_the_agent_gives_it_without_its_secret[embedded]",),
    ),
    Rule(
        name="minutes-add-up",
        breaks="Only the calls of the last commit of a minute are counted.",
        symbol="trunkline.stores.sqlite.tables.agents.activity:_RECORD",
        change=ReplaceText("calls + excluded.calls", "excluded.calls"),
        caught_by=(f"{_ACTIVITY}::test_a_minute_adds_up_over_transactions_and_bridges[sqlite]",),
    ),
    Rule(
        name="calls-begin-once",
        breaks="A call that an agent works on for an hour appears to have lasted only as long as its last poll.",
        symbol="trunkline.stores.sqlite.tables.tasks:_ANSWER",
        change=ReplaceText("coalesce(called_at, ?11)", "?11"),
        caught_by=(
            f"{_ACTIVITY}::test_a_call_that_goes_on_is_not_among_the_last_ones_and_keeps_when_it_began[sqlite]",
        ),
    ),
)
