"""Rules about runs that steps of other runs begin: none is begun twice, forgotten, or left alone."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.rule import Rule

_MACHINE = "tests/unit/machine/test_children.py"
_EXECUTOR = "tests/unit/executor/test_child_runs.py"
_STORE = "tests/contract/test_store_children.py"

CHILDREN: Sequence[Rule] = (
    Rule(
        name="end-of-a-child-is-told",
        breaks="A run waits for ever for a run that has ended.",
        file="executor/child_runs.py",
        old="            if turn.state.is_final and turn.state.parent is not None:\n",
        new="            if turn.state.parent is not None and not turn.state.id:\n",
        caught_by=(f"{_EXECUTOR}::test_the_end_of_a_child_lets_its_parent_go_on",),
    ),
    Rule(
        name="child-is-taken-up-at-once",
        breaks="A run that a step has begun waits until somebody rings.",
        file="executor/driver.py",
        old="            self._more = True\n",
        new="            pass\n",
        caught_by=(
            f"{_EXECUTOR}::test_the_loop_is_not_left_to_sleep_while_a_child_has_something_to_take_in",
        ),
    ),
    Rule(
        name="depth-of-runs",
        breaks="Workflows that begin one another in a circle fill the store.",
        file="machine/steps/child.py",
        old="    if turn.state.depth >= MAX_DEPTH:\n",
        new="    if turn.state.depth < 0:\n",
        caught_by=(
            f"{_MACHINE}::test_too_deep_a_run_begins_no_other",
            f"{_EXECUTOR}::test_runs_that_begin_one_another_for_ever_end_at_the_deepest",
        ),
    ),
    Rule(
        name="circle-of-workflows",
        breaks="Workflows that begin one another in a circle can be saved.",
        file="services/workflows.py",
        old="                if child in itself:\n",
        new="                if not child:\n",
        caught_by=("tests/unit/services/test_workflows.py::test_a_circle_of_workflows_is_refused_and_named",),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="children-are-cancelled",
        breaks="What a cancelled run has begun goes on.",
        file="machine/steps/child.py",
        old="        turn.add_effect(SendRunInput(current_child_run_id(turn, step), CANCEL_KEY, CancelRequested()))\n",
        new="        pass\n",
        caught_by=(
            f"{_MACHINE}::test_a_cancelled_run_waits_for_its_child_to_be_cancelled",
            f"{_MACHINE}::test_a_deadline_cancels_the_child[of the step]",
            f"{_MACHINE}::test_an_item_that_fails_cancels_the_runs_of_the_others",
        ),
    ),
    Rule(
        name="failure-cancels-children",
        breaks="A run that has failed waits for what it has begun, perhaps for days.",
        file="machine/decide.py",
        old="            child.stop_all(turn)\n",
        new="            pass\n",
        caught_by=(f"{_MACHINE}::test_a_failure_that_ends_the_run_cancels_the_child_once_and_waits_for_it",),
    ),
    Rule(
        name="every-pause-goes-down",
        breaks="A run that is paused a second time goes on below.",
        file="machine/steps/child.py",
        old='f"pause/{turn.state.seq}"',
        new='"pause"',
        caught_by=(f"{_MACHINE}::test_children_are_paused_and_resumed_with_the_run_each_time",),
    ),
    Rule(
        name="child-of-an-earlier-attempt",
        breaks="A step takes the output of a run that it has given up.",
        file="machine/steps/child.py",
        old=" and run_id == current_child_run_id(turn, step)",
        new="",
        caught_by=(f"{_MACHINE}::test_every_attempt_is_a_run_of_its_own_with_the_same_input",),
    ),
    Rule(
        name="input-of-a-child-fits",
        breaks="A run is begun with an input that its workflow would refuse from anybody else.",
        file="executor/child_runs.py",
        old="            found = _unfit(workflow, effect) or found\n",
        new="",
        caught_by=(f"{_EXECUTOR}::test_a_child_that_cannot_begin_is_a_failure_of_the_step[unfit input]",),
    ),
    Rule(
        name="child-keeps-the-sides-of-agents",
        breaks="An agent that is being moved is called on the other side in the middle of a run.",
        file="executor/child_runs.py",
        old="                routing_version=parent.routing_version,\n",
        new="",
        caught_by=(f"{_EXECUTOR}::test_a_child_inherits_what_agents_were_like_when_its_parent_was_accepted",),
    ),
    Rule(
        name="child-stays-with-its-parent",
        breaks="A run under way refers to a run that was deleted.",
        file="stores/sqlite/tables/runs.py",
        old="parent.id = runs.parent_id AND parent.finished_at IS NULL",
        new="parent.id = runs.id AND parent.finished_at IS NULL",
        caught_by=(
            f"{_STORE}::test_retention_keeps_a_run_for_as_long_as_the_one_that_has_begun_it_goes_on[sqlite]",
        ),
    ),
    Rule(
        name="ended-child-wakes-nobody",
        breaks="A run whose child has ended unheard is not counted as stuck.",
        file="stores/sqlite/tables/backlog.py",
        old=" AND child.finished_at IS NULL",
        new="",
        caught_by=(f"{_STORE}::test_a_run_whose_child_has_ended_unheard_has_no_reason_to_wake[sqlite]",),
    ),
)
