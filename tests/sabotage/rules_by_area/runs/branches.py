"""Rules of branches, loops and step deadlines: what is stopped, and what must not be."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.mutation import Change, Drop
from tests.sabotage.rule import Rule

_JOINS = "tests/unit/machine/steps/test_join.py"
_LOOPS = "tests/unit/machine/steps/test_for_each.py"
_DEADLINES = "tests/unit/machine/steps/test_deadlines.py"

BRANCHES: Sequence[Rule] = (
    Rule(
        name="unneeded-branches-are-cancelled",
        breaks="The agents of branches that no step waits for keep working.",
        symbol="trunkline.machine.steps.join:_cancel_step",
        change=Drop("call statement", 2, of=4),
        caught_by=(f"{_JOINS}::test_the_rest_is_stopped_and_its_answers_change_nothing",),
    ),
    Rule(
        name="needed-branch-continues",
        breaks="A join stops a step that another step still waits for.",
        symbol="trunkline.machine.steps.join:_cancel_unneeded_branches",
        change=Change("condition", 6, of=6, becomes="True"),
        caught_by=(f"{_JOINS}::test_a_branch_that_another_step_needs_goes_on",),
    ),
    Rule(
        name="failure-of-a-shared-branch",
        breaks="A step starts although a step that it needs has failed, because a join next to it tolerates the "
        "failure.",
        symbol="trunkline.workflow.step_graph.joins:steps_inside_joins",
        change=Change("operand", 2, of=4, becomes="any(it.args[0])"),
        caught_by=(f"{_JOINS}::test_the_failure_of_a_branch_that_another_step_needs_fails_the_run",),
    ),
    Rule(
        name="step-deadline-ends-with-its-step",
        breaks="A finished step leaves its timer behind.",
        symbol="trunkline.machine.turn:Turn.record",
        change=Change("condition", 2, of=3, becomes="False"),
        caught_by=(f"{_DEADLINES}::test_a_step_that_ends_in_time_leaves_no_timer",),
    ),
    Rule(
        name="deadline-of-an-at-most-once-step",
        breaks="A call that the agent may have carried out counts as failed, and a retry repeats it.",
        symbol="trunkline.machine.steps.failure:fail_at_deadline",
        change=Change("condition", becomes="False"),
        caught_by=(
            f"{_DEADLINES}::test_what_must_not_be_called_twice_waits_for_a_person_when_its_deadline_has_passed",
        ),
    ),
    Rule(
        name="no-item-of-a-finished-step",
        breaks="A failed loop starts its next items.",
        symbol="trunkline.machine.decide:_advance",
        change=Change("condition", 6, of=8, becomes="False"),
        caught_by=(f"{_LOOPS}::test_the_step_s_own_on_error_decides_what_its_failure_means",),
        # What such an item would read is gone.
        shows="KeyError: 's'",
    ),
    Rule(
        name="item-concurrency",
        breaks="A loop calls its agent for all items at once, whatever its limit.",
        symbol="trunkline.machine.evolve:_release_items",
        change=Drop("operand", 2, of=2),
        caught_by=(
            f"{_LOOPS}::test_only_so_many_items_are_worked_on_at_once",
            f"{_LOOPS}::test_sequential_items_follow_one_another",
        ),
    ),
    Rule(
        name="one-conversation-per-item",
        breaks="An agent answers one item in the conversation of another.",
        symbol="trunkline.machine.steps.agent:_context",
        change=Change("return value", 3, of=6, becomes="it.orelse"),
        caught_by=(f"{_LOOPS}::test_an_item_goes_on_in_its_own_conversation",),
    ),
)
