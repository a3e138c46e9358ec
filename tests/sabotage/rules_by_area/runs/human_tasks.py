"""Rules of steps that ask people: one answer counts, and no task is forgotten."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.mutation import Change, Drop
from tests.sabotage.rule import Rule

_LINKS = "tests/unit/services/people/test_answer_tokens.py"
_MACHINE = "tests/unit/machine/steps/test_ask.py"
_PEOPLE = "tests/unit/machine/steps/test_human_tasks.py"
_RIGHTS = "tests/scenarios/test_people.py"
_SCENARIOS = "tests/scenarios/test_human_tasks.py"

HUMAN_TASKS: Sequence[Rule] = (
    Rule(
        name="answer-belongs-to-its-attempt",
        breaks="An answer to a task that has timed out completes the next one, which is still unanswered.",
        symbol="trunkline.machine.steps.human_tasks:open_wait",
        change=Drop("operand", 2, of=2),
        caught_by=(f"{_MACHINE}::test_an_answer_to_another_attempt_does_not_count",),
    ),
    Rule(
        name="each-person-answers-once",
        breaks="One person gives both approvals of a task that requires two people.",
        symbol="trunkline.machine.steps.ask:apply_answer",
        change=Change("condition", 3, of=6, becomes="False"),
        caught_by=(f"{_MACHINE}::test_an_approval_of_two_people_needs_both_of_them",),
    ),
    Rule(
        name="escalation-has-a-timer",
        breaks="A task is never escalated.",
        symbol="trunkline.machine.steps.human_tasks:_start_escalation",
        change=Change("condition", 2, of=2, becomes="False"),
        caught_by=(f"{_MACHINE}::test_each_escalation_adds_assignees_at_its_time",),
    ),
    Rule(
        name="escalation-comes-once",
        breaks="A timer that comes twice escalates a task too early.",
        symbol="trunkline.machine.steps.human_tasks:escalate",
        change=Drop("operand", 3, of=3),
        caught_by=(f"{_MACHINE}::test_an_escalation_comes_once",),
    ),
    Rule(
        name="closed-task-is-not-escalated",
        breaks="A run that is over keeps the timer of an escalation.",
        symbol="trunkline.machine.steps.timers:cancel_wait_timer",
        change=Drop("call statement", 3, of=8),
        caught_by=(f"{_MACHINE}::test_the_end_of_the_run_closes_the_task_and_its_timers",),
    ),
    Rule(
        name="later-answer-is-refused",
        breaks="Of two people who answer at the same time, both get the response that their answer counts.",
        symbol="trunkline.services.people.answers:_is_applied",
        change=Drop("operand", 9, of=9),
        caught_by=(
            f"{_SCENARIOS}::test_of_two_answers_at_once_one_counts_and_the_other_is_refused[embedded]",
        ),
    ),
    Rule(
        name="starter-is-excluded",
        breaks="The person who started a run approves it, although the workflow excludes that.",
        symbol="trunkline.services.people.rights:check_person",
        change=Change("condition", 2, of=4, becomes="False"),
        caught_by=(f"{_SCENARIOS}::test_the_starter_can_be_excluded[embedded]",),
    ),
    Rule(
        name="unknown-person-does-not-count",
        breaks="Anybody answers without a key where it matters who does.",
        symbol="trunkline.services.people.rights:check_person",
        change=Change("condition", 1, of=4, becomes="False"),
        caught_by=(
            f"{_SCENARIOS}::test_a_caller_without_a_key_cannot_answer_a_task_that_depends_on_who_answers[embedded]",
        ),
    ),
    Rule(
        name="claimed-task-is-left-alone",
        breaks="Two people answer a task, although one of them has claimed it.",
        symbol="trunkline.machine.steps.ask:apply_answer",
        change=Change("condition", 2, of=6, becomes="False"),
        caught_by=(f"{_PEOPLE}::test_only_the_person_who_has_claimed_a_task_answers_it",),
    ),
    Rule(
        name="first-claim-counts",
        breaks="A second person takes over a claimed task, and the first one does not notice.",
        symbol="trunkline.machine.steps.human_tasks:claim",
        change=Change("condition", 2, of=2, becomes="True"),
        caught_by=(f"{_PEOPLE}::test_the_first_claim_counts_until_its_owner_releases_it",),
    ),
    Rule(
        name="closed-task-is-in-no-inbox",
        breaks="A task that was answered stays in the inboxes of its assignees.",
        symbol="trunkline.machine.steps.timers:cancel_wait_timer",
        change=Drop("call statement", 1, of=8),
        caught_by=(f"{_PEOPLE}::test_a_task_is_listed_for_its_assignees_until_it_is_answered",),
    ),
    Rule(
        name="each-question-is-escalated",
        breaks="Only the first question of an agent is escalated.",
        symbol="trunkline.machine.steps.timers:escalation_timer",
        change=Change("ternary", 1, of=1, becomes="key"),
        caught_by=(f"{_PEOPLE}::test_the_next_question_of_an_agent_is_escalated_again",),
    ),
    Rule(
        name="only-assignees-answer",
        breaks="Anyone answers a task that only its assignees may answer.",
        symbol="trunkline.services.people.rights:check_person",
        change=Change("condition", 3, of=4, becomes="False"),
        caught_by=(f"{_RIGHTS}::test_only_assignees_answer_and_claim_where_the_step_says_so[embedded]",),
    ),
    Rule(
        name="claimed-question-is-left-alone",
        breaks="Two people answer the question of an agent, although one of them has claimed it.",
        symbol="trunkline.services.people.rights:check_person",
        change=Change("condition", 4, of=4, becomes="False"),
        caught_by=(f"{_RIGHTS}::test_the_claim_of_an_agents_question_ends_with_its_answer[embedded]",),
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
