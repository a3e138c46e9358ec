"""Rules of child runs: none is started twice, forgotten, or left behind."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.mutation import Change, Drop, ReplaceText
from tests.sabotage.rule import Rule

_MACHINE = "tests/unit/machine/steps/test_child.py"
_EXECUTOR = "tests/unit/executor/test_child_runs.py"
_WAITS = "tests/unit/machine/test_child_waits.py"
_STORE = "tests/contract/stores/test_child_runs.py"
_SCHEMAS = "tests/unit/workflow/test_bounded_schema.py"

CHILD_RUNS: Sequence[Rule] = (
    Rule(
        name="end-of-a-child-reaches-its-parent",
        breaks="A run waits forever for a child run that has ended.",
        symbol="trunkline.executor.child_runs:ChildRuns.write",
        change=Change("condition", 3, of=5, becomes="False"),
        caught_by=(f"{_EXECUTOR}::test_the_end_of_a_child_lets_its_parent_go_on",),
    ),
    Rule(
        name="cost-of-a-schema-is-bounded",
        breaks="A short schema whose parts refer to one another keeps the process busy forever.",
        symbol="trunkline.workflow.schema_cost:SchemaGraph.size",
        change=Change("condition", 3, of=4, becomes="False"),
        caught_by=(f"{_SCHEMAS}::test_a_schema_that_doubles_at_each_level_is_refused",),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="cost-of-descriptions-is-bounded",
        breaks="Describing what is wrong with a large value takes memory in proportion to all of its errors.",
        symbol="trunkline.workflow.bounded_schema:BoundedSchema.errors",
        change=Change("condition", becomes="False"),
        caught_by=(f"{_SCHEMAS}::test_errors_of_a_large_value_are_not_described",),
    ),
    Rule(
        name="child-starts-at-once",
        breaks="A child run waits until something else wakes the executor.",
        symbol="trunkline.executor.driver:RunDriver.work",
        change=Drop("assignment", 19, of=19),
        caught_by=(
            f"{_EXECUTOR}::test_the_loop_is_not_left_to_sleep_while_a_child_has_something_to_take_in",
        ),
    ),
    Rule(
        name="depth-of-runs",
        breaks="Workflows that start one another in a cycle fill the store.",
        symbol="trunkline.machine.steps.child:begin",
        change=Change("condition", 2, of=6, becomes="False"),
        caught_by=(
            f"{_MACHINE}::test_too_deep_a_run_begins_no_other",
            f"{_EXECUTOR}::test_runs_that_begin_one_another_for_ever_end_at_the_deepest",
        ),
    ),
    Rule(
        name="cycle-of-workflows",
        breaks="Workflows that start one another in a cycle can be saved.",
        symbol="trunkline.services.workflows:Workflows._reachable",
        change=Change("condition", 4, of=6, becomes="False"),
        caught_by=("tests/unit/services/test_workflows.py::test_a_circle_of_workflows_is_refused_and_named",),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="children-are-cancelled",
        breaks="The child runs of a cancelled run continue.",
        symbol="trunkline.machine.steps.child:stop",
        change=Drop("call statement", 3, of=3),
        caught_by=(
            f"{_MACHINE}::test_a_cancelled_run_waits_for_its_child_to_be_cancelled",
            f"{_MACHINE}::test_a_deadline_cancels_the_child[of the step]",
            f"{_MACHINE}::test_an_item_that_fails_cancels_the_runs_of_the_others",
        ),
    ),
    Rule(
        name="failure-cancels-children",
        breaks="A failed run waits for its child runs, perhaps for days.",
        symbol="trunkline.machine.decide:decide",
        change=Drop("call statement", 5, of=6),
        caught_by=(f"{_MACHINE}::test_a_failure_that_ends_the_run_cancels_the_child_once_and_waits_for_it",),
    ),
    Rule(
        name="wait-of-a-child-reaches-its-parent",
        breaks="A run whose child waits for a person looks as if it worked, and its caller is not asked.",
        symbol="trunkline.executor.child_runs:_news",
        change=Change("condition", 2, of=2, becomes="True"),
        caught_by=(f"{_EXECUTOR}::test_a_parent_waits_with_its_child_and_goes_on_with_it",),
    ),
    Rule(
        name="child-that-goes-on-is-noticed",
        breaks="A run still shows a question that was answered inside it.",
        symbol="trunkline.machine.child_waits:news_for_parent",
        change=Change("condition", 3, of=3, becomes="True"),
        caught_by=(
            f"{_WAITS}::test_a_parent_goes_on_with_its_child_and_ends_with_it",
            f"{_EXECUTOR}::test_a_parent_waits_with_its_child_and_goes_on_with_it",
        ),
    ),
    Rule(
        name="child-that-waits-is-cancelled",
        breaks="A question inside a cancelled run stays open forever.",
        symbol="trunkline.machine.steps.child:stop",
        change=Change("condition", 1, of=2, becomes="False"),
        caught_by=(
            f"{_WAITS}::test_cancelling_a_run_cancels_the_child_that_waits_and_waits_for_its_end",
            f"{_WAITS}::test_a_failed_run_stops_the_child_that_waits",
        ),
    ),
    Rule(
        name="every-pause-reaches-the-children",
        breaks="The child runs of a run that is paused a second time continue.",
        symbol="trunkline.machine.steps.child:pause_all",
        change=Change("f-string", becomes="'pause'"),
        caught_by=(f"{_MACHINE}::test_children_are_paused_and_resumed_with_the_run_each_time",),
    ),
    Rule(
        name="child-of-an-earlier-attempt",
        breaks="A step accepts the output of a child run that it has abandoned.",
        symbol="trunkline.machine.steps.child:_is_current",
        change=Drop("operand", 2, of=2),
        caught_by=(f"{_MACHINE}::test_every_attempt_is_a_run_of_its_own_with_the_same_input",),
    ),
    Rule(
        name="input-of-a-child-is-validated",
        breaks="A child run starts with an input that its workflow rejects from every other caller.",
        symbol="trunkline.executor.child_runs:ChildRuns._begin",
        change=Drop("assignment", 3, of=5),
        caught_by=(f"{_EXECUTOR}::test_a_child_that_cannot_begin_is_a_failure_of_the_step[unfit input]",),
    ),
    Rule(
        name="child-keeps-the-routes-of-agents",
        breaks="A migrating agent is called on a different route in the middle of a run.",
        symbol="trunkline.executor.child_runs:ChildRuns._begin",
        change=Drop("keyword", 11, of=14),
        caught_by=(f"{_EXECUTOR}::test_a_child_inherits_what_agents_were_like_when_its_parent_was_accepted",),
    ),
    Rule(
        name="child-stays-with-its-parent",
        breaks="A running run refers to a child run that was deleted.",
        symbol="trunkline.stores.sqlite.tables.runs:_OLD",
        change=ReplaceText("runs.parent_id", "runs.id"),
        caught_by=(
            f"{_STORE}::test_retention_keeps_a_run_for_as_long_as_the_one_that_has_begun_it_goes_on[sqlite]",
        ),
    ),
    Rule(
        name="ended-child-is-no-wake-reason",
        breaks="A run that missed the end of its child is not counted as stuck.",
        symbol="trunkline.stores.sqlite.tables.operations:_WITHOUT_WAKE_REASON",
        change=ReplaceText("runs.id AND child.finished_at IS NULL", "runs.id"),
        caught_by=(f"{_STORE}::test_a_run_whose_child_has_ended_unheard_has_no_reason_to_wake[sqlite]",),
    ),
)
