"""
Checks the paths that the expressions of a workflow read against what is known of the values.

A path that cannot exist is an error where the expression always reads it, and a warning where it may not be read: in
`&&`, `||` and `?:`, and in macros. A path that may be missing is a warning, unless the expression, or the condition of
its step, tests it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from msgspec import UNSET

from trunkline.workflow.compile import CompiledStep, CompiledWorkflow
from trunkline.workflow.definition import WorkflowReference
from trunkline.workflow.document.locations import ExpressionPosition, Path
from trunkline.workflow.expressions.cel_compiler import Expression
from trunkline.workflow.expressions.plain_paths import PlainPath
from trunkline.workflow.expressions.syntax_tree import TestedPath, strict_reads, tested_paths, variable_reads
from trunkline.workflow.expressions.template import Condition, Template, expressions_in
from trunkline.workflow.step_graph.step_names import step_path
from trunkline.workflow.types.shapes import Member, Shape, ShapeReader
from trunkline.workflow.types.step_shapes import TypeScope
from trunkline.workflow.validation_report import MAX_FINDINGS, ValidationReport

_MAX_NAMES_SHOWN = 10
_Keys = tuple[str | int, ...]
_Guards = tuple[TestedPath, ...]


def check_types(
    workflow: CompiledWorkflow,
    report: ValidationReport,
    children: Mapping[WorkflowReference, CompiledWorkflow],
) -> None:
    """`children`: the workflows that steps start, as far as they are known."""
    reader = ShapeReader()
    _TypeCheck(report, reader).scope(workflow, TypeScope(workflow, reader, children.get), ())


class _Read(NamedTuple):
    variable: str
    keys: _Keys
    # The expression always reads it.
    is_strict: bool
    # Its last key is only asked for.
    only_tested: bool


class _TypeCheck:
    def __init__(self, report: ValidationReport, reader: ShapeReader) -> None:
        self._report = report
        self._reader = reader
        self._warnings = 0

    def scope(self, workflow: CompiledWorkflow, scope: TypeScope, base: Path) -> None:
        """The steps of a workflow or of a block, whose paths begin with `base`."""
        for plan in (*workflow.steps.values(), *workflow.compensations.values()):
            if self._report.full:
                return
            self._step(workflow, scope if plan.compensates is None else scope.undoing(plan), plan, base)
        if workflow.output is not None:
            self._template(workflow.output, (*base, "output"), scope)
        for name, template in workflow.labels.items():
            self._template(template, ("labels", name), scope)
        for name, template in workflow.publish.artifacts.items():
            self._template(template, ("publish", "artifacts", name), scope)

    def _step(self, workflow: CompiledWorkflow, scope: TypeScope, plan: CompiledStep, base: Path) -> None:
        path = (*base, *step_path(plan.name))
        item = scope.items_of(plan)
        guards = () if plan.when is None else _tested_in(plan.when)
        if plan.for_each is not None:
            self._template(plan.for_each.items, (*path, "for_each"), scope, guards=guards)
        if plan.when is not None:
            self._condition(plan.when, (*path, "when"), scope, item)
        if plan.block is None:
            key = plan.kind if plan.definition.action is not UNSET else "input"
            self._template(plan.input, (*path, key), scope, item, guards)
            return
        inside = scope.block(plan)
        if plan.block.round is not None:
            self._condition(plan.block.round.until, (*path, "repeat", "until"), inside, None)
        written = workflow.definition.steps.get(plan.name)
        # A single step that is repeated stands where the block would.
        is_single = written is not None and written.repeat is not None and written.block is None
        self.scope(plan.block, inside, base if is_single else path)

    def _template(
        self,
        template: Template,
        path: Path,
        scope: TypeScope,
        item: Shape | None = None,
        guards: _Guards = (),
    ) -> None:
        for place, expression in expressions_in(template.part, path):
            self._expression(expression, place, scope, item, guards)

    def _condition(self, condition: Condition, path: Path, scope: TypeScope, item: Shape | None) -> None:
        if condition.expression is not None:
            self._expression(condition.expression, path, scope, item, ())

    def _expression(
        self,
        expression: Expression,
        path: Path,
        scope: TypeScope,
        item: Shape | None,
        guards: _Guards,
    ) -> None:
        # What is read in any case is there, whatever the expression itself tests.
        required = tuple(guard for guard in guards if not guard.only_compared)
        if not isinstance(expression, PlainPath):
            guards = (*guards, *tested_paths(expression.tree))
        for read in _reads(expression):
            shape = scope.variable(read.variable, item)
            self._read(read, shape, expression.source, path, (guards, required))

    def _read(
        self, read: _Read, shape: Shape, source: str, path: Path, tests: tuple[_Guards, _Guards]
    ) -> None:
        """`tests`: what guards against a path that may be missing, and against one that cannot exist."""
        seen = read.variable
        for count, key in enumerate(read.keys, 1):
            member = self._reader.member(shape, key)
            longer = f"{seen}[{key}]" if isinstance(key, int) else f"{seen}.{key}"
            guards = tests[member.presence == "never"]
            is_tested = (read.only_tested and count == len(read.keys)) or _is_guarded(read, count, guards)
            if member.presence == "never":
                message = self._missing(seen, key, member)
                if read.is_strict and not is_tested:
                    self._report.error(path, message, excerpt=_position(source, longer, seen))
                else:
                    self._warn(path, message, _position(source, longer, seen))
                return
            if member.presence in {"maybe", "undeclared"} and read.is_strict and not is_tested:
                message = (
                    f"{longer} may be missing; test it first: has({longer})"
                    if member.presence == "maybe"
                    else f"the schema of {seen} does not name {key!r}{self._names(key, member)}"
                )
                self._warn(path, message, _position(source, longer, seen))
                return
            shape, seen = member.shape, longer

    def _missing(self, seen: str, key: str | int, member: Member) -> str:
        return f"{seen} cannot have {key!r}{self._names(key, member)}"

    def _names(self, key: str | int, member: Member) -> str:
        if not member.names:
            return ""
        more = len(member.names) - _MAX_NAMES_SHOWN
        shown = ", ".join(member.names[:_MAX_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")
        return f"; it has {shown}{self._report.hint(str(key), member.names)}"

    def _warn(self, path: Path, message: str, excerpt: ExpressionPosition) -> None:
        # More of them are not shown.
        self._warnings += 1
        if self._warnings <= MAX_FINDINGS:
            self._report.warning(path, message, excerpt=excerpt)


def _reads(expression: Expression) -> Iterator[_Read]:
    if isinstance(expression, PlainPath):
        yield _Read(expression.root, expression.keys, is_strict=True, only_tested=False)
        return
    strict = set(strict_reads(expression.tree))
    for read in dict.fromkeys(variable_reads(expression.tree)):
        yield _Read(read.variable, read.keys, read in strict, read.only_tested)


def _tested_in(condition: Condition) -> _Guards:
    expression = condition.expression
    if expression is None or isinstance(expression, PlainPath):
        return ()
    return tuple(tested_paths(expression.tree))


def _is_guarded(read: _Read, count: int, guards: _Guards) -> bool:
    """Whether the path up to so many keys, the value before it, or something behind it is tested."""
    for variable, tested, _ in guards:
        shorter = min(count, len(tested))
        if variable == read.variable and len(tested) >= count - 1 and tested[:shorter] == read.keys[:shorter]:
            return True
    return False


def _position(source: str, path: str, whole: str) -> ExpressionPosition:
    start = max(source.find(path), source.find(whole), 0) if path not in source else source.find(path)
    before = source[:start]
    return ExpressionPosition(source, before.count("\n") + 1, start - (before.rfind("\n") + 1) + 1)
