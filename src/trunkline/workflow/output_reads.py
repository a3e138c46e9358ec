"""
What the expressions of a workflow read of steps' outputs: `${ steps.research.output.data.title }`.

For those who want to know what another form of an agent's output would mean for a workflow.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from msgspec import UNSET

from trunkline.jsontypes import Json
from trunkline.workflow.definition import WorkflowDefinition
from trunkline.workflow.expressions.cel_compiler import CelCompiler, Expression
from trunkline.workflow.expressions.interpolation import split_expressions
from trunkline.workflow.expressions.plain_paths import EVENT_VARIABLES, FOR_EACH_VARIABLES


class OutputRead(NamedTuple):
    """One expression that reads an output, in one of its places."""

    # The step whose output is read.
    step: str
    # What is read of it; empty: all of it.
    keys: tuple[str, ...]
    # Where the expression stands, as a dotted path.
    place: str
    expression: str


def output_reads(definition: WorkflowDefinition) -> Iterator[OutputRead]:
    """Of a definition that compiles."""
    engine = CelCompiler(definition.steps)
    for step in definition.steps.values():
        place = f"steps.{step.name}"
        in_loop = step.for_each is not None
        if step.for_each is not None:
            yield from _in_value(engine, step.for_each.items, f"{place}.for_each")
        if step.when is not None:
            yield from _in_source(engine, step.when, f"{place}.when", in_loop=in_loop)
        if step.input is not UNSET:
            yield from _in_value(engine, step.input, f"{place}.input", in_loop=in_loop)
        if step.action is not UNSET:
            yield from _in_value(engine, step.action, f"{place}.{step.kind}", in_loop=in_loop)
        if step.wait_for is not None and step.wait_for.match is not None:
            variables = (*(FOR_EACH_VARIABLES if in_loop else ()), *EVENT_VARIABLES)
            yield from _reads(engine.compile(step.wait_for.match, variables), f"{place}.wait_for.match")
    if definition.output is not UNSET:
        yield from _in_value(engine, definition.output, "output")


def _in_value(engine: CelCompiler, value: Json, place: str, *, in_loop: bool = False) -> Iterator[OutputRead]:
    if isinstance(value, str):
        for part in split_expressions(value):
            if not isinstance(part, str):
                yield from _in_source(engine, part.text, place, in_loop=in_loop)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _in_value(engine, item, f"{place}.{key}", in_loop=in_loop)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _in_value(engine, item, f"{place}[{index}]", in_loop=in_loop)


def _in_source(engine: CelCompiler, source: str, place: str, *, in_loop: bool) -> Iterator[OutputRead]:
    yield from _reads(engine.compile(source, FOR_EACH_VARIABLES if in_loop else ()), place)


def _reads(expression: Expression, place: str) -> Iterator[OutputRead]:
    for reading in expression.reads_of_variables:
        step = reading.variable.removeprefix("steps.")
        if step == reading.variable or reading.keys[:1] not in {(), ("output",)}:
            continue
        yield OutputRead(step, reading.keys[1:], place, expression.source)
