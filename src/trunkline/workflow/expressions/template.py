"""
Templates: JSON with expressions in its strings, taken apart once, when the workflow is loaded.

A string that is one expression becomes its value; in a longer string the value becomes text. What holds no
expression is returned as it is, the same object every time: callers encode results and do not change them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeAlias

import msgspec

from trunkline.jsontypes import Json
from trunkline.workflow.document.locations import ExpressionPosition, Path
from trunkline.workflow.expressions.cel_compiler import CelCompiler, CelExpression, Expression
from trunkline.workflow.expressions.cost_limits import BUDGET, EvaluationBudget
from trunkline.workflow.expressions.errors import CompileError, ExpressionError
from trunkline.workflow.expressions.interpolation import split_expressions
from trunkline.workflow.expressions.plain_paths import (
    EVENT_VARIABLES,
    FAILURE_VARIABLE,
    FOR_EACH_VARIABLES,
    PREVIOUS,
    ROUND_VARIABLE,
    PlainPath,
    Scope,
)
from trunkline.workflow.validation_report import ValidationReport


class _TemplateNode(Protocol):
    def evaluate(self, scope: Scope, budget: EvaluationBudget) -> Json: ...


class _ConstantValue:
    def __init__(self, value: Json) -> None:
        self.value = value

    def evaluate(self, scope: Scope, budget: EvaluationBudget) -> Json:  # noqa: ARG002 - the same for every scope
        return self.value


class _TextTemplate:
    def __init__(self, parts: list[str | Expression], source: str) -> None:
        self.parts = parts
        self.source = source

    def evaluate(self, scope: Scope, budget: EvaluationBudget) -> Json:
        texts = [
            part if isinstance(part, str) else _as_text(part.evaluate(scope, budget)) for part in self.parts
        ]
        if sum(map(len, texts)) > BUDGET:
            raise ExpressionError(
                f"the resulting text would be larger than {BUDGET >> 20} MiB", self.source[:200]
            )
        return "".join(texts)


class _ObjectTemplate:
    def __init__(self, parts: list[tuple[str, _TemplateNode]]) -> None:
        self.parts = parts

    def evaluate(self, scope: Scope, budget: EvaluationBudget) -> Json:
        return {key: part.evaluate(scope, budget) for key, part in self.parts}


class _ListTemplate:
    def __init__(self, parts: list[_TemplateNode]) -> None:
        self.parts = parts

    def evaluate(self, scope: Scope, budget: EvaluationBudget) -> Json:
        return [part.evaluate(scope, budget) for part in self.parts]


class ObjectParts(NamedTuple):
    parts: Sequence[tuple[str, object]]


class ListParts(NamedTuple):
    parts: Sequence[object]


TemplateContent: TypeAlias = ObjectParts | ListParts | PlainPath | str | float | bool | None


def content_of(part: object) -> TemplateContent:
    """
    What a part of a template consists of: of a text with expressions, its source; of a constant, itself.

    None stands for null, and for what is not known before an evaluation.
    """
    match part:
        case _ObjectTemplate():
            return ObjectParts(part.parts)
        case _ListTemplate():
            return ListParts(part.parts)
        case _TextTemplate():
            return part.source
        case _ConstantValue():
            return _constant_content(part.value)
        case PlainPath():
            return part
        case _:
            return None


def _constant_content(value: Json) -> TemplateContent:
    match value:
        case dict():
            return ObjectParts([(name, _ConstantValue(each)) for name, each in value.items()])
        case list():
            return ListParts([_ConstantValue(each) for each in value])
        case _:
            return value


def expressions_in(part: object, path: Path) -> Iterator[tuple[Path, Expression]]:
    """The expressions of a part of a template that is found at this path, each with its own."""
    match part:
        case PlainPath() | CelExpression():
            yield path, part
        case _TextTemplate():
            yield from ((path, each) for each in part.parts if not isinstance(each, str))
        case _ObjectTemplate():
            for key, each in part.parts:
                yield from expressions_in(each, (*path, key))
        case _ListTemplate():
            for index, each in enumerate(part.parts):
                yield from expressions_in(each, (*path, index))
        case _:
            return


class Template:
    """A value that is worked out from what `reads` names."""

    __slots__ = ("part", "reads")

    def __init__(self, part: _TemplateNode, reads: frozenset[str]) -> None:
        self.reads = reads
        self.part = part

    def evaluate(self, scope: Scope) -> Json:
        """Raises `ExpressionError` if an expression in it has no value, or all of them together cost too much."""
        return self.part.evaluate(scope, EvaluationBudget())


class Condition:
    """A question that is answered with true or false, or with an error."""

    __slots__ = ("_earlier", "expression", "reads")

    def __init__(self, expression: Expression | None, earlier: tuple[str, ...] = ()) -> None:
        """`earlier`: the steps all of which must have been skipped; without an expression, nothing else is asked."""
        self.expression = expression
        self._earlier = tuple(f"steps.{step}" for step in earlier)
        self.reads = frozenset(self._earlier).union(() if expression is None else expression.reads)

    def behind(self, earlier: tuple[str, ...]) -> Condition:
        """The same, of a branch that runs only if none of those before it does."""
        return Condition(self.expression, earlier)

    def holds(self, scope: Scope) -> bool:
        for variable in self._earlier:
            step = scope(variable)
            if not isinstance(step, dict) or step["status"] != "SKIPPED":
                return False
        if self.expression is None:
            return True
        value = self.expression.evaluate(scope)
        if not isinstance(value, bool):
            shown = msgspec.json.encode(value).decode(errors="replace")[:40]
            raise ExpressionError(
                f"a condition must be true or false, but this is {shown}", self.expression.source
            )
        return value


ITEM = Template(PlainPath("item", "item", ()), frozenset({"item"}))
RUN_INPUT = Template(PlainPath("input", "input", ()), frozenset({"input"}))


def scope_template(reads: Iterable[str]) -> Template:
    """An object with the present value of everything that is read, by its name."""
    names = sorted(reads)
    return Template(_ObjectTemplate([(name, PlainPath(name, name, ())) for name in names]), frozenset(names))


def previous(step: str) -> str:
    """How the steps of a repeated block read one of them in the round before."""
    return f"{PREVIOUS}steps.{step}"


class FirstCompleted:
    """The output of the first of some steps that has completed, or null; as a part of a template."""

    def __init__(self, steps: Iterable[str]) -> None:
        self._variables = [f"steps.{step}" for step in steps]

    @property
    def template(self) -> Template:
        return Template(self, frozenset(self._variables))

    def evaluate(self, scope: Scope, budget: EvaluationBudget) -> Json:  # noqa: ARG002 - it makes nothing
        for variable in self._variables:
            step = scope(variable)
            if isinstance(step, dict) and step["status"] == "COMPLETED":
                return step["output"]
        return None


class ReadSite(NamedTuple):
    """Where something is read."""

    path: Path
    excerpt: ExpressionPosition


# What is read, and where first.
ReadSites: TypeAlias = dict[str, ReadSite]


class TemplateCompiler:
    """Compiles templates and conditions, and reports what does not compile, each at its place."""

    def __init__(
        self, engine: CelCompiler, report: ValidationReport, variables: tuple[str, ...] = ()
    ) -> None:
        self._engine = engine
        self._report = report
        # What can be read besides the run and its steps.
        self._variables = variables

    def for_items(self) -> TemplateCompiler:
        """The same for what can read `item` and `index`."""
        return self._with(FOR_EACH_VARIABLES)

    def for_event(self) -> TemplateCompiler:
        """The same for what can read `event`."""
        return self._with(EVENT_VARIABLES)

    def for_compensation(self) -> TemplateCompiler:
        """The same for what can read `failure`."""
        return self._with((FAILURE_VARIABLE,))

    def _with(self, variables: tuple[str, ...]) -> TemplateCompiler:
        known = tuple(dict.fromkeys((*self._variables, *variables)))
        return TemplateCompiler(self._engine, self._report, known)

    def for_block(
        self, steps: Collection[str], report: ValidationReport, *, repeated: bool = False
    ) -> TemplateCompiler:
        """The same for the steps of a block, whose findings go to `report`. `repeated`: it is run round by round."""
        compiler = self._with((ROUND_VARIABLE, *map(previous, steps)) if repeated else ())
        return TemplateCompiler(self._engine.for_block(steps), report, compiler._variables)

    def reporting(self, report: ValidationReport) -> TemplateCompiler:
        """The same, with other findings."""
        return TemplateCompiler(self._engine, report, self._variables)

    def template(self, value: Json, path: Path) -> tuple[Template, ReadSites]:
        sites: ReadSites = {}
        part = self._part(value, path, sites)
        return Template(part, frozenset(sites)), sites

    def condition(self, source: str, path: Path) -> tuple[Condition | None, ReadSites]:
        sites: ReadSites = {}
        if self._report.full:
            return None, sites
        try:
            expression = self._engine.compile_condition(source, self._variables)
        except CompileError as exc:
            self._not_compiled(exc, path)
            return None, sites
        _note(sites, expression, path)
        return Condition(expression), sites

    def _part(self, value: Json, path: Path, sites: ReadSites) -> _TemplateNode:
        if isinstance(value, str):
            return self._string(value, path, sites) if "${" in value else _ConstantValue(value)
        if isinstance(value, dict):
            return self._object(value, path, sites)
        if isinstance(value, list):
            items = [self._part(item, (*path, index), sites) for index, item in enumerate(value)]
            return _ConstantValue(value) if _same(items, value) else _ListTemplate(items)
        return _ConstantValue(value)

    def _object(self, value: dict[str, Json], path: Path, sites: ReadSites) -> _TemplateNode:
        for key in value:
            if "${" in key:
                message = (
                    "expressions are not allowed in keys, only in values; build the object in one expression"
                )
                self._report.error((*path, key), message, on_key=True)
        parts = {key: self._part(item, (*path, key), sites) for key, item in value.items()}
        if _same(parts.values(), value.values()):
            return _ConstantValue(value)
        return _ObjectTemplate(list(parts.items()))

    def _string(self, text: str, path: Path, sites: ReadSites) -> _TemplateNode:
        if self._report.full:
            return _ConstantValue(text)
        try:
            parts = [
                part if isinstance(part, str) else self._engine.compile(part.text, self._variables)
                for part in split_expressions(text)
            ]
        except CompileError as exc:
            self._not_compiled(exc, path)
            return _ConstantValue(text)
        for part in parts:
            if not isinstance(part, str):
                _note(sites, part, path)
        match parts:
            case [str() as literal]:
                return _ConstantValue(literal)
            case [single] if not isinstance(single, str):
                return single
            case _:
                return _TextTemplate(parts, text)

    def _not_compiled(self, exc: CompileError, path: Path) -> None:
        self._report.error(path, exc.message, excerpt=ExpressionPosition(exc.source, exc.line, exc.column))


def _note(sites: ReadSites, expression: Expression, path: Path) -> None:
    for read in expression.reads:
        if read not in sites:
            column = max(0, expression.source.find(read)) + 1
            sites[read] = ReadSite(path, ExpressionPosition(expression.source, 1, column))


def _same(parts: Iterable[_TemplateNode], values: Iterable[Json]) -> bool:
    """
    Whether the parts are the values themselves; with an escaped `$${` they are constant, but not the same.
    """
    return all(
        isinstance(part, _ConstantValue) and part.value is value
        for part, value in zip(parts, values, strict=True)
    )


def _as_text(value: Json) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
