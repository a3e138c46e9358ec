"""Rules of compensations: everything that was done is undone, once, in order, and never silently left."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.mutation import Change, Drop
from tests.sabotage.rule import Rule

_MACHINE = "tests/unit/machine/test_compensation.py"

COMPENSATIONS: Sequence[Rule] = (
    Rule(
        name="last-step-is-undone-first",
        breaks="Work is undone in the order in which it was done.",
        symbol="trunkline.machine.compensation_order:steps_to_compensate",
        change=Drop("call statement", 2, of=2),
        caught_by=(f"{_MACHINE}::test_compensations_run_one_after_another_in_the_reverse_order[False]",),
    ),
    Rule(
        name="undone-step-is-not-undone-again",
        breaks="After a restart, compensations that have completed are called again.",
        symbol="trunkline.machine.compensation_order:_is_undone",
        change=Change("return value", becomes="False"),
        caught_by=(f"{_MACHINE}::test_compensations_run_one_after_another_in_the_reverse_order[True]",),
    ),
    Rule(
        name="failed-compensation-asks-a-person",
        breaks="A compensation fails, and the run ends as if everything were undone.",
        symbol="trunkline.machine.steps.failure:_record_failure",
        change=Change("condition", 2, of=3, becomes="False"),
        caught_by=(f"{_MACHINE}::test_a_person_can_skip_a_failed_compensation",),
    ),
    Rule(
        name="unknown-outcome-is-not-passed-over",
        breaks="A call that may have done its work is silently left as it is.",
        symbol="trunkline.machine.compensation_order:is_outcome_unknown",
        change=Change("return value", becomes="False"),
        caught_by=(f"{_MACHINE}::test_an_unknown_outcome_is_a_persons_to_decide",),
    ),
    Rule(
        name="compensation-is-not-cancelled",
        breaks="A request to cancel leaves a run undone in part.",
        symbol="trunkline.machine.decide:_cancel",
        change=Drop("operand", 2, of=4),
        caught_by=(f"{_MACHINE}::test_a_run_that_is_being_undone_is_not_cancelled",),
    ),
    Rule(
        name="deadline-does-not-stop-compensations",
        breaks="The deadline of the run ends it while its work is being undone.",
        symbol="trunkline.machine.decide:_pass_deadline",
        change=Drop("operand", 2, of=2),
        caught_by=(f"{_MACHINE}::test_a_deadline_that_has_passed_does_not_end_compensations",),
    ),
)
