"""
What the expressions of a workflow read of steps' outputs: `${ steps.research.output.data.title }`.

For those who want to know what another form of an agent's output would mean for a workflow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from msgspec import UNSET, UnsetType

from trunkline.jsontypes import Json
from trunkline.workflow.definition import Block, StepDefinition, WorkflowDefinition
from trunkline.workflow.expressions.cel_compiler import CelCompiler
from trunkline.workflow.expressions.interpolation import split_expressions
from trunkline.workflow.expressions.plain_paths import (
    EVENT_VARIABLES,
    FAILURE_VARIABLE,
    FOR_EACH_VARIABLES,
    ROUND_VARIABLE,
)
from trunkline.workflow.expressions.template import previous
from trunkline.workflow.publish_templates import published_values


class OutputRead(NamedTuple):
    """One expression that reads an output, in one of its places."""

    # The step whose output is read.
    step: str
    # The agent that it calls; empty: none.
    agent: str
    # What is read of it; empty: all of it.
    keys: tuple[str, ...]
    # Where the expression stands, as a dotted path.
    place: str
    expression: str


def output_reads(definition: WorkflowDefinition) -> Iterator[OutputRead]:
    """Of a definition that compiles."""
    scope = _Scope(CelCompiler(definition.steps), definition.steps)
    yield from _scope_reads(scope, definition.steps, definition.output, "", ())
    for place, value in published_values(definition.publish):
        yield from _in_value(scope, value, place, ())


class _Scope(NamedTuple):
    """What can be read where: the steps by name, those outside a block included."""

    engine: CelCompiler
    steps: Mapping[str, StepDefinition]


def _scope_reads(
    scope: _Scope,
    steps: Mapping[str, StepDefinition],
    output: Json | UnsetType,
    place: str,
    variables: tuple[str, ...],
) -> Iterator[OutputRead]:
    for step in steps.values():
        yield from _step_reads(scope, step, f"{place}steps.{step.name}", variables)
    if output is not UNSET:
        yield from _in_value(scope, output, f"{place}output", variables)


def _step_reads(
    scope: _Scope, step: StepDefinition, place: str, variables: tuple[str, ...]
) -> Iterator[OutputRead]:
    if step.for_each is not None:
        yield from _in_value(scope, step.for_each.items, f"{place}.for_each", variables)
        variables = tuple(dict.fromkeys((*variables, *FOR_EACH_VARIABLES)))
    if step.when is not None:
        yield from _in_source(scope, step.when, f"{place}.when", variables)
    if step.input is not UNSET:
        yield from _in_value(scope, step.input, f"{place}.input", variables)
    if step.action is not UNSET:
        yield from _in_value(scope, step.action, f"{place}.{step.kind}", variables)
    if step.wait_for is not None and step.wait_for.match is not None:
        readable = (*variables, *EVENT_VARIABLES)
        yield from _in_source(scope, step.wait_for.match, f"{place}.wait_for.match", readable)
    if step.repeat is not None:
        own = {step.name: step} if step.block is None else step.block.steps
        variables = (*variables, ROUND_VARIABLE, *map(previous, own))
        within = _Scope(scope.engine.for_block(own), {**scope.steps, **own})
        yield from _in_source(within, step.repeat.until, f"{place}.repeat.until", variables)
    for index, branch in enumerate(step.switch or ()):
        if branch.when is not None:
            yield from _in_source(scope, branch.when, f"{place}.switch[{index}].when", variables)
        yield from _block_reads(scope, branch.block, f"{place}.switch[{index}].", variables)
    if step.block is not None:
        yield from _block_reads(scope, step.block, f"{place}.", variables)
    if step.compensate is not None:
        readable = tuple(dict.fromkeys((*variables, FAILURE_VARIABLE)))
        yield from _step_reads(scope, step.compensate, f"{place}.compensate", readable)


def _block_reads(scope: _Scope, block: Block, place: str, variables: tuple[str, ...]) -> Iterator[OutputRead]:
    within = _Scope(scope.engine.for_block(block.steps), {**scope.steps, **block.steps})
    yield from _scope_reads(within, block.steps, block.output, place, variables)


def _in_value(scope: _Scope, value: Json, place: str, variables: tuple[str, ...]) -> Iterator[OutputRead]:
    if isinstance(value, str):
        for part in split_expressions(value):
            if not isinstance(part, str):
                yield from _in_source(scope, part.text, place, variables)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _in_value(scope, item, f"{place}.{key}", variables)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _in_value(scope, item, f"{place}[{index}]", variables)


def _in_source(scope: _Scope, source: str, place: str, variables: tuple[str, ...]) -> Iterator[OutputRead]:
    expression = scope.engine.compile(source, variables)
    for reading in expression.reads_of_variables:
        step = reading.variable.removeprefix("steps.")
        if step == reading.variable or reading.keys[:1] not in {(), ("output",)}:
            continue
        yield OutputRead(step, scope.steps[step].agent, reading.keys[1:], place, expression.source)
