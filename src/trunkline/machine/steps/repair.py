"""
What follows from an output that violates the step's schema: the agent is asked to correct it, or the step fails.

The bridge has compared the output with the schema (`bridge/calls/output_check.py`): here, what it found is a fact. A
request for a correction is not another attempt. It has a count of its own, and it is sent like a reply to a question:
with a task id of its own, in the same conversation.
"""

from __future__ import annotations

from contextlib import suppress

import msgspec

from trunkline.jsontypes import JsonObject, decode, encode
from trunkline.machine.effects import StopTask
from trunkline.machine.events import Payload, StepRepairRequested
from trunkline.machine.state import StepState
from trunkline.machine.steps.failure import fail_attempt
from trunkline.machine.steps.timers import cancel_wait_timer
from trunkline.machine.turn import Turn
from trunkline.messages import AgentResult, ReplyMessage, StepError
from trunkline.workflow import CompiledStep

# Of an input or an output in the request: an agent without a conversation needs them, and one that returned megabytes
# does not need them back.
_MAX_QUOTED_BYTES = 64 * 1024


def refuse_output(turn: Turn, plan: CompiledStep, step: StepState, result: AgentResult) -> None:
    """The agent has answered, but its output does not match the schema."""
    repairs = step.call_details.repairs
    is_exhausted = repairs >= plan.definition.max_repairs or turn.is_ending
    waits_for_retry = step.waiting_for is not None and step.waiting_for.kind == "retry"
    if is_exhausted and (step.status == "PENDING" or waits_for_retry):
        # The next attempt is decided already, and a timer has its key only once.
        return
    cancel_wait_timer(turn, step)
    if result.attempt != step.attempts:
        turn.add_effect(StopTask(result.task_id, step.attempts, step.agent))
    if is_exhausted:
        fail_attempt(turn, plan, step, result, _error(result, repairs))
        return
    turn.record(
        StepRepairRequested(
            step.name,
            step.attempts,
            repairs + 1,
            tuple(result.output_errors),
            Payload(encode(_request(plan, step, result))),
            result.protocol,
            result.context_id,
        )
    )


def _error(result: AgentResult, repairs: int) -> StepError:
    asked = f" The agent was asked {repairs} time{'s' * (repairs > 1)} to correct it." if repairs else ""
    first, *others = result.output_errors
    more = f" (and {len(others)} more)" if others else ""
    return StepError(
        code="output_invalid",
        message=f"The agent's output does not match output_schema: {first}{more}.{asked}",
        detail={"errors": [*result.output_errors]},
    )


def _request(plan: CompiledStep, step: StepState, result: AgentResult) -> ReplyMessage:
    schema = plan.definition.output_schema or {}
    errors = "\n".join(f"- {error}" for error in result.output_errors)
    data: JsonObject = {"errors": [*result.output_errors], "schema": schema}
    if result.context_id is None and step.context_id is None:
        # The agent has no conversation to look it up in.
        for name, text in (("input", step.input), ("output", bytes(result.output))):
            # What is not JSON is not quoted.
            with suppress(msgspec.DecodeError, ValueError, RecursionError):
                if text is not None and len(text) <= _MAX_QUOTED_BYTES:
                    data[name] = decode(text)
    request = (
        f"Your last answer does not match the JSON Schema that is required:\n{errors}\n"
        "Answer again. Answer only with JSON that matches this schema:\n"
        f"{encode(schema).decode()}"
    )
    return ReplyMessage(text=request, data=data)
