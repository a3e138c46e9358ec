"""The blocks that `repeat` of a single step and `switch` mean."""

from __future__ import annotations

from msgspec import UNSET
from msgspec.structs import replace

from trunkline.workflow.definition import ALL, Block, StepDefinition
from trunkline.workflow.step_graph.step_names import branch_name


def with_block(step: StepDefinition) -> StepDefinition:
    """
    A step that is repeated or that has branches, as the block that it means.

    A single step is repeated as a block of it alone. The branches of a switch are blocks, each of which runs if none
    before it does.
    """
    if step.repeat is not None and step.block is None:
        # In a loop, a call without input gets the item.
        gets_item = step.for_each is not None and step.input is UNSET and step.kind in {"agent", "workflow"}
        inner = replace(
            step, repeat=None, for_each=None, when=None, needs=(), join=ALL, on_error="fail", deadline=None,
            compensate=None, input="${ item }" if gets_item else step.input,
        )  # fmt: skip
        block = Block({step.name: inner})
    elif step.switch is not None:
        block = Block(
            {
                branch_name(index): StepDefinition(
                    name=branch_name(index),
                    agent="",
                    block=branch.block,
                    when="true" if branch.when is None else branch.when,
                    needs=tuple(map(branch_name, range(index))),
                )
                for index, branch in enumerate(step.switch)
            }
        )
    else:
        return step
    return StepDefinition(
        name=step.name,
        agent="",
        block=block,
        switch=None if step.repeat is not None else step.switch,
        cache=step.cache if step.repeat is None else None,
        needs=step.needs,
        join=step.join,
        for_each=step.for_each,
        repeat=step.repeat,
        when=step.when,
        retry=step.retry if step.repeat is None else None,
        deadline=step.deadline,
        on_error=step.on_error,
        compensate=step.compensate,
    )
