"""
Finds the expressions in a text: `Write about ${ input.topic }`.

The end of an expression is not simply the next brace: CEL has braces of its own, and strings and comments
that may hold any. `$${` stands for the two characters `${`.
"""

from __future__ import annotations

import re
from typing import NamedTuple, cast

from trunkline.workflow.expressions.errors import CompileError

# CEL's parser is fast, but a thousand expressions add up, and a longer expression is hard to read.
MAX_SOURCE = 2_000

_OPENING = re.compile(r"\$\$\{|\$\{")
_TOKEN = re.compile(
    r"""
      (?P<string> (?:[rR][bB]?|[bB][rR]) (?: \"{3}.*?\"{3} | '{3}.*?'{3} | "[^"\n]*" | '[^'\n]*' )
               | [bB]? (?: \"{3}(?:\\.|[^\\])*?\"{3} | '{3}(?:\\.|[^\\])*?'{3}
                         | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' ) )
    | (?P<quote> ["'] )
    | (?P<open> \{ )
    | (?P<close> \} )
    | //[^\n]*
    | [A-Za-z_][A-Za-z0-9_]*
    | .
    """,
    re.VERBOSE | re.DOTALL,
)


class ExpressionSource(NamedTuple):
    """The text of one expression, as it stands between `${` and `}`."""

    text: str


def split_expressions(text: str) -> list[str | ExpressionSource]:
    """The parts of a text: what stands for itself, and the expressions; raises `CompileError`."""
    parts: list[str | ExpressionSource] = []
    literal = ""
    position = 0
    while (opening := _OPENING.search(text, position)) is not None:
        literal += text[position : opening.start()]
        if opening.group() == "$${":
            literal += "${"
            position = opening.end()
            continue
        end = _end_of_expression(text, opening.end())
        if literal:
            parts.append(literal)
            literal = ""
        parts.append(ExpressionSource(text[opening.end() : end]))
        position = end + 1
    literal += text[position:]
    if literal:
        parts.append(literal)
    return parts


def _end_of_expression(text: str, start: int) -> int:
    depth = 0
    limit = min(len(text), start + MAX_SOURCE + 1)
    position = start
    while position < limit:
        # The last alternative takes any character.
        token = cast("re.Match[str]", _TOKEN.match(text, position, limit))
        if token.lastgroup == "close":
            if depth == 0:
                return position
            depth -= 1
        elif token.lastgroup == "open":
            depth += 1
        elif token.lastgroup == "quote" and limit == len(text):
            raise CompileError("a string in the expression has no closing quote", text[start:])
        position = token.end()
    if limit < len(text):
        raise _too_long(text[start:limit])
    fix = "close it, or write $${ for a literal ${"
    raise CompileError(f"the expression has no closing brace; {fix}", text[start:])


def check_length(source: str) -> None:
    if len(source) > MAX_SOURCE:
        raise _too_long(source)


def _too_long(source: str) -> CompileError:
    message = f"the expression is longer than {MAX_SOURCE:,} characters; move this computation to an agent"
    return CompileError(message, source[:MAX_SOURCE])


def strip_delimiters(text: str) -> str:
    """The source in a text that may be an expression with or without `${ }` around it."""
    stripped = text.strip()
    if not stripped.startswith("${"):
        return stripped
    try:
        parts = split_expressions(stripped)
    except CompileError:
        # The compiler will say what is wrong with it.
        return stripped
    return parts[0].text.strip() if len(parts) == 1 and isinstance(parts[0], ExpressionSource) else stripped
