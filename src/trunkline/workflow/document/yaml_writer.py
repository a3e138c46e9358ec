"""
Writes definitions: one that was saved as JSON as YAML, and the text of a workflow with another value of `publish`.

What a definition says stays the same: the order of the keys, and every number as it was written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import cast

from trunkline.jsontypes import Json
from trunkline.workflow.document.parsing import read_document
from trunkline.workflow.document.scalars import MAX_DIGITS, resolve_scalar

_KEY = "publish"
# The key at the beginning of a line, and the lines below it that are indented.
_BLOCK = re.compile(r"^publish[ \t]*:.*(?:\r?\n(?:[ \t].*)?)*", re.MULTILINE)


def with_publish(source: str, publish: Json) -> str:
    """None removes it. Raises `Invalid` if the text cannot be read."""
    before = read_document(source, "workflow").value
    definition = dict(before) if isinstance(before, dict) else {}
    definition.pop(_KEY, None)
    if publish is not None:
        definition[_KEY] = publish
    if source.removeprefix("\ufeff").lstrip().startswith("{"):
        return json.dumps(definition, indent=2, ensure_ascii=False) + "\n"
    edited = _edited(source, publish)
    # What the lines mean decides: a text may be written in a way that they do not show.
    if _value_of(edited) == definition:
        return edited
    return write_yaml(json.dumps(definition, ensure_ascii=False)) or json.dumps(definition)


def _edited(source: str, publish: Json) -> str:
    kept = _BLOCK.sub("", source, count=1).rstrip("\r\n") + "\n"
    # JSON is YAML, too.
    return kept if publish is None else f"{kept}{_KEY}: {json.dumps(publish, ensure_ascii=False)}\n"


def _value_of(text: str) -> Json:
    document = read_document(text, "workflow")
    return None if document.problems else document.value


# Longer texts are not readable anyway, and writing them would delay other requests.
MAX_CHARACTERS = 128 * 1024
# Begins with a letter, or as an expression does, or is a time such as 5m, and nothing in it means something to YAML.
_PLAIN = re.compile(r"[^\W\d][^:#]*\Z|\$\{[^:#]*\Z|[0-9]+[a-z][a-z0-9]*\Z")
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*\Z")


class _NumberText(str):
    """A number as it was written."""

    __slots__ = ()


class _NotWritable(Exception):
    """A number that JSON takes and YAML does not."""


def write_yaml(source: str) -> str | None:
    """None: it is not JSON, or too long, or has what YAML cannot say."""
    text = source.removeprefix("\ufeff")
    if len(text) > MAX_CHARACTERS or not text.lstrip().startswith("{"):
        return None
    try:
        value = cast("Json", json.loads(text, parse_int=_number, parse_float=_number, parse_constant=_number))
        return "".join(f"{line}\n" for line in _lines(value))
    except (ValueError, RecursionError, _NotWritable):
        return None


def _number(text: str) -> _NumberText:
    if len(text) > MAX_DIGITS or not text[-1].isdigit():
        raise _NotWritable
    return _NumberText(text)


def _lines(value: Json) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for key, child in value.items():
            yield from _entry(f"{_key(key)}:", child, is_item=False)
    elif isinstance(value, list) and value:
        for child in value:
            yield from _entry("-", child, is_item=True)
    else:
        yield _scalar(value)


def _entry(head: str, value: Json, *, is_item: bool) -> Iterator[str]:
    """What `head` introduces: in the same line, or in those below it."""
    if isinstance(value, str) and not isinstance(value, _NumberText) and _is_multiline(value):
        yield f"{head} |" if value.endswith("\n") else f"{head} |-"
        for line in value.removesuffix("\n").split("\n"):
            yield f"  {line}" if line else ""
        return
    lines = _lines(value)
    if not isinstance(value, dict | list) or not value:
        yield f"{head} {next(lines)}"
        return
    # The first of an item's own lines follows its dash.
    yield f"{head} {next(lines)}" if is_item else head
    for line in lines:
        yield f"  {line}" if line else ""


def _key(key: str) -> str:
    return key if _PLAIN_KEY.match(key) and resolve_scalar(key) == key else _quoted(key)


def _scalar(value: Json) -> str:
    if isinstance(value, _NumberText):
        return value
    if isinstance(value, str):
        return value if _is_plain(value) else _quoted(value)
    return json.dumps(value)


def _is_plain(text: str) -> bool:
    return (
        bool(_PLAIN.match(text))
        and text.isprintable()
        and text == text.strip()
        and resolve_scalar(text) == text
    )


def _is_multiline(text: str) -> bool:
    lines = text.removesuffix("\n").split("\n")
    return (
        len(lines) > 1 and lines[0][:1].strip() != "" and lines[-1] != "" and all(map(str.isprintable, lines))
    )


def _quoted(text: str) -> str:
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if character.isprintable():
        return character
    short = {"\n": "\\n", "\t": "\\t"}.get(character)
    code = ord(character)
    return short or (f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}")
