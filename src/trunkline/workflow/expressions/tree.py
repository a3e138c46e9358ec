"""
What a compiled expression consists of, read from the form that CEL serialises it to.

The library shows nothing of its syntax tree except as a protobuf message (`cel.expr.CheckedExpr`), and the
names in it are already resolved: this is the only exact answer to what an expression reads. Field numbers
are those of cel/expr/syntax.proto.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias


class Constant(NamedTuple):
    # A string's text; for everything else only that it is there matters.
    text: str


class Reading(NamedTuple):
    """A variable and the keys that are followed from it."""

    root: str
    keys: tuple[str, ...]
    # The last key is only asked for: has(a.b).
    tested: bool = False


class Local(NamedTuple):
    """A variable of a macro."""

    name: str


class Part(NamedTuple):
    """Something inside another value: a key, an element."""

    whole: Node


class Call(NamedTuple):
    function: str
    arguments: tuple[Node, ...]


class Literal(NamedTuple):
    """A list or map that the expression spells out."""

    items: tuple[Node, ...]


class Loop(NamedTuple):
    """What a macro (`map`, `filter`, `all`, …) stands for."""

    variables: tuple[str, ...]
    over: Node
    start: Node
    step: Node
    result: Node


Node: TypeAlias = Constant | Reading | Local | Part | Call | Literal | Loop

_Field = tuple[int, int | bytes]
_NOTHING = Constant("")
# CEL's names for types are identifiers like those of variables: `type(input.x) == string`.
_TYPES = frozenset({"bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint"})


def read_tree(serialized: bytes) -> Node:
    """The tree of a serialised expression."""
    checked = _only(serialized, 2)
    return _node(_only(checked, 4), frozenset())


def readings(node: Node) -> Iterator[Reading]:
    """Everything that an expression reads, in the order of its text."""
    match node:
        case Reading():
            yield node
        case Part(whole):
            yield from readings(whole)
        case Call(_, children) | Literal(children):
            for child in children:
                yield from readings(child)
        case Loop(_, over, start, step, result):
            for child in (over, start, step, result):
                yield from readings(child)
        case Constant() | Local():
            return


def has_loop(node: Node) -> bool:
    match node:
        case Loop():
            return True
        case Part(whole):
            return has_loop(whole)
        case Call(_, children) | Literal(children):
            return any(has_loop(child) for child in children)
        case Constant() | Local() | Reading():
            return False


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
                return Literal(tuple(_node(item, local) for item in _all(content, 1)))
            case 8:
                entries = _all(content, 2)
                parts = (part for entry in entries for part in (*_all(entry, 3), *_all(entry, 4)))
                return Literal(tuple(_node(part, local) for part in parts))
            case 9:
                return _loop(content, local)
            case _:
                continue
    return _NOTHING


def _constant(data: bytes) -> Constant:
    return Constant(_text(data, 6))


def _identifier(name: str, local: frozenset[str]) -> Node:
    if name in _TYPES and name not in local:
        return Constant(name)
    # Inside a macro `.input` is the workflow's input, even where a macro variable has its name.
    return Local(name) if name in local else Reading(name.removeprefix("."), ())


def _select(data: bytes, local: frozenset[str]) -> Node:
    whole, field = _node(_only(data, 1), local), _text(data, 2)
    tested = any(number == 3 and content for number, content in _fields(data))
    return _keyed(whole, field, tested=tested)


def _call(data: bytes, local: frozenset[str]) -> Node:
    function = _text(data, 2)
    arguments = tuple(_node(argument, local) for argument in (*_all(data, 1), *_all(data, 3)))
    if function != "_[_]" or len(arguments) != 2:
        return Call(function, arguments)
    whole, key = arguments
    if isinstance(key, Constant) and key.text:
        return _keyed(whole, key.text, tested=False)
    return Call(function, arguments)


def _keyed(whole: Node, key: str, *, tested: bool) -> Node:
    if isinstance(whole, Reading) and not whole.tested:
        return Reading(whole.root, (*whole.keys, key), tested)
    return Part(whole)


def _loop(data: bytes, local: frozenset[str]) -> Loop:
    variables = tuple(name for number in (1, 3, 8) if (name := _text(data, number)))
    inner = local | set(variables)
    return Loop(
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
                # 1: eight bytes, 5: four bytes; numbers, which nobody here reads.
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
