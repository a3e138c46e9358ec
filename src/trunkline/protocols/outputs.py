"""
The output of a step, in the one form that every dialect gives it.

    {"text": "…", "data": …, "artifacts": […], "response": "…", "history": […], "metadata": {…}, "context_id",
     "usage": {…}}

Each only where the answer has it. `text` that is JSON is also there parsed, as `data`, so `output.data.x`
reads alike whatever the agent speaks. `usage` is what a model has cost in tokens, in the agent's own words: the
object `adk_usage_metadata` or `usage` in some metadata of the answer. `protocol_config.output_mode: data` makes
`data` itself the output.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from trunkline.jsontypes import decode, encode
from trunkline.protocols.answer_json import NotJson, check_json

OutputMode = Literal["full", "data"]

# What a JSON text can begin with.
_JSON_BEGINNINGS = frozenset('{["-0123456789tfn')
_NAMED_TEXTS = ("text", "result", "response")

NO_DATA = "output_mode is data, but the answer has no data: the output has its full form"


class StepOutput(msgspec.Struct, kw_only=True, omit_defaults=True):
    """An output before it is JSON: fields hold values that msgspec encodes, `Raw` among them."""

    text: str | UnsetType = UNSET
    data: object = UNSET
    artifacts: object = UNSET
    response: str | UnsetType = UNSET
    history: object = UNSET
    metadata: object = UNSET
    context_id: str | UnsetType = UNSET
    usage: object = UNSET

    def is_empty(self) -> bool:
        """True when nothing that an agent produced is in it."""
        return (
            self.text is UNSET and self.data is UNSET and self.artifacts is UNSET and self.response is UNSET
        )


class _TextFields(msgspec.Struct):
    text: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    response: Raw | UnsetType = UNSET


class _UsageMetadata(msgspec.Struct):
    adk_usage_metadata: Raw | UnsetType = UNSET
    usage: Raw | UnsetType = UNSET


_named_texts = msgspec.json.Decoder(_TextFields)


def usage_in(metadata: Iterable[Raw | UnsetType | None]) -> Raw | UnsetType:
    """The first token usage that any metadata has; UNSET where none has one."""
    for item in metadata:
        if item is None or item is UNSET or b"usage" not in bytes(item):
            continue
        if bytes(memoryview(item)[:1]) != b"{":
            continue
        found = msgspec.json.decode(item, type=_UsageMetadata)
        for usage in (found.adk_usage_metadata, found.usage):
            if usage is not UNSET and bytes(memoryview(usage)[:1]) == b"{":
                return usage
    return UNSET


def json_in(text: str) -> Raw | UnsetType:
    """The text as JSON, when it is JSON."""
    head = text[:64].lstrip()
    if not head or head[0] not in _JSON_BEGINNINGS:
        return UNSET
    try:
        return check_json(text.encode())
    except NotJson:
        return UNSET


def output_from_value(value: Raw) -> StepOutput | None:
    """
    The output of an agent that answers with any JSON value; None for null.

    The value is `data`; `text` is a string as it is, or an object's string `text`, `result` or `response`.
    """
    head = bytes(memoryview(value)[:1])
    if head == b"n":
        return None
    if head == b'"':
        text = msgspec.json.decode(value, type=str)
        return StepOutput(text=text, data=json_in(text))
    return StepOutput(text=_text_in_object(value) if head == b"{" else UNSET, data=value)


def _text_in_object(value: Raw) -> str | UnsetType:
    named = _named_texts.decode(value)
    for name in _NAMED_TEXTS:
        candidate: Raw | UnsetType = getattr(named, name)
        if candidate is not UNSET and bytes(memoryview(candidate)[:1]) == b'"':
            text = decode(candidate)
            return text if isinstance(text, str) else UNSET
    return UNSET


def encode_output(output: StepOutput, mode: OutputMode, warnings: list[str]) -> bytes:
    """The output as JSON text."""
    if mode == "data":
        if output.data is not UNSET:
            return encode(output.data)
        warnings.append(NO_DATA)
    return encode(output)
