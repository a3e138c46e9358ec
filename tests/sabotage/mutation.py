"""
How a safety rule is removed: a small change to the syntax tree of one symbol.

A change names the part by its kind and its number among the parts of this kind ("the second of five conditions"),
never by its text, so that a rename does not touch it. `of` is checked: when a symbol gets another condition, its
rules fail loudly instead of changing a different part.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Generator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

PartKind: TypeAlias = Literal[
    # The test of an `if`, `elif`, `while`, ternary, comprehension or `case`.
    "condition",
    # Of `and` and `or`.
    "operand",
    "return value",
    "assigned value",
    # Given to a call by position.
    "argument",
    # Given to a call, or to a class, by name.
    "keyword",
    "iterable",
    # Of a tuple, list or set, and the values of a dict.
    "element",
    "ternary",
    "call",
    "f-string",
    "raised",
    "pattern",
    # A call that is a statement.
    "call statement",
    "assignment",
    "if statement",
    "del statement",
    "with statement",
    "except clause",
]

# The name that stands for the part that is replaced; `it.args[0]` is one of its own parts.
_PLACEHOLDER = "it"


class MutationError(LookupError):
    """The change no longer matches the symbol."""


@dataclass(frozen=True)
class Slot:
    """A place in the tree: a field of a node, or an item of a field that is a list."""

    parent: ast.AST
    field: str
    index: int | None

    @property
    def node(self) -> ast.AST:
        value = getattr(self.parent, self.field)
        return cast("ast.AST", value if self.index is None else value[self.index])

    def put(self, *nodes: ast.AST) -> None:
        if self.index is not None:
            getattr(self.parent, self.field)[self.index : self.index + 1] = nodes
        elif len(nodes) == 1:
            setattr(self.parent, self.field, nodes[0])
        else:
            raise MutationError(
                f"{type(self.parent).__name__}.{self.field} takes one part, not {len(nodes)}."
            )


@dataclass(frozen=True)
class Change:
    """Replaces the part with an expression or statements; `it` in them stands for the original part."""

    part: PartKind
    nth: int = 1
    of: int = 1
    becomes: str = "None"

    def apply(self, symbol: ast.AST) -> None:
        slot = _find(symbol, self.part, self.nth, self.of)
        if isinstance(slot.node, ast.keyword):
            slot = Slot(slot.node, "value", None)
        slot.put(*_with_placeholders(self._parsed(slot.node), slot.node))

    def _parsed(self, replaced: ast.AST) -> Sequence[ast.AST]:
        if isinstance(replaced, ast.stmt):
            return ast.parse(self.becomes).body
        if isinstance(replaced, ast.pattern):
            match = ast.parse(f"match it:\n case {self.becomes}: pass").body[0]
            return [cast("ast.Match", match).cases[0].pattern]
        return [ast.parse(self.becomes, mode="eval").body]


@dataclass(frozen=True)
class Drop:
    """Removes the part."""

    part: PartKind
    nth: int = 1
    of: int = 1

    def apply(self, symbol: ast.AST) -> None:
        slot = _find(symbol, self.part, self.nth, self.of)
        if isinstance(slot.node, ast.stmt):
            slot.put(ast.Pass())
            return
        slot.put()
        if isinstance(slot.parent, ast.BoolOp) and len(slot.parent.values) == 1:
            only = slot.parent.values[0]
            next(each for each in _slots(symbol) if each.node is slot.parent).put(only)


@dataclass(frozen=True)
class ReplaceText:
    """Replaces a text that occurs once in the string constants of the symbol: SQL, a status, a header."""

    old: str
    new: str

    def apply(self, symbol: ast.AST) -> None:
        found = [
            slot.node
            for slot in _slots(symbol)
            if isinstance(slot.node, ast.Constant) and self.old in _text(slot.node)
        ]
        count = sum(_text(node).count(self.old) for node in found)
        if count != 1:
            raise MutationError(f"{self.old!r} occurs {count} times, not once.")
        text = _text(found[0]).replace(self.old, self.new)
        found[0].value = text.encode() if isinstance(found[0].value, bytes) else text


Mutation: TypeAlias = Change | Drop | ReplaceText


def _text(constant: ast.Constant) -> str:
    match constant.value:
        case str(text):
            return text
        case bytes(text):
            return text.decode("latin-1")
        case _:
            return ""


def _find(symbol: ast.AST, part: PartKind, nth: int, of: int) -> Slot:
    found = parts(symbol, part)
    if len(found) != of:
        raise MutationError(f"it has {len(found)} parts of the kind {part!r}, not {of}.")
    return found[nth - 1]


def parts(symbol: ast.AST, part: PartKind) -> list[Slot]:
    """The parts of one kind, in source order."""
    is_one = _KINDS[part]
    return [slot for slot in _slots(symbol) if is_one(slot.parent, slot.field, slot.node)]


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _slots(symbol: ast.AST, *, is_root: bool = True) -> Generator[Slot]:
    """
    All places below a node, in source order.

    The functions and classes inside a class or a module are symbols of their own; those inside a function belong to it.
    """
    for field, value in ast.iter_fields(symbol):
        is_list = isinstance(value, list)
        for index, child in enumerate(cast("list[object]", value) if is_list else [value]):
            if not isinstance(child, ast.AST):
                continue
            if is_root and isinstance(symbol, ast.Module | ast.ClassDef) and isinstance(child, _DEFINITIONS):
                continue
            yield Slot(symbol, field, index if is_list else None)
            yield from _slots(child, is_root=False)


_IsOne: TypeAlias = Callable[[ast.AST, str, ast.AST], bool]


def _in(parents: type[ast.AST] | tuple[type[ast.AST], ...], *fields: str) -> _IsOne:
    return lambda parent, field, _: isinstance(parent, parents) and field in fields


def _is(nodes: type[ast.AST] | tuple[type[ast.AST], ...]) -> _IsOne:
    return lambda _parent, _field, node: isinstance(node, nodes)


def _is_condition(parent: ast.AST, field: str, _: ast.AST) -> bool:
    match parent:
        case ast.If() | ast.While() | ast.IfExp():
            return field == "test"
        case ast.comprehension():
            return field == "ifs"
        case ast.match_case():
            return field == "guard"
        case _:
            return False


def _is_element(parent: ast.AST, field: str, _: ast.AST) -> bool:
    match parent:
        case ast.Tuple() | ast.List() | ast.Set():
            return field == "elts"
        case ast.Dict():
            return field == "values"
        case _:
            return False


def _is_call_statement(_parent: ast.AST, _field: str, node: ast.AST) -> bool:
    # A docstring is an expression statement, too.
    return isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant)


_ASSIGNMENTS = (ast.Assign, ast.AnnAssign, ast.AugAssign)

_KINDS: dict[PartKind, _IsOne] = {
    "condition": _is_condition,
    "operand": _in(ast.BoolOp, "values"),
    "return value": _in(ast.Return, "value"),
    "assigned value": _in((*_ASSIGNMENTS, ast.NamedExpr), "value"),
    "argument": _in(ast.Call, "args"),
    "keyword": _is(ast.keyword),
    "iterable": _in((ast.For, ast.AsyncFor, ast.comprehension), "iter"),
    "element": _is_element,
    "ternary": _is(ast.IfExp),
    "call": _is(ast.Call),
    "f-string": _is(ast.JoinedStr),
    "raised": _in(ast.Raise, "exc"),
    "pattern": _in((ast.match_case, ast.MatchOr), "pattern", "patterns"),
    "call statement": _is_call_statement,
    "assignment": _is(_ASSIGNMENTS),
    "if statement": _is(ast.If),
    "del statement": _is(ast.Delete),
    "with statement": _is((ast.With, ast.AsyncWith)),
    "except clause": _is(ast.ExceptHandler),
}


def _with_placeholders(written: Sequence[ast.AST], replaced: ast.AST) -> list[ast.AST]:
    """The written nodes, with `it`, `it.body` or `it.args[0]` replaced by the parts of the original node."""
    return [_Placeholders(replaced).visit(node) for node in written]


class _Placeholders(ast.NodeTransformer):
    def __init__(self, replaced: ast.AST) -> None:
        self._replaced = replaced

    def visit(self, node: ast.AST) -> ast.AST:
        value: object = self._value(node.value if isinstance(node, ast.Expr) else node)
        if isinstance(value, ast.AST):
            copied = deepcopy(value)
            return ast.Expr(copied) if isinstance(node, ast.Expr) and isinstance(copied, ast.expr) else copied
        return self.generic_visit(node)

    def _value(self, node: ast.AST) -> object:
        match node:
            case ast.Name(id) if id == _PLACEHOLDER:
                return self._replaced
            case ast.Attribute(inner, name):
                return getattr(self._value(inner), name, None)
            case ast.Subscript(inner, ast.Constant(int(index))):
                found = self._value(inner)
                return cast("list[object]", found)[index] if isinstance(found, list) else None
            case _:
                return None
