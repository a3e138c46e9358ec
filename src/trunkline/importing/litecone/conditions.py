"""
litecone's conditions, as CEL.

    ${step-1.output.score} > 0.8 and not ${workflow.input.draft}
    ${step-1.output.status} in ['ok', 'done'] or ${step-1.output.message} contains 'error'
    len(${step-1.output.errors}) > 0

There a value that is missing is null, and a condition that cannot be worked out (null > 0.8) is false as a whole.
CEL fails instead. So every condition is written as when it is true, `holds`, and some as when it is false, `fails`:
for what cannot be worked out neither is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from trunkline.importing import cel
from trunkline.importing.report import NotTranslatable
from trunkline.jsontypes import Json

# What litecone takes for nothing, like the language that it is written in.
_FALSY_VALUES = "[false, null, 0, '', [], {}]"
# Each level of brackets is a level of the parser's own calls.
_MAX_LEVELS = 30
_MAX_CHARACTERS = 4_000

_TOKEN = re.compile(
    r"\s*(?:(?P<reading>\$\{[^}]*\})|(?P<text>'[^'\\]*'|\"[^\"\\]*\")|(?P<number>-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<word>[A-Za-z_]\w*)|(?P<sign>==|!=|>=|<=|[<>()\[\],]))"
)
_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
_WORDS: dict[str, Json] = {
    "true": True, "True": True, "false": False, "False": False, "null": None, "None": None,
}  # fmt: skip
_FIX = "Write the step's `when` by hand, in CEL."


class Operand(NamedTuple):
    """Something that is compared."""

    source: str
    # What has to hold for the data to be there at all.
    present: tuple[str, ...] = ()
    # Of a literal, in a list of one.
    known: tuple[Json, ...] = ()


@dataclass(frozen=True, slots=True)
class CelCondition:
    """A condition; `total`: one of both always holds."""

    holds: str
    fails: str
    total: bool


Resolve = Callable[[str], Operand]
_TRUE = CelCondition("true", "false", total=True)
_FALSE = CelCondition("false", "true", total=True)


def translate(expression: str, resolve: Resolve) -> str:
    """The condition in CEL; raises `NotTranslatable`."""
    if len(expression) > _MAX_CHARACTERS:
        raise NotTranslatable(f"the condition has more than {_MAX_CHARACTERS:,} characters", _FIX)
    parser = _ConditionParser(_tokens(expression), resolve)
    test = parser.either(0)
    parser.end()
    return _bounded(test).holds


def _tokens(expression: str) -> list[tuple[str, str]]:
    tokens: list[tuple[str, str]] = []
    rest = expression.strip()
    at = 0
    while at < len(rest):
        match = _TOKEN.match(rest, at)
        if match is None or match.lastgroup is None:
            raise NotTranslatable(
                f"the condition has something unknown at {rest[at : at + 20].strip()!r}", _FIX
            )
        tokens.append((match.lastgroup, match[match.lastgroup]))
        at = match.end()
    return tokens


class _ConditionParser:
    def __init__(self, tokens: list[tuple[str, str]], resolve: Resolve) -> None:
        self._tokens = tokens
        self._at = 0
        self._resolve = resolve

    def either(self, level: int) -> CelCondition:
        test = self._both(level)
        while self._take("or"):
            test = _bounded(_or(test, self._both(level)))
        return test

    def end(self) -> None:
        if self._at < len(self._tokens):
            raise self._unexpected()

    def _both(self, level: int) -> CelCondition:
        test = self._negated(level)
        while self._take("and"):
            test = _bounded(_and(test, self._negated(level)))
        return test

    def _negated(self, level: int) -> CelCondition:
        negative = False
        while self._take("not"):
            negative = not negative
        test = self._compared(level)
        return CelCondition(test.fails, test.holds, test.total) if negative else test

    def _compared(self, level: int) -> CelCondition:
        if level > _MAX_LEVELS:
            raise NotTranslatable(f"the condition is nested more than {_MAX_LEVELS} levels deep", _FIX)
        if self._take("("):
            test = self.either(level + 1)
            self._expect(")")
            if self._peek() in _COMPARISONS:
                raise NotTranslatable("the condition compares a comparison", _FIX)
            return test
        left = self._value(level)
        test = self._after(left, level)
        if test is None:
            return _truth(left)
        if self._peek() in _COMPARISONS:
            raise NotTranslatable("the condition compares more than two values in a chain", _FIX)
        return test

    def _after(self, left: Operand, level: int) -> CelCondition | None:
        sign = self._peek()
        if sign in _COMPARISONS:
            self._at += 1
            return _comparison(left, sign, self._value(level))
        if self._take("contains"):
            return _membership(self._value(level), left)
        if self._take("in"):
            return _membership(left, self._value(level))
        if sign == "not":
            self._at += 1
            self._expect("in")
            test = _membership(left, self._value(level))
            return CelCondition(test.fails, test.holds, test.total)
        return None

    def _value(self, level: int) -> Operand:
        kind, token = self._next()
        match kind, token:
            case "reading", _:
                return self._resolve(token[2:-1].strip())
            case "text", _:
                return _known(token[1:-1])
            case "number", _:
                return _known(_number(token))
            case "word", "len":
                self._expect("(")
                value = self._value(level)
                self._expect(")")
                return Operand(f"dyn(size({value.source}))", value.present)
            case "word", _ if token in _WORDS:
                return _known(_WORDS[token])
            case "sign", "[":
                return self._list()
            case _:
                self._at -= 1
                raise self._unexpected()

    def _list(self) -> Operand:
        items: list[Json] = []
        while not self._take("]"):
            value = self._value(0) if self._peek() != "[" else None
            if value is None or not value.known:
                raise NotTranslatable(
                    "a list in the condition contains something other than plain values", _FIX
                )
            items.extend(value.known)
            if self._peek() != "]":
                self._expect(",")
        return _known(items)

    def _peek(self) -> str:
        # A quoted string is never a keyword.
        kind, token = self._tokens[self._at] if self._at < len(self._tokens) else ("sign", "")
        return token if kind in {"word", "sign"} else ""

    def _next(self) -> tuple[str, str]:
        if self._at == len(self._tokens):
            raise NotTranslatable("the condition is incomplete", _FIX)
        self._at += 1
        return self._tokens[self._at - 1]

    def _take(self, token: str) -> bool:
        found = self._peek() == token
        self._at += found
        return found

    def _expect(self, token: str) -> None:
        if not self._take(token):
            raise self._unexpected()

    def _unexpected(self) -> NotTranslatable:
        if self._at >= len(self._tokens):
            return NotTranslatable("the condition is incomplete", _FIX)
        return NotTranslatable(
            f"the condition has {self._tokens[self._at][1]!r} where it is not understood", _FIX
        )


def _known(value: Json) -> Operand:
    return Operand(cel.literal(value), known=(value,))


def _number(token: str) -> int | float:
    try:
        return int(token)
    except ValueError:
        return float(token)


def _or(one: CelCondition, other: CelCondition) -> CelCondition:
    # What comes first and cannot be worked out makes the whole false, even if the other holds.
    second = other.holds if one.total else _joined("&&", one.fails, other.holds)
    return CelCondition(
        _joined("||", one.holds, second), _joined("&&", one.fails, other.fails), one.total and other.total
    )


def _and(one: CelCondition, other: CelCondition) -> CelCondition:
    second = other.fails if one.total else _joined("&&", one.holds, other.fails)
    return CelCondition(
        _joined("&&", one.holds, other.holds), _joined("||", one.fails, second), one.total and other.total
    )


def _joined(sign: str, one: str, other: str) -> str:
    return f" {sign} ".join(_in_parentheses(part, sign) for part in (one, other))


def _in_parentheses(part: str, sign: str) -> str:
    other = "||" if sign == "&&" else "&&"
    return f"({part})" if f" {other} " in part or " ? " in part else part


def _truth(value: Operand) -> CelCondition:
    if value.known:
        return _TRUE if value.known[0] else _FALSE
    return _total(value, f"!({value.source} in {_FALSY_VALUES})", missing=False)


def _comparison(left: Operand, sign: str, right: Operand) -> CelCondition:
    if left.known and right.known:
        return _decided(left.known[0], sign, right.known[0])
    both = Operand("", (*left.present, *right.present))
    comparison = f"{left.source} {sign} {right.source}"
    if sign not in {"==", "!="}:
        return _partial(both, comparison)
    if left.known or right.known:
        comparison = _as_boolean_or_number(left, sign, right) or comparison
        # Null equals what is missing.
        is_null = (left.known or right.known)[0] is None
        return _total(both, comparison, missing=is_null if sign == "==" else not is_null)
    return _partial(both, comparison)


def _as_boolean_or_number(left: Operand, sign: str, right: Operand) -> str | None:
    """The comparison with 0 or 1, which litecone's language takes for false and true as well; else None."""
    other, known = (right, left.known[0]) if left.known else (left, right.known[0])
    if isinstance(known, bool) or not isinstance(known, int | float) or known not in {0, 1}:
        return None
    inside = f"{other.source} in [{cel.literal(known)}, {cel.literal(bool(known))}]"
    return inside if sign == "==" else _not(inside)


def _decided(left: Json, sign: str, right: Json) -> CelCondition:
    if sign in {"==", "!="}:
        return _TRUE if (left == right) == (sign == "==") else _FALSE
    order = _order(left, right)
    if order is None:
        return CelCondition("false", "false", total=False)
    decided = {"<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}
    return _TRUE if decided[sign] else _FALSE


def _order(left: Json, right: Json) -> int | None:
    """Less than 0 if `left` is the smaller one; None for what has no order."""
    if isinstance(left, int | float) and isinstance(right, int | float):
        return (left > right) - (left < right)
    if isinstance(left, str) and isinstance(right, str):
        return (left > right) - (left < right)
    return None


def _membership(item: Operand, whole: Operand) -> CelCondition:
    both = Operand("", (*item.present, *whole.present))
    if whole.known:
        if not isinstance(whole.known[0], list):
            raise NotTranslatable("the condition searches in a literal string or number", _FIX)
        return _total(both, f"{item.source} in {whole.source}", missing=None in whole.known[0])
    inside = f"{item.source} in {whole.source}"
    if item.known and isinstance(item.known[0], str):
        # Of a text a part is meant, of a list an item.
        inside = f"(type({whole.source}) == string ? {whole.source}.contains({item.source}) : {inside})"
    return _partial(both, inside)


def _total(value: Operand, test: str, *, missing: bool) -> CelCondition:
    """A test that is decided also for what is missing."""
    if not value.present:
        return CelCondition(test, _not(test), total=True)
    there = cel.all_of(value.present)
    if missing:
        return CelCondition(f"!({there}) || {test}", f"{there} && {_not(test)}", total=True)
    return CelCondition(f"{there} && {test}", f"!({there} && {test})", total=True)


def _partial(value: Operand, test: str) -> CelCondition:
    """A test that cannot be worked out for what is missing."""
    if not value.present:
        return CelCondition(test, _not(test), total=True)
    there = cel.all_of(value.present)
    return CelCondition(f"{there} && {test}", f"{there} && {_not(test)}", total=False)


def _not(test: str) -> str:
    return f"!({test})"


def _bounded(test: CelCondition) -> CelCondition:
    if max(len(test.holds), len(test.fails)) > cel.MAX_CHARACTERS * 4 or len(test.holds) > cel.MAX_CHARACTERS:
        raise NotTranslatable(
            f"the condition would need more than {cel.MAX_CHARACTERS:,} characters in CEL",
            "Let an agent decide, and read its decision.",
        )
    return test
