"""What a retry keeps of the run before it."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from trunkline.errors import Conflict, Invalid
from trunkline.jsontypes import Json, encode
from trunkline.machine.state import FINAL_RUN_STATUSES, StepState
from trunkline.machine.steps.actions import MAX_INPUT_BYTES
from trunkline.machine.steps.for_each import MAX_ITEMS
from trunkline.stores.port.runs import RunReads, RunRecord
from trunkline.workflow import CompiledWorkflow


def check_retried(record: RunRecord) -> None:
    """Raises `Conflict` if the run cannot be retried."""
    if record.status not in FINAL_RUN_STATUSES:
        raise Conflict(
            f"Run {record.id} is {record.status}. Only a finished run can be retried.",
            fix=f"Wait for it to finish, or cancel it first: trunkline runs cancel {record.id}.",
        )
    if record.compensation is not None and record.compensation.status == "FAILED":
        raise Conflict(
            f"The work of run {record.id} is undone only in part, because a person gave up. A retry could not tell"
            " which outputs to keep.",
            fix="Start a new run instead.",
        )
    if record.block is not None and record.parent is not None:
        raise Conflict(
            f"Run {record.id} is a block of another run and cannot be retried alone.",
            fix=f"Retry the run that it is a part of: trunkline runs retry {record.parent.run_id}.",
        )


async def kept_of_run(
    runs: RunReads,
    workflow: CompiledWorkflow,
    record: RunRecord,
    steps: list[StepState],
    from_step: str | None,
) -> tuple[dict[str, msgspec.Raw], dict[str, msgspec.Raw]]:
    """What a retry with the same input keeps: outputs, and the lists of steps whose items are done in part."""
    again = _steps_to_repeat(workflow, record, from_step)
    own = [step for step in steps if step.name in workflow.steps and step.name not in again]
    kept = completed_outputs(step for step in own if not _is_undone_by_item(workflow, step.name))
    lists: dict[str, msgspec.Raw] = {}
    for step in partly_done_steps(workflow, own, kept):
        done = await runs.items(record.id, step.name, limit=MAX_ITEMS)
        lists[step.name] = msgspec.Raw(step.input or b"[]")
        kept |= completed_outputs(done)
    return kept, lists


def _is_undone_by_item(workflow: CompiledWorkflow, step: str) -> bool:
    """Its items are kept one by one: if the retry fails as well, each of them is undone."""
    return workflow.steps[step].for_each is not None and workflow.compensation(step) is not None


def kept_outputs(
    workflow: CompiledWorkflow, record: RunRecord, steps: list[StepState], from_step: str | None
) -> dict[str, msgspec.Raw]:
    """The outputs of completed steps that do not run again."""
    again = _steps_to_repeat(workflow, record, from_step)
    return completed_outputs(step for step in steps if step.name in workflow.steps and step.name not in again)


def given_inputs(
    workflow: CompiledWorkflow, from_step: str | None, step_input: Json | msgspec.UnsetType
) -> dict[str, msgspec.Raw]:
    """The input that the caller gives the first step in place of what the workflow makes for it."""
    if isinstance(step_input, msgspec.UnsetType):
        return {}
    if from_step is None:
        raise Invalid("step_input requires from_step.", fix="Set from_step to the step that gets this input.")
    plan = workflow.steps[from_step]
    if plan.for_each is not None:
        raise Invalid(
            f"The step {from_step} is a for_each step and has no single input.",
            fix="Change the run input instead (input), or start from the step that creates the list.",
        )
    if plan.block is not None:
        raise Invalid(
            f"The step {from_step} is a block, a switch or a repeated step. Its steps read the run and the steps"
            " outside, so it has no input of its own.",
            fix="Leave out step_input. To change what the steps inside read, change the run input (input), or start"
            " from an earlier step.",
        )
    text = encode(step_input)
    if len(text) > MAX_INPUT_BYTES:
        raise Invalid(
            f"step_input has {len(text)} bytes, but the limit is {MAX_INPUT_BYTES}.",
            fix="Send a smaller step_input, and pass large content as a URL.",
        )
    return {from_step: msgspec.Raw(text)}


def partly_done_steps(
    workflow: CompiledWorkflow, steps: list[StepState], kept: Collection[str]
) -> list[StepState]:
    """The steps whose completed items are kept: their lists are made from the same outputs."""
    done = {step.name for step in steps if step.status == "COMPLETED"}
    return [
        step
        for step in steps
        if (plan := workflow.steps[step.name]).for_each is not None
        and step.attempts
        and step.name not in kept
        and all(need in kept or need in done for need in plan.needs)
    ]


def completed_outputs(steps: Iterable[StepState]) -> dict[str, msgspec.Raw]:
    return {
        step.name: msgspec.Raw(step.output)
        for step in steps
        if step.status == "COMPLETED" and step.output is not None
    }


def _steps_to_repeat(workflow: CompiledWorkflow, record: RunRecord, from_step: str | None) -> set[str]:
    waiting: list[str] = []
    if from_step is not None:
        if from_step not in workflow.steps:
            raise Invalid(f"There is no step {from_step}.", fix=f"Use one of: {', '.join(workflow.steps)}.")
        waiting.append(from_step)
    if record.compensation is not None:
        # What they did is undone.
        waiting += [name for name in workflow.steps if workflow.compensation(name) is not None]
    again: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in again:
            again.add(name)
            waiting.extend(workflow.steps[name].dependents)
    return again
