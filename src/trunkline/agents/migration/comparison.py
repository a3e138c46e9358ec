"""
Compares the answers of a migrating agent's two endpoints. Deterministic, no I/O.

Both are outputs in the one form that every dialect gives them (`protocols/outputs.py`), or the agent's own data where
`output_mode` asks for that. What a workflow reads is compared, not how it was sent: `data` with `data`, `text` with
`text` unless the data has it, files by their content. A source that only wraps a text, `{"result": "…"}`, says the same
as a target that answers this text; `only_in_source` names what can then no longer be read.
Metadata, history, conversations and protocols' own ids are left out. Two values that are both UUIDs, or both times,
count as the same: each endpoint generates its own.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Callable, Iterator
from typing import Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from trunkline.jsontypes import Json, JsonObject, decode, encode

ComparisonVerdict = Literal["agree", "differ", "new_failed", "old_failed", "both_failed"]

MAX_DIFFERENCES = 20
# Characters of each value that is shown.
_MAX_VALUE_CHARACTERS = 200

# What the form of an output has; without one of the first three it is none.
_SAID = frozenset({"text", "data", "artifacts"})
_FORM = _SAID | {"response", "history", "metadata", "context_id", "usage"}
# The strings of an object that are its text, the first that there is; around a text that says all.
_NAMED_TEXTS = ("text", "result", "response")
_ABOUT_THE_ANSWER = frozenset({"history", "metadata"})
# Of the protocols, without `_` and `-`; an id of the agent's own, a customer's say, is compared.
_PROTOCOL_IDS = frozenset({"taskid", "contextid", "messageid", "requestid", "correlationid", "artifactid"})
_TIMES = frozenset({"timestamp", "time", "durationms", "elapsedms"})
_UUID = re.compile(r"[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}")
_INSTANT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?")

# UNSET: there is nothing.
_Value: TypeAlias = "Json | UnsetType"
_Pair: TypeAlias = "tuple[str, _Value, _Value]"


class AnswerDifference(msgspec.Struct, frozen=True, omit_defaults=True):
    """`path` is a JSON pointer into the output. A value that is not there is missing."""

    path: str
    old: str | None = None
    new: str | None = None


class AnswerComparison(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is kept of two answers to one task."""

    verdict: ComparisonVerdict
    # Used with each endpoint.
    old_protocol: str | None = None
    new_protocol: str | None = None
    differences: tuple[AnswerDifference, ...] = ()
    # How many more there are.
    more: int = 0
    # What workflows can read of the old answer and not of the new one, although both say the same: JSON pointers.
    only_in_old: tuple[str, ...] = ()
    # In words.
    old_error: str | None = None
    new_error: str | None = None


def differences(
    source: Json, target: Json, hide: Callable[[str], str]
) -> tuple[tuple[AnswerDifference, ...], int]:
    """The first ones, and how many more there are. `hide` takes secrets out of a text that will be shown."""
    found = list(_differing(source, target))
    shown = tuple(
        AnswerDifference(hide(path), _shown(before, hide), _shown(after, hide))
        for path, before, after in found[:MAX_DIFFERENCES]
    )
    return shown, len(found) - len(shown)


def only_in_source(source: Json, target: Json) -> tuple[str, ...]:
    """What of the source's output a workflow can read and of the target's it cannot, as JSON pointers."""
    before, after = _in_form(source), _in_form(target)
    return tuple(f"/{name}" for name in ("text", "data") if name in before and name not in after)


def _differing(old: Json, new: Json) -> Iterator[_Pair]:
    # Its own stack: an agent may nest as deep as it likes.
    waiting = [*_compared(old, new)][::-1]
    while waiting:
        path, before, after = waiting.pop()
        before, after = _parsed(before), _parsed(after)
        if isinstance(before, dict) and isinstance(after, dict):
            waiting += [
                (f"{path}/{escaped(name)}", before.get(name, UNSET), after.get(name, UNSET))
                # In the order of the old one, then what only the new one has.
                for name in reversed({**before, **after})
                if not _is_left_out(name, path)
            ]
        elif isinstance(before, list) and isinstance(after, list):
            waiting += [
                (f"{path}/{index}", _item(before, index), _item(after, index))
                for index in reversed(range(max(len(before), len(after))))
            ]
        elif not _is_same(path, before, after):
            yield path, before, after


def _compared(old: Json, new: Json) -> Iterator[_Pair]:
    """The parts of the two outputs that are to be the same."""
    before, after = _in_form(old), _in_form(new)
    if "data" in before and "data" in after:
        yield "/data", before["data"], after["data"]
        if not (_has_its_text(before) and _has_its_text(after)):
            yield "/text", before.get("text", UNSET), after.get("text", UNSET)
    elif "data" in before and not _is_wrapped_text(before):
        yield "/data", before["data"], after.get("text", UNSET)
    else:
        yield "/text", before.get("text", UNSET), after.get("text", after.get("data", UNSET))
    if "artifacts" in before and "artifacts" in after:
        yield "/files", _files(before["artifacts"]), _files(after["artifacts"])


def _in_form(output: Json) -> JsonObject:
    """Data that stands for itself gets its place in the form, with the text that it would have there."""
    if isinstance(output, dict) and output.keys() <= _FORM and output.keys() & _SAID:
        return output
    if isinstance(output, str):
        return {"text": output}
    text = _text_in(output)
    return {"data": output} if text is None else {"text": text, "data": output}


def _text_in(data: Json) -> str | None:
    if not isinstance(data, dict):
        return None
    named = (data.get(name) for name in _NAMED_TEXTS)
    return next((text for text in named if isinstance(text, str)), None)


def _has_its_text(output: JsonObject) -> bool:
    """Whether `text` is what `data` says, so that comparing the data is enough."""
    return output.get("text") == _text_in(output.get("data"))


def _is_wrapped_text(output: JsonObject) -> bool:
    """Whether `data` says no more than `text`."""
    data, text = output.get("data"), output.get("text")
    if not isinstance(data, dict) or not isinstance(text, str):
        return False
    content = {name: value for name, value in data.items() if not _is_left_out(name, "/data")}
    return (
        bool(content)
        and content.keys() <= frozenset(_NAMED_TEXTS)
        and all(value == text for value in content.values())
    )


def _parsed(value: _Value) -> _Value:
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[")):
        return value
    try:
        return decode(value.encode())
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        # Text, after all.
        return value


def _is_left_out(name: str, path: str) -> bool:
    if path == "/data" and name in _ABOUT_THE_ANSWER:
        return True
    return _plain(name) in _PROTOCOL_IDS


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _is_same(path: str, old: _Value, new: _Value) -> bool:
    if isinstance(old, bool) or isinstance(new, bool):
        return old is new
    if old == new:
        return True
    if isinstance(old, str) and isinstance(new, str):
        return any(made.fullmatch(old) and made.fullmatch(new) for made in (_UUID, _INSTANT))
    if isinstance(old, int | float) and isinstance(new, int | float):
        name = path.rpartition("/")[2]
        return _plain(name) in _TIMES or name.endswith(("_at", "At"))
    return False


def _item(items: list[Json], index: int) -> _Value:
    return items[index] if index < len(items) else UNSET


def escaped(name: str) -> str:
    """A name as a JSON pointer has it."""
    return name.replace("~", "~0").replace("/", "~1")


def _shown(value: _Value, hide: Callable[[str], str]) -> str | None:
    if value is UNSET:
        return None
    text = hide(encode(value).decode())
    return text if len(text) <= _MAX_VALUE_CHARACTERS else f"{text[:_MAX_VALUE_CHARACTERS]}…"


def _files(artifacts: Json) -> Json:
    """What is in the files, sorted; the same whether they are in the output or in the blob store."""
    found: list[str] = []
    waiting: list[Json] = [artifacts]
    while waiting:
        match waiting.pop():
            case {"blob": {"id": str(digest)}}:
                found.append(digest)
            case {"bytes": str(content)} | {"raw": str(content)}:
                found.append(_digest(content))
            case dict() as holder:
                waiting += holder.values()
            case list() as items:
                waiting += items
            case _:
                pass
    return [*sorted(found)]


def _digest(content: str) -> str:
    try:
        return hashlib.sha256(b64decode(content, validate=True)).hexdigest()
    except (NotBase64, ValueError):
        return content
