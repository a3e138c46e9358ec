"""Rules of steps that choose their agent when they begin."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.mutation import Change, Drop
from tests.sabotage.rule import Rule

_MACHINE = "tests/unit/machine/steps/test_routing.py"
_CANDIDATES = "tests/unit/machine/test_candidates.py"
_LANGUAGE = "tests/unit/workflow/test_routing.py"
_LOOKUP = "tests/contract/stores/test_candidate_lookup.py"
_STEP = "trunkline.machine.steps.routing"

AGENT_CHOICE: Sequence[Rule] = (
    Rule(
        name="only-allowed-agents-are-called",
        breaks="What a run is given, or an agent returns, decides which agent gets the work and its secrets.",
        symbol=f"{_STEP}:begin",
        change=Change("condition", 4, of=4, becomes="False"),
        caught_by=(f"{_MACHINE}::test_an_agent_that_an_expression_may_not_name_is_not_called",),
    ),
    Rule(
        name="work-that-may-be-done-goes-nowhere-else",
        breaks="Two agents do the same work, because the answer of the first one was lost.",
        symbol=f"{_STEP}:_may_go_elsewhere",
        change=Change("return value", 3, of=3, becomes="True"),
        caught_by=(f"{_MACHINE}::test_no_other_agent_is_called_if_the_first_may_have_done_something",),
    ),
    Rule(
        name="doubt-outlives-its-attempt",
        breaks="An agent that has the task from an attempt before refuses it, and another one does it, too.",
        symbol=f"{_STEP}:_may_go_elsewhere",
        change=Drop("operand", 7, of=10),
        caught_by=(f"{_MACHINE}::test_a_retry_after_an_unclear_outcome_goes_to_the_same_agent",),
    ),
    Rule(
        name="unclear-retry-keeps-its-agent",
        breaks="The retry of a call without an answer gives the work to another agent.",
        symbol="trunkline.machine.step_changes:release_agent",
        change=Change("keyword", 1, of=3, becomes="False"),
        caught_by=(f"{_MACHINE}::test_a_retry_after_an_unclear_outcome_goes_to_the_same_agent",),
    ),
    Rule(
        name="another-agent-is-no-attempt",
        breaks="Agents that cannot be reached use up the attempts of the step.",
        symbol="trunkline.machine.steps.agent:_call",
        change=Change("ternary", 1, of=2, becomes="it.orelse"),
        caught_by=(f"{_MACHINE}::test_the_next_agent_is_called_in_the_same_attempt_if_nothing_was_accepted",),
    ),
    Rule(
        name="a-call-of-another-agent-has-its-own-task",
        breaks="Two agents get tasks with the same id, and the store drops the second one.",
        symbol="trunkline.ids:task_id",
        change=Change("if statement", 1, of=1, becomes="pass"),
        caught_by=(f"{_MACHINE}::test_the_next_agent_is_called_in_the_same_attempt_if_nothing_was_accepted",),
    ),
    Rule(
        name="search-for-an-agent-is-under-way",
        breaks="A cancelled run calls the agent that it was looking for.",
        symbol="trunkline.machine.state:StepState.has_begun",
        change=Drop("operand", 1, of=5),
        caught_by=(f"{_MACHINE}::test_a_cancelled_run_looks_for_no_agent",),
    ),
    Rule(
        name="paused-run-calls-no-found-agent",
        breaks="A paused run begins calls.",
        symbol=f"{_STEP}:take_candidates",
        change=Change("condition", 3, of=8, becomes="False"),
        caught_by=(f"{_MACHINE}::test_a_paused_run_calls_no_agent_that_was_found",),
    ),
    Rule(
        name="wait-for-an-agent-ends",
        breaks="A step that waits for a circuit breaker waits forever.",
        symbol=f"{_STEP}:_wait",
        change=Drop("call statement", 2, of=2),
        caught_by=(f"{_MACHINE}::test_a_step_waits_until_a_breaker_lets_calls_through",),
    ),
    Rule(
        name="loser-is-stopped",
        breaks="An agent goes on with work whose answer is not needed any more.",
        symbol=f"{_STEP}:_settle_race",
        change=Drop("call statement", 1, of=4),
        caught_by=(f"{_MACHINE}::test_the_first_good_answer_wins_and_the_other_call_is_stopped",),
    ),
    Rule(
        name="failed-call-leaves-the-other",
        breaks="A step fails although the second agent would have answered.",
        symbol=f"{_STEP}:_settle_race",
        change=Change("return value", 6, of=6, becomes="True"),
        caught_by=(f"{_MACHINE}::test_a_call_that_fails_leaves_the_other_one",),
    ),
    Rule(
        name="only-repeatable-agents-are-hedged",
        breaks="An agent that must not get the same work as another one gets it.",
        symbol=f"{_STEP}:start_hedge_timer",
        change=Drop("operand", 3, of=4),
        caught_by=(f"{_MACHINE}::test_agents_that_are_not_repeatable_get_no_company",),
    ),
    Rule(
        name="hedged-calls-are-limited",
        breaks="A step calls every agent with the skill.",
        symbol=f"{_STEP}:start_hedge_timer",
        change=Change("condition", 2, of=2, becomes="True"),
        caught_by=(f"{_MACHINE}::test_a_second_agent_is_called_when_the_first_is_slow",),
    ),
    Rule(
        name="fast-call-ends-its-hedge-timer",
        breaks="A run that is over keeps the timer of a second call.",
        symbol=f"{_STEP}:take_result",
        change=Drop("call statement", 1, of=1),
        caught_by=(f"{_MACHINE}::test_a_fast_agent_gets_no_company",),
    ),
    Rule(
        name="cancellation-stops-all-calls",
        breaks="After a cancellation, the second agent goes on working.",
        symbol=f"{_STEP}:stop_all",
        change=Drop("call statement", 2, of=2),
        caught_by=(f"{_MACHINE}::test_a_cancellation_stops_both_calls",),
    ),
    Rule(
        name="open-breaker-is-passed-over",
        breaks="A step waits for an agent that is broken while another one is free.",
        symbol="trunkline.machine.candidates:Candidate.status",
        change=Change("condition", 1, of=3, becomes="False"),
        caught_by=(f"{_CANDIDATES}::test_an_agent_that_cannot_take_the_call_is_passed_over[breaker]",),
    ),
    Rule(
        name="choices-of-one-turn-count",
        breaks="A thousand steps that begin at once all choose the same agent.",
        symbol="trunkline.executor.candidate_lookup:CandidateLookup.write",
        change=Change("if statement", 2, of=2, becomes="pass"),
        caught_by=(f"{_LOOKUP}::test_steps_that_begin_at_once_are_spread[sqlite]",),
    ),
    Rule(
        name="secrets-of-any-agent-are-hidden",
        breaks="An agent that was chosen repeats the secret of another step, and everybody can read it.",
        symbol="trunkline.workflow.compile:_share_secrets_of_routed_steps",
        change=Drop("call statement", 1, of=1),
        caught_by=(f"{_LANGUAGE}::test_a_routed_step_hides_the_secrets_of_all_steps",),
    ),
)
