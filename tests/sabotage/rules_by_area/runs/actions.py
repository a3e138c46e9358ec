"""Rules of steps without a call: no wait is forgotten or ends early, and no turn becomes too long."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.mutation import Change, Drop
from tests.sabotage.rule import Rule

_MACHINE = "tests/unit/machine/steps/test_actions.py"

ACTIONS: Sequence[Rule] = (
    Rule(
        name="sleep-has-a-timer",
        breaks="A run sleeps forever.",
        symbol="trunkline.machine.steps.actions:wait",
        change=Change("condition", becomes="False"),
        caught_by=(f"{_MACHINE}::test_a_step_sleeps_for_its_duration_and_never_shorter",),
    ),
    Rule(
        name="wait-ends-with-its-own-timer",
        breaks="A late timer of an earlier attempt ends the wait of the present one too early.",
        symbol="trunkline.machine.steps.kinds:end_wait",
        change=Drop("operand", 2, of=4),
        caught_by=(f"{_MACHINE}::test_a_timer_of_another_attempt_does_not_end_the_sleep",),
    ),
    Rule(
        name="sleeping-run-waits-for-no-person",
        breaks="The inbox says that a run waits for a person while one of its steps is asleep.",
        symbol="trunkline.machine.decide:_waits_for_people_alone",
        change=Change("operand", 3, of=5, becomes="True"),
        caught_by=(
            f"{_MACHINE}::test_a_run_with_a_question_and_a_sleep_waits_for_a_person_only_after_the_sleep",
        ),
    ),
    Rule(
        name="values-of-a-turn-are-bounded",
        breaks="A loop that computes thousands of values keeps the store's writer busy in one transaction.",
        symbol="trunkline.machine.decide:_advance",
        change=Change("condition", 5, of=8, becomes="False"),
        caught_by=(
            f"{_MACHINE}::test_a_turn_computes_a_bounded_number_of_values_and_goes_on_in_the_next_one",
        ),
    ),
)
