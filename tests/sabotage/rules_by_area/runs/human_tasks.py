"""Rules of steps that ask people: one answer counts, and no task is forgotten."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.mutation import Change, Drop
from tests.sabotage.rule import Rule

_LINKS = "tests/unit/services/people/test_answer_tokens.py"
_MACHINE = "tests/unit/machine/steps/test_ask.py"
_SCENARIOS = "tests/scenarios/test_human_tasks.py"

HUMAN_TASKS: Sequence[Rule] = (
    Rule(
        name="answer-belongs-to-its-attempt",
        breaks="An answer to a task that has timed out completes the next one, which is still unanswered.",
        symbol="trunkline.machine.steps.ask:_open_task",
        change=Drop("operand", 2, of=2),
        caught_by=(f"{_MACHINE}::test_an_answer_to_another_attempt_does_not_count",),
    ),
    Rule(
        name="each-person-answers-once",
        breaks="One person gives both approvals of a task that requires two people.",
        symbol="trunkline.machine.steps.ask:apply_answer",
        change=Change("condition", 2, of=4, becomes="False"),
        caught_by=(f"{_MACHINE}::test_an_approval_of_two_people_needs_both_of_them",),
    ),
    Rule(
        name="escalation-has-a-timer",
        breaks="A task is never escalated.",
        symbol="trunkline.machine.steps.ask:_start_escalation",
        change=Change("condition", 2, of=2, becomes="False"),
        caught_by=(f"{_MACHINE}::test_each_escalation_adds_assignees_at_its_time",),
    ),
    Rule(
        name="escalation-comes-once",
        breaks="A timer that comes twice escalates a task too early.",
        symbol="trunkline.machine.steps.ask:escalate",
        change=Drop("operand", 3, of=3),
        caught_by=(f"{_MACHINE}::test_an_escalation_comes_once",),
    ),
    Rule(
        name="closed-task-is-not-escalated",
        breaks="A run that is over keeps the timer of an escalation.",
        symbol="trunkline.machine.steps.timers:cancel_wait_timer",
        change=Drop("call statement", 2, of=6),
        caught_by=(f"{_MACHINE}::test_the_end_of_the_run_closes_the_task_and_its_timers",),
    ),
    Rule(
        name="later-answer-is-refused",
        breaks="Of two people who answer at the same time, both get the response that their answer counts.",
        symbol="trunkline.services.people.answers:_is_applied",
        change=Drop("operand", 7, of=7),
        caught_by=(
            f"{_SCENARIOS}::test_of_two_answers_at_once_one_counts_and_the_other_is_refused[embedded]",
        ),
    ),
    Rule(
        name="starter-is-excluded",
        breaks="The person who started a run approves it, although the workflow excludes that.",
        symbol="trunkline.services.people.answers:_check_person",
        change=Change("condition", 3, of=4, becomes="False"),
        caught_by=(f"{_SCENARIOS}::test_the_starter_can_be_excluded[embedded]",),
    ),
    Rule(
        name="unknown-person-does-not-count",
        breaks="Anybody answers without a key where it matters who does.",
        symbol="trunkline.services.people.answers:_check_person",
        change=Change("condition", 1, of=4, becomes="False"),
        caught_by=(
            f"{_SCENARIOS}::test_a_caller_without_a_key_cannot_answer_a_task_that_depends_on_who_answers[embedded]",
        ),
    ),
    Rule(
        name="answer-link-is-signed",
        breaks="Anyone can answer any question in any name.",
        symbol="trunkline.services.people.answer_links:AnswerTokens.link_of",
        change=Change("ternary", 1, of=1, becomes="_links.decode(content)"),
        caught_by=(f"{_LINKS}::test_an_altered_token_is_not_ours",),
    ),
    Rule(
        name="answer-link-expires",
        breaks="Who finds an old link can still answer.",
        symbol="trunkline.services.people.answer_links:AnswerLinks.find",
        change=Change("condition", 2, of=2, becomes="False"),
        caught_by=(
            "tests/scenarios/test_answer_links.py::test_an_expired_link_and_an_altered_one_are_refused[embedded]",
        ),
    ),
)
