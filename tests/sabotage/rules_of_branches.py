"""Rules about branches, loops and the deadlines of steps: what is stopped, and what must not be."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.rule import Rule

_JOINS = "tests/unit/machine/test_joins.py"
_LOOPS = "tests/unit/machine/test_for_each.py"
_DEADLINES = "tests/unit/machine/test_step_deadlines.py"

BRANCHES: Sequence[Rule] = (
    Rule(
        name="losers-are-told",
        breaks="The agents of branches that nobody waits for any more go on working.",
        file="machine/steps/join.py",
        old="        kinds.stop(turn, step)\n",
        new="",
        caught_by=(f"{_JOINS}::test_the_rest_is_stopped_and_its_answers_change_nothing",),
    ),
    Rule(
        name="branch-that-is-wanted-goes-on",
        breaks="A join stops a step that another step still waits for.",
        file="machine/steps/join.py",
        old="        if not wanted_by[name]:\n",
        new="        if name:\n",
        caught_by=(f"{_JOINS}::test_a_branch_that_another_step_needs_goes_on",),
    ),
    Rule(
        name="failure-of-a-shared-branch",
        breaks="A step begins although what it needs has failed, because a join beside it could bear that.",
        file="workflow/branches.py",
        old="if dependents and all(later",
        new="if dependents and any(later",
        caught_by=(f"{_JOINS}::test_the_failure_of_a_branch_that_another_step_needs_fails_the_run",),
    ),
    Rule(
        name="step-deadline-ends-with-its-step",
        breaks="A step that is over leaves a timer behind.",
        file="machine/turn.py",
        old="if step.is_final and step.attempts and self._has_deadline(step):",
        new="if not step.name:",
        caught_by=(f"{_DEADLINES}::test_a_step_that_ends_in_time_leaves_no_timer",),
    ),
    Rule(
        name="deadline-of-what-is-called-once",
        breaks="A call that may have been done counts as failed, and is made again by a retry.",
        file="machine/steps/agent.py",
        old='    if plan.definition.delivery == "at_most_once" and step.status == "RUNNING":\n',
        new="    if not step.name:\n",
        caught_by=(
            f"{_DEADLINES}::test_what_must_not_be_called_twice_waits_for_a_person_when_its_deadline_has_passed",
        ),
    ),
    Rule(
        name="no-item-of-a-step-that-is-over",
        breaks="A loop that has failed goes on with its next items.",
        file="machine/decide.py",
        old="if name not in state.workflow.steps and step_of_item(name) not in state.for_each:",
        new="if not name:",
        caught_by=(f"{_LOOPS}::test_the_step_s_own_on_error_decides_what_its_failure_means",),
        # What such an item would read is gone.
        shows="KeyError: 's'",
    ),
    Rule(
        name="items-at-once",
        breaks="A loop calls its agent for all items at once, whatever its limit.",
        file="machine/evolve.py",
        old="while iteration.next_index < len(iteration.items) and iteration.active < loop.definition.at_once:",
        new="while iteration.next_index < len(iteration.items):",
        caught_by=(
            f"{_LOOPS}::test_only_so_many_items_are_worked_on_at_once",
            f"{_LOOPS}::test_sequential_items_follow_one_another",
        ),
    ),
    Rule(
        name="items-talk-alone",
        breaks="An agent answers one item in the conversation of another.",
        file="machine/steps/agent.py",
        old="step.context_id if has_item_contexts(plan) else turn.state.contexts.get(plan.agent)",
        new="turn.state.contexts.get(plan.agent)",
        caught_by=(f"{_LOOPS}::test_an_item_goes_on_in_its_own_conversation",),
    ),
)
