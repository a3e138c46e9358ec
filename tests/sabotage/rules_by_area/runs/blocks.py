"""Rules of blocks: rounds end, each is a run of its own, and of a switch one branch runs."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.mutation import Change
from tests.sabotage.rule import Rule

_ROUNDS = "tests/unit/machine/steps/test_rounds.py"

BLOCKS: Sequence[Rule] = (
    Rule(
        name="rounds-have-a-limit",
        breaks="A step whose condition never becomes true is repeated forever.",
        symbol="trunkline.machine.steps.rounds:end_round",
        change=Change("condition", 3, of=3, becomes="False"),
        caught_by=(f"{_ROUNDS}::test_after_the_last_round_the_step_fails",),
    ),
    Rule(
        name="no-round-of-an-ending-run",
        breaks="A run that is cancelled between two rounds starts another one, and does not end.",
        symbol="trunkline.machine.steps.rounds:end_round",
        change=Change("condition", 2, of=3, becomes="False"),
        caught_by=(f"{_ROUNDS}::test_a_run_that_ends_begins_no_round",),
    ),
    Rule(
        name="each-round-is-a-run-of-its-own",
        breaks="The second round of a step is taken for the first one, and never starts.",
        symbol="trunkline.machine.steps.child:_run_id",
        change=Change("condition", becomes="True"),
        caught_by=(f"{_ROUNDS}::test_each_round_gets_the_one_before_it_and_a_run_of_its_own",),
    ),
    Rule(
        name="timers-of-rounds-differ",
        breaks="The second delay of a step, or its retry in a second round, never ends.",
        symbol="trunkline.machine.steps.timers:_attempt",
        change=Change("condition", becomes="False"),
        caught_by=(f"{_ROUNDS}::test_what_is_due_in_a_round_has_a_key_of_its_own",),
    ),
    Rule(
        name="no-round-while-paused",
        breaks="A paused run starts another round when the delay between two rounds is over.",
        symbol="trunkline.machine.steps.child:begin_round",
        change=Change("condition", becomes="False"),
        caught_by=(f"{_ROUNDS}::test_a_delay_that_is_over_in_a_paused_run_begins_no_round",),
    ),
    Rule(
        name="one-branch-of-a-switch",
        breaks="Several branches of a switch run.",
        symbol="trunkline.workflow.expressions.template:Condition.holds",
        change=Change("condition", 1, of=3, becomes="False"),
        caught_by=("tests/unit/workflow/test_blocks.py::test_a_branch_runs_only_if_none_before_it_does",),
    ),
)
