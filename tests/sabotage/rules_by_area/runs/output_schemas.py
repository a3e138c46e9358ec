"""Rules of steps with an output schema: no wrong output passes, and no agent is asked forever."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.mutation import Change, Drop
from tests.sabotage.rule import Rule

_MACHINE = "tests/unit/machine/steps/test_repair.py"
_SCENARIOS = "tests/scenarios/test_output_schemas.py"

OUTPUT_SCHEMAS: Sequence[Rule] = (
    Rule(
        name="output-is-checked",
        breaks="A wrong output completes its step, and the next step fails or works with it.",
        symbol="trunkline.machine.steps.agent:_task",
        change=Change("condition", 3, of=4, becomes="False"),
        caught_by=(f"{_SCENARIOS}::test_an_answer_that_stays_wrong_fails_with_the_errors[embedded]",),
    ),
    Rule(
        name="corrections-are-limited",
        breaks="An agent that never returns a correct output is asked forever.",
        symbol="trunkline.machine.steps.repair:refuse_output",
        change=Drop("operand", 1, of=8),
        caught_by=(f"{_MACHINE}::test_the_agent_is_asked_as_often_as_the_step_says",),
    ),
    Rule(
        name="late-invalid-output-leaves-the-decided-retry",
        breaks="A step whose retry is decided never runs again after a late invalid output.",
        symbol="trunkline.machine.steps.repair:refuse_output",
        change=Change("condition", 1, of=3, becomes="False"),
        caught_by=(f"{_MACHINE}::test_a_late_wrong_output_leaves_the_next_attempt_as_it_was_decided",),
    ),
    Rule(
        name="at-most-once-is-not-corrected",
        breaks="A step that must call its agent at most once calls it again for a correction.",
        symbol="trunkline.workflow.definition:StepDefinition.max_repairs",
        change=Change("condition", 2, of=2, becomes="True"),
        caught_by=(f"{_MACHINE}::test_an_agent_that_must_not_be_called_twice_is_not_asked",),
    ),
)
