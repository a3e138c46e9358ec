"""
Expressions: CEL, compiled once, evaluated without reach beyond the data that is bound.

Every step is a variable with a dotted name (`steps.research`), so a step that does not exist is a compile
error. An evaluation error is a value to the library, and truthy to Python: it is looked at before anything
else.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TypeAlias

from cel_expr_python import cel

from trunkline.jsontypes import Json
from trunkline.workflow.expressions.cel_values import JsonConversionError, select_wanted, to_json, wanted_keys
from trunkline.workflow.expressions.cost_limits import (
    BUDGET,
    CostEstimate,
    CostLimitExceeded,
    EvaluationBudget,
    ValueSize,
    measure,
)
from trunkline.workflow.expressions.error_messages import compile_error, evaluation_message, unknown_step
from trunkline.workflow.expressions.errors import CompileError, ExpressionError
from trunkline.workflow.expressions.interpolation import check_length
from trunkline.workflow.expressions.plain_paths import (
    FAILURE_VARIABLE,
    FOR_EACH_VARIABLES,
    PREVIOUS,
    ROUND_VARIABLE,
    PlainPath,
    Scope,
    plain_path,
)
from trunkline.workflow.expressions.syntax_tree import Node, has_comprehension, read_tree, variable_reads

# Without a macro a value can be made once for every time it is read, and at every level above that.
_LEVELS = 32

_STEP_READ = re.compile(r"\bsteps\s*\.\s*([A-Za-z_][A-Za-z0-9_]*)")

# All expressions of a workflow together, in characters, so that saving one takes seconds at most.
MAX_TOTAL = 2_000_000
# What compiling even the shortest expression costs, in characters.
_EACH = 40

# The errors that the library raises for data and results that it does not support. Anything else is a bug.
_REFUSALS = (RuntimeError, ValueError, TypeError, OverflowError, MemoryError)


class CelExpression:
    """An expression that needs CEL."""

    __slots__ = ("_compiled", "_loops", "_wanted", "reads", "reads_of_variables", "source", "tree")

    def __init__(self, source: str, compiled: cel.Expression, tree: Node) -> None:
        self.source = source
        self._compiled = compiled
        self.tree = tree
        self._loops = has_comprehension(tree)
        self.reads_of_variables = tuple(variable_reads(tree))
        self._wanted = tuple(wanted_keys(self.reads_of_variables).items())
        self.reads = frozenset(root for root, _ in self._wanted)

    def evaluate(self, scope: Scope, budget: EvaluationBudget | None = None) -> Json:
        taken: list[Json] = []
        bound = {root: select_wanted(scope(root), wanted, taken) for root, wanted in self._wanted}
        try:
            cost = self._cost(bound, taken)
            if budget is not None:
                budget.spend(cost)
            value = self._compiled.eval(data=bound)
            result = value.plain_value()
            # An error comes as text; asking everything else for its type would only cost time.
            if isinstance(result, str) and value.type() == cel.Type.ERROR:
                raise ExpressionError(evaluation_message(result, scope, self.reads_of_variables), self.source)
            return to_json(result)
        except (CostLimitExceeded, JsonConversionError) as exc:
            raise ExpressionError(str(exc), self.source) from exc
        except _REFUSALS as exc:
            raise ExpressionError(
                evaluation_message(str(exc), scope, self.reads_of_variables), self.source
            ) from exc

    def _cost(self, bound: dict[str, Json], taken: list[Json]) -> float:
        """The most bytes that the evaluation can take; raises `CostLimitExceeded`."""
        total = 0
        for value in taken:
            total += measure(value).size
        if self._loops or total * len(self.reads_of_variables) * _LEVELS > BUDGET:
            weights = {(root, keys): _size_of(bound[root], keys) for root, keys, _ in self.reads_of_variables}
            return CostEstimate(weights).check(self.tree)
        return total


Expression: TypeAlias = PlainPath | CelExpression


class CelCompiler:
    """Compiles the expressions of one document: a workflow, or something else that has variables of its own."""

    def __init__(self, steps: Collection[str], variables: Collection[str] | None = None) -> None:
        """`variables`: what can be read in place of a workflow's `input`, `run` and steps."""
        self._steps = steps
        self._variables = variables
        # Of a block: the steps outside, which its own hide.
        self._outer_steps: frozenset[str] = frozenset()
        # One count for all blocks of a workflow.
        self._total = [0]
        # One for all expressions that can read the same: making it costs far more than a compilation.
        self._environments: dict[tuple[str, ...], cel.Env] = {}
        # Made when the first block needs it.
        self._block_outer: frozenset[str] | None = None

    def for_block(self, steps: Collection[str]) -> CelCompiler:
        """The same for a block with these steps, which can read the steps outside it, too."""
        if self._block_outer is None:
            self._block_outer = self._outer_steps.union(self._steps)
        block = CelCompiler(steps)
        block._outer_steps = self._block_outer
        block._total = self._total
        return block

    def compile(self, source: str, more: tuple[str, ...] = ()) -> Expression:
        """
        The expression of a source; raises `CompileError`.

        `more`: what it can read besides the run and its steps.
        """
        check_length(source)
        path = plain_path(source)
        if (
            path is None
            or self._variables is not None
            or any(_is_contextual(root) and root not in more for root in path.reads)
        ):
            return self._compile(source, more)[1]
        (root,) = path.reads
        step = root.removeprefix("steps.")
        if step != root and step not in self._steps and step not in self._outer_steps:
            column = len(source) - len(source.lstrip()) + 1
            raise unknown_step(step, self._readable(), source, column=column)
        return path

    def compile_condition(self, source: str, more: tuple[str, ...] = ()) -> Expression:
        """The expression of a source that has to decide something; raises `CompileError`."""
        check_length(source)
        if self._variables is None and plain_path(source) is not None:
            return self.compile(source, more)
        compiled, expression = self._compile(source, more)
        kind = compiled.return_type()
        if kind not in (cel.Type.BOOL, cel.Type.DYN):
            raise CompileError(
                f"a condition must be true or false, but this is {kind.name().lower()}; compare it "
                "with a value",
                source,
            )
        return expression

    def _compile(self, source: str, more: tuple[str, ...]) -> tuple[cel.Expression, CelExpression]:
        self._total[0] += len(source) + _EACH
        if self._total[0] > MAX_TOTAL:
            raise CompileError(
                "the workflow has too many expressions; use plain paths, which are not counted",
                source,
            )
        try:
            compiled = self._environment((*more, *self._outer_reads(source))).compile(source)
        except RuntimeError as exc:
            raise compile_error(str(exc), source, self._readable(), self._variables) from exc
        return compiled, CelExpression(source.strip(), compiled, read_tree(compiled.serialize()))

    def _readable(self) -> Collection[str]:
        return [*self._steps, *self._outer_steps] if self._outer_steps else self._steps

    def _outer_reads(self, source: str) -> tuple[str, ...]:
        """
        The steps outside the block that the expression may read.

        Declaring all of them in every block would cost the square of their number.
        """
        if not self._outer_steps:
            return ()
        named = set(_STEP_READ.findall(source))
        return tuple(f"steps.{step}" for step in sorted(named & self._outer_steps) if step not in self._steps)

    def _environment(self, more: tuple[str, ...]) -> cel.Env:
        found = self._environments.get(more)
        if found is None:
            steps = (step for step in self._steps if step.isascii() and step.isidentifier())
            names = self._variables or ["input", "run", *more, *(f"steps.{step}" for step in steps)]
            found = self._environments[more] = cel.NewEnv(variables=dict.fromkeys(names, cel.Type.DYN))
        return found


def _is_contextual(root: str) -> bool:
    """Whether it can be read in some steps only."""
    return root in {ROUND_VARIABLE, FAILURE_VARIABLE, *FOR_EACH_VARIABLES} or root.startswith(PREVIOUS)


def _size_of(value: Json, keys: tuple[str, ...]) -> ValueSize:
    for key in keys:
        if not isinstance(value, dict) or key not in value:
            return measure(None)
        value = value[key]
    return measure(value)
