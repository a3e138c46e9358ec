"""
The data in arguments: `-i key=value`, files, secrets, and choices.

A secret is never an argument, because every process on the machine can read the command line: it comes from an
environment variable or a file.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, cast, get_args, get_origin

from cyclopts import Parameter, Token

from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import CliError

if TYPE_CHECKING:
    from trunkline.jsontypes import Json, JsonObject

# What people write for stdin, and what it is called where a file's name is shown.
HYPHEN = "-"
STDIN = "/dev/stdin"


def in_any_case(type_: object, tokens: Sequence[Token]) -> str | list[str]:
    """A converter of `Literal`, or of a list of them: `WARNING` means the choice `warning`, as in a variable."""
    is_list = get_origin(type_) is list
    choices = [str(choice) for choice in get_args(get_args(type_)[0] if is_list else type_)]
    by_folded = {choice.casefold(): choice for choice in choices}
    chosen: list[str] = []
    for token in tokens:
        found = by_folded.get(token.value.casefold())
        if found is None:
            shown = ", ".join(f'"{choice}"' for choice in choices)
            problem = f'"{token.value}" is not one of: {shown}.'
            # The parser names the option only if it has a single value.
            raise ValueError(problem if len(tokens) == 1 else f"Invalid value for {token.keyword}: {problem}")
        chosen.append(found)
    return chosen if is_list else chosen[0]


# Marks a parameter that takes one of a few words.
Choice = Parameter(converter=in_any_case)


def parse_value(text: str) -> Json:
    """JSON when it is JSON, else the text itself: `3` is a number, `three` a text, `"3"` a text too."""
    try:
        return cast("Json", json.loads(text, parse_constant=_no_constant))
    except ValueError:
        return text


def parse_pairs(pairs: Iterable[str]) -> JsonObject:
    """`key=value` each; `key=@file` takes the value from the file."""
    values: JsonObject = {}
    for pair in pairs:
        key, separator, text = pair.partition("=")
        if not separator or not key:
            raise CliError(
                f"{pair!r} is not of the form key=value",
                fix="Write it like: -i topic='Climate change' or -i depth=3 or -i text=@notes.txt",
                exit_code=Exit.USAGE,
            )
        values[key] = parse_value(read_text(text[1:]) if text.startswith("@") else text)
    return values


def read_bytes(path: str) -> bytes:
    """The file's content, or stdin's."""
    try:
        return sys.stdin.buffer.read() if path in (HYPHEN, STDIN) else Path(path).read_bytes()
    except OSError as error:
        raise CliError(
            f"Cannot read {path}: {error.strerror}", fix="Check the path.", exit_code=Exit.USAGE
        ) from error


def read_text(path: str) -> str:
    try:
        return read_bytes(path).decode()
    except UnicodeDecodeError as error:
        raise CliError(
            f"{path} is not UTF-8 text: {error.reason} at byte {error.start}",
            fix="Save it as UTF-8.",
            exit_code=Exit.INVALID,
        ) from error


def read_json(path: str) -> Json:
    try:
        return cast("Json", json.loads(read_text(path), parse_constant=_no_constant))
    except ValueError as error:
        raise CliError(
            f"{path} is not valid JSON: {error}", fix="Correct the file.", exit_code=Exit.INVALID
        ) from error


def given_value(text: str) -> Json:
    """A value on the command line: JSON or text; `@file` holds JSON."""
    return read_json(text[1:]) if text.startswith("@") else parse_value(text)


def given_json(text: str) -> Json:
    """JSON on the command line or, as `@file`, in a file; nothing else passes, since an answer cannot be taken back."""
    if text.startswith("@"):
        return read_json(text[1:])
    try:
        return cast("Json", json.loads(text, parse_constant=_no_constant))
    except ValueError as error:
        raise CliError(
            f"The data is not valid JSON: {error}",
            fix="""Correct it. A text needs quotes: '"like this"'.""",
            exit_code=Exit.INVALID,
        ) from error


def given_text(text: str) -> str:
    """A text on the command line; `-` and `@file` read it, without the line's end."""
    if text == STDIN:
        return read_text(text).rstrip("\n")
    return read_text(text[1:]).rstrip("\n") if text.startswith("@") else text


def run_input(pairs: Iterable[str], file: str | None) -> Json:
    """The run's input: the file's content, with the pairs put over it."""
    given = parse_pairs(pairs)
    if file is None:
        return given
    content = read_json(file)
    if not given:
        return content
    if not isinstance(content, dict):
        raise CliError(
            f"{file} does not contain a JSON object, so -i cannot add to it",
            fix="Use either --input-file or -i.",
            exit_code=Exit.USAGE,
        )
    return {**content, **given}


def secret_from_env(variable: str) -> str:
    value = os.environ.get(variable)
    if not value:
        raise CliError(
            f"The environment variable {variable} is not set",
            fix=f"Set it first, for example: read -rs {variable} && export {variable}",
            exit_code=Exit.USAGE,
        )
    return value


def secret_from_file(path: str) -> str:
    return read_text(path).rstrip("\r\n")


def _no_constant(text: str) -> NoReturn:
    # Python reads NaN and Infinity, which are not JSON.
    raise ValueError(f"{text} is not JSON")


def has_terminal() -> bool:
    """Whether a person can be asked."""
    return sys.stdin.isatty() and sys.stdout.isatty()
