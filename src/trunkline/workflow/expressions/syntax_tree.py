"""
What a compiled expression consists of, read from the form that CEL serialises it to.

The library shows nothing of its syntax tree except as a protobuf message (`cel.expr.CheckedExpr`), and the
names in it are already resolved: this is the only exact answer to what an expression reads. Field numbers
are those of cel/expr/syntax.proto.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias


class ConstantNode(NamedTuple):
    # A string's text; for everything else only that it is there matters.
    text: str


class VariableRead(NamedTuple):
    """A variable and the keys that are followed from it."""

    variable: str
    keys: tuple[str, ...]
    # The last key is only asked for: has(a.b).
    only_tested: bool = False


class MacroVariable(NamedTuple):
    """A variable of a macro."""

    name: str


class MemberAccess(NamedTuple):
    """Something inside another value: a key, an element."""

    whole: Node


class FunctionCall(NamedTuple):
    function: str
    arguments: tuple[Node, ...]


class LiteralNode(NamedTuple):
    """A list or map that the expression spells out."""

    items: tuple[Node, ...]


class Comprehension(NamedTuple):
    """What a macro (`map`, `filter`, `all`, …) stands for."""

    variables: tuple[str, ...]
    over: Node
    start: Node
    step: Node
    result: Node


Node: TypeAlias = (
    ConstantNode | VariableRead | MacroVariable | MemberAccess | FunctionCall | LiteralNode | Comprehension
)

_Field = tuple[int, int | bytes]
_NOTHING = ConstantNode("")
# CEL's names for types are identifiers like those of variables: `type(input.x) == string`.
_TYPES = frozenset({"bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint"})


def read_tree(serialized: bytes) -> Node:
    """The tree of a serialised expression."""
    checked = _only(serialized, 2)
    return _node(_only(checked, 4), frozenset())


def variable_reads(node: Node) -> Iterator[VariableRead]:
    """Everything that an expression reads, in the order of its text."""
    if isinstance(node, VariableRead):
        yield node
    for part in _parts(node):
        yield from variable_reads(part)


# They may have a value though one of their arguments has none.
_LENIENT = frozenset({"_&&_", "_||_", "@not_strictly_false"})
_CONDITIONAL = "_?_:_"
_COMPARISONS = frozenset({"_==_", "_!=_"})
_MEMBERSHIP = frozenset({"@in", "_in_", "in"})


def _parts(node: Node) -> tuple[Node, ...]:
    match node:
        case MemberAccess(whole):
            return (whole,)
        case FunctionCall(_, children) | LiteralNode(children):
            return children
        case Comprehension(_, over, start, step, result):
            return (over, start, step, result)
        case ConstantNode() | MacroVariable() | VariableRead():
            return ()


def strict_reads(node: Node) -> Iterator[VariableRead]:
    """What an evaluation reads in any case: where that has no value, neither has the expression."""
    match node:
        case VariableRead():
            yield node
            return
        case FunctionCall(function, children):
            # The condition alone decides which of the others is read.
            parts = children[:1] if function == _CONDITIONAL else () if function in _LENIENT else children
        case Comprehension(_, over, _, _, _):
            # The list may be empty.
            parts = (over,)
        case _:
            parts = _parts(node)
    for part in parts:
        yield from strict_reads(part)


class TestedPath(NamedTuple):
    """A path for which an expression asks: with `has` or `in`, or by a comparison, perhaps with null."""

    variable: str
    keys: tuple[str, ...]
    only_compared: bool = False


def tested_paths(node: Node) -> Iterator[TestedPath]:
    match node:
        case VariableRead(variable, keys, True):
            yield TestedPath(variable, keys)
        case FunctionCall(function, (ConstantNode(text), VariableRead(variable, keys))) if (
            function in _MEMBERSHIP
        ):
            yield TestedPath(variable, (*keys, text))
        case FunctionCall(function, children) if function in _COMPARISONS:
            read = (each for each in children if isinstance(each, VariableRead))
            yield from (TestedPath(each.variable, each.keys, only_compared=True) for each in read)
        case _:
            pass
    for part in _parts(node):
        yield from tested_paths(part)


def has_comprehension(node: Node) -> bool:
    return isinstance(node, Comprehension) or any(map(has_comprehension, _parts(node)))


def _node(data: bytes, local: frozenset[str]) -> Node:
    # CEL nests at most 32 deep, so this recursion is safe.
    for number, content in _fields(data):
        if isinstance(content, int):
            continue
        match number:
            case 3:
                return _constant(content)
            case 4:
                return _identifier(_text(content, 1), local)
            case 5:
                return _select(content, local)
            case 6:
                return _call(content, local)
            case 7:
                return LiteralNode(tuple(_node(item, local) for item in _all(content, 1)))
            case 8:
                entries = _all(content, 2)
                parts = (part for entry in entries for part in (*_all(entry, 3), *_all(entry, 4)))
                return LiteralNode(tuple(_node(part, local) for part in parts))
            case 9:
                return _comprehension(content, local)
            case _:
                continue
    return _NOTHING


def _constant(data: bytes) -> ConstantNode:
    return ConstantNode(_text(data, 6))


def _identifier(name: str, local: frozenset[str]) -> Node:
    if name in _TYPES and name not in local:
        return ConstantNode(name)
    # Inside a macro `.input` is the workflow's input, even where a macro variable has its name.
    return MacroVariable(name) if name in local else VariableRead(name.removeprefix("."), ())


def _select(data: bytes, local: frozenset[str]) -> Node:
    whole, field = _node(_only(data, 1), local), _text(data, 2)
    tested = any(number == 3 and content for number, content in _fields(data))
    return _keyed(whole, field, tested=tested)


def _call(data: bytes, local: frozenset[str]) -> Node:
    function = _text(data, 2)
    arguments = tuple(_node(argument, local) for argument in (*_all(data, 1), *_all(data, 3)))
    if function != "_[_]" or len(arguments) != 2:
        return FunctionCall(function, arguments)
    whole, key = arguments
    if isinstance(key, ConstantNode) and key.text:
        return _keyed(whole, key.text, tested=False)
    return FunctionCall(function, arguments)


def _keyed(whole: Node, key: str, *, tested: bool) -> Node:
    if isinstance(whole, VariableRead) and not whole.only_tested:
        return VariableRead(whole.variable, (*whole.keys, key), tested)
    return MemberAccess(whole)


def _comprehension(data: bytes, local: frozenset[str]) -> Comprehension:
    variables = tuple(name for number in (1, 3, 8) if (name := _text(data, number)))
    inner = local | set(variables)
    return Comprehension(
        variables=variables,
        over=_node(_only(data, 2), local),
        start=_node(_only(data, 4), local),
        step=_node(_only(data, 6), inner),
        result=_node(_only(data, 7), inner),
    )


def _fields(data: bytes) -> Iterator[_Field]:
    """The fields of a protobuf message: number and content."""
    position, end = 0, len(data)
    while position < end:
        tag, position = _varint(data, position)
        match tag & 7:
            case 0:
                value, position = _varint(data, position)
                yield tag >> 3, value
            case 2:
                size, position = _varint(data, position)
                yield tag >> 3, data[position : position + size]
                position += size
            case wire_type:
                # 1: eight bytes, 5: four bytes; numbers, which are not needed here.
                position += 8 if wire_type == 1 else 4


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7


def _all(data: bytes, number: int) -> list[bytes]:
    return [content for found, content in _fields(data) if found == number and isinstance(content, bytes)]


def _only(data: bytes, number: int) -> bytes:
    return next(iter(_all(data, number)), b"")


def _text(data: bytes, number: int) -> str:
    return _only(data, number).decode()
