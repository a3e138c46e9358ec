"""
What an expression may cost at most, worked out from its tree and the sizes of what it reads, before it is
evaluated.

CEL stops endless iteration but not growth: `map` copies its list for every element, and macros in a chain
double what they get. Nothing can be stopped once it runs, so the bound has to be known before.

Sizes inside a macro are linear in its variables: over all rounds the elements together weigh what their
list weighs, so a list of one long and many short texts is not taken for a list of long ones.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from trunkline.jsontypes import Json
from trunkline.workflow.expressions.syntax_tree import (
    Comprehension,
    ConstantNode,
    FunctionCall,
    LiteralNode,
    MacroVariable,
    MemberAccess,
    Node,
    VariableRead,
)

# Bytes that an evaluation may take, results included.
BUDGET = 64 * 1024 * 1024
# `map` over more takes the square of it in time and memory.
MAX_ITERATIONS = 1_000
# What reading deeper data would need of the stack.
MAX_DEPTH = 200

# Bytes for a value in CEL and in Python, as measured; text comes on top.
_VALUE = 100
# A growing list is copied in every round; bytes per element and copy.
_COPY = 21
# Looking through text is that much cheaper than making it.
_SCAN = 1 / 32

# Functions whose result is one small value. All others are taken to return what they are given.
_SMALL = frozenset({
    "!_", "-_", "_-_", "_*_", "_/_", "_%_", "_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "_&&_",
    "_||_", "@in", "@not_strictly_false", "size", "contains", "startsWith", "endsWith", "matches",
    "int", "uint", "double", "bool", "timestamp", "duration", "type", "getDate", "getDayOfMonth",
    "getDayOfWeek", "getDayOfYear", "getFullYear", "getHours", "getMilliseconds", "getMinutes",
    "getMonth", "getSeconds",
})  # fmt: skip

# Bytes, per macro variable; the constant part is under "".
_LinearForm = Mapping[str, float]


class CostLimitExceeded(Exception):
    """The expression would take too much for this data."""


class EvaluationBudget:
    """What is left for all expressions of a template together: each of them alone may stay below the limit."""

    def __init__(self, left: float = BUDGET) -> None:
        self._left = left

    def spend(self, size: float) -> None:
        """Raises `CostLimitExceeded` if there is not so much left."""
        self._left -= size
        if self._left < 0:
            raise CostLimitExceeded(
                f"together with the other expressions of the same value, it could create more than {BUDGET >> 20} MiB; "
                "move this computation to an agent"
            )


class ValueSize(NamedTuple):
    """How large a JSON value is: its bytes, its own items, and the most items of anything inside it."""

    size: int
    length: int
    inner: int


class _SizeBound(NamedTuple):
    size: _LinearForm
    length: float
    inner: float


def measure(value: Json, depth: int = MAX_DEPTH) -> ValueSize:
    """The weight of a value; raises `CostLimitExceeded` for one that CEL cannot take."""
    if isinstance(value, str):
        return ValueSize(_VALUE + _text_size(value), 0, 0)
    if isinstance(value, dict):
        return _measure_items(value.values(), _text_size("".join(value)), depth)
    if isinstance(value, list):
        return _measure_items(value, 0, depth)
    return ValueSize(_VALUE, 0, 0)


def _measure_items(items: Collection[Json], keys_size: int, depth: int) -> ValueSize:
    if depth == 0:
        raise CostLimitExceeded(f"it reads data that is nested deeper than {MAX_DEPTH} levels")
    size, inner = _VALUE * (1 + len(items)) + keys_size, 0
    for item in items:
        if isinstance(item, str):
            size += _text_size(item)
        elif isinstance(item, (dict, list)):
            weight = measure(item, depth - 1)
            size += weight.size - _VALUE
            inner = max(inner, weight.length, weight.inner)
    if size > BUDGET:
        raise CostLimitExceeded(f"it reads more than {BUDGET >> 20} MiB")
    return ValueSize(size, len(items), inner)


def _text_size(text: str) -> int:
    # The library passes text as C strings do: it would end at the first NUL, without a word.
    if "\0" in text:
        raise CostLimitExceeded(
            "it reads text with a NUL character, which CEL does not support; read it with a plain path"
        )
    return len(text)


class CostEstimate:
    """Walks a tree and adds up what evaluating it can make; `weights` has every reading's."""

    def __init__(self, weights: Mapping[tuple[str, tuple[str, ...]], ValueSize]) -> None:
        self._weights = weights

    def check(self, node: Node) -> float:
        """What evaluating the tree can take; raises `CostLimitExceeded` if that is beyond the budget."""
        total = self.total(node)
        if total > BUDGET:
            raise CostLimitExceeded(
                f"it could create more than {BUDGET >> 20} MiB from the data it reads; move this "
                "computation to an agent"
            )
        return total

    def total(self, node: Node) -> float:
        """The most bytes that evaluating the tree can take."""
        bound, made = self._bound(node, {})
        return _constant(bound.size) + _constant(made)

    def _bound(self, node: Node, scope: Mapping[str, _SizeBound]) -> tuple[_SizeBound, _LinearForm]:
        """The bound of a node's value, and of everything made on the way to it."""
        match node:
            case ConstantNode(text):
                return _small(len(text)), {}
            case VariableRead(root, keys, _):
                weight = self._weights.get((root, keys), ValueSize(_VALUE, 0, 0))
                return _SizeBound({"": weight.size}, weight.length, weight.inner), {}
            case MacroVariable(name):
                return scope[name], {}
            case MemberAccess(whole):
                bound, made = self._bound(whole, scope)
                return bound._replace(length=bound.inner), made
            case FunctionCall(function, arguments):
                return self._call(function, [self._bound(argument, scope) for argument in arguments])
            case LiteralNode(items):
                return self._literal([self._bound(item, scope) for item in items])
            case Comprehension():
                return self._comprehension(node, scope)

    def _call(
        self, function: str, arguments: list[tuple[_SizeBound, _LinearForm]]
    ) -> tuple[_SizeBound, _LinearForm]:
        bounds = [bound for bound, _ in arguments]
        made = _sum([form for _, form in arguments])
        read = _sum([bound.size for bound in bounds])
        if function in _SMALL:
            return _small(0), _sum([made, _scaled(read, _SCAN)])
        inner = max((bound.inner for bound in bounds), default=0)
        if function == "_[_]":
            return _SizeBound(bounds[0].size, inner, inner), made
        if function == "_?_:_":
            length = max(bound.length for bound in bounds)
            return _SizeBound(_largest([bound.size for bound in bounds]), length, inner), made
        length = sum(bound.length for bound in bounds)
        return _SizeBound(read, length, inner), _sum([made, read])

    def _literal(self, items: list[tuple[_SizeBound, _LinearForm]]) -> tuple[_SizeBound, _LinearForm]:
        size = _sum([{"": _VALUE}, *(bound.size for bound, _ in items)])
        inner = max((max(bound.length, bound.inner) for bound, _ in items), default=0)
        return _SizeBound(size, len(items), inner), _sum([form for _, form in items])

    def _comprehension(
        self, loop: Comprehension, scope: Mapping[str, _SizeBound]
    ) -> tuple[_SizeBound, _LinearForm]:
        over, made_before = self._bound(loop.over, scope)
        if over.length > MAX_ITERATIONS:
            items = f"{over.length:,.0f} items"
            raise CostLimitExceeded(
                f"its macro could iterate over {items}, but the limit is {MAX_ITERATIONS:,}; move "
                "this computation to an agent"
            )
        element, *others = loop.variables
        inside = dict(scope)
        inside[element] = _SizeBound({element: 1}, over.inner, over.inner)
        for name in others:
            inside[name] = _SizeBound({name: 1}, 0, 0)
        step, made_inside = self._bound(loop.step, inside)
        grows = any(step.size.get(name, 0) for name in others)
        rounds = over.length
        size = _over_rounds(step.size, element, others, over.size, rounds)
        made = _over_rounds(made_inside, element, others, over.size, rounds)
        copies = rounds * rounds * _COPY if grows else 0
        start = {"": float(_VALUE)}
        bound = _SizeBound(_sum([start, size]), rounds * step.length, step.inner)
        result, made_after = self._bound(loop.result, {**inside, **dict.fromkeys(others, bound)})
        return result, _sum([made_before, made, made_after, {"": copies + rounds * _VALUE}])


def _over_rounds(
    form: _LinearForm, element: str, others: list[str], over: _LinearForm, rounds: float
) -> _LinearForm:
    """A form summed over all rounds: the elements weigh together what they are elements of."""
    per_round = {name: amount for name, amount in form.items() if name != element and name not in others}
    return _sum([_scaled(over, form.get(element, 0)), _scaled(per_round, rounds)])


def _small(extra: int) -> _SizeBound:
    return _SizeBound({"": _VALUE + extra}, 0, 0)


def _constant(form: _LinearForm) -> float:
    return sum(form.values())


def _scaled(form: _LinearForm, factor: float) -> _LinearForm:
    return {name: amount * factor for name, amount in form.items()} if factor else {}


def _sum(forms: list[_LinearForm]) -> _LinearForm:
    total: dict[str, float] = {}
    for form in forms:
        for name, amount in form.items():
            total[name] = total.get(name, 0) + amount
    return total


def _largest(forms: list[_LinearForm]) -> _LinearForm:
    largest: dict[str, float] = {}
    for form in forms:
        for name, amount in form.items():
            largest[name] = max(largest.get(name, 0), amount)
    return largest
