"""
The output of a step, in the one form that every dialect gives it.

    {"text": "…", "data": …, "artifacts": […], "response": "…", "history": […], "metadata": {…}, "context_id",
     "usage": {…}}

Each only where the answer has it. The same content gives the same `text` and `data`, whatever the agent speaks:

    {"result": "x"}, as Simple A2A's output, as a data part or as JSON text    text "x", data {"result": "x"}
    {"score": 3} or [1, 2], in any of these forms                              data alone
    42, or the text "42"                                                       text "42", data 42
    any other text                                                             text alone

The text of an object is its string `text`, `result` or `response`. The text as it was sent stays in `artifacts`,
`response` and `history`. `usage` is what a model has cost in tokens, in the agent's own words: the object
`adk_usage_metadata` or `usage` in some metadata of the answer. `protocol_config.output_mode: data` makes `data`
itself the output, or `text` where data is missing.

The answer of a published agent is passed on to its caller, so its output has the full form, and in addition what an
agent of A2A said in messages, as it was sent: `message`, an answer without a task, and `status_message`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from trunkline.jsontypes import decode, encode
from trunkline.messages import AgentTask
from trunkline.protocols.answer_json import NotJson, check_json

# `whole`: full, with messages. Users choose among the others.
OutputMode = Literal["full", "data", "whole"]

# What a JSON text can begin with.
_JSON_BEGINNINGS = frozenset('{["-0123456789tfn')
_NAMED_TEXTS = ("text", "result", "response")
_CONTAINERS = (b"{", b"[")
_WHITE_SPACE = (b" ", b"\t", b"\n", b"\r")

NO_DATA = "output_mode is data, but the answer has neither data nor text; the output has the full form"


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
    message: object = UNSET
    status_message: object = UNSET

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
    """The output of an agent that answers with any JSON value; None for null."""
    head = _first_byte(value)
    if head == b"n":
        return None
    if head == b'"':
        text, data = text_and_data(msgspec.json.decode(value, type=str), UNSET)
    else:
        text, data = text_and_data(None, value)
    return StepOutput(text=text, data=data)


def text_and_data(text: str | None, data: object) -> tuple[str | UnsetType, object]:
    """`text` and `data` of an output, of the text and the data that an agent sent; UNSET where there is none."""
    if text is not None:
        value = json_in(text)
        if value is UNSET or _first_byte(value) not in _CONTAINERS:
            return text, value if data is UNSET else data
        if data is UNSET:
            data = value
        found = _text_of(value)
        if found is not UNSET:
            return found, data
    return _text_of(data) if isinstance(data, Raw) else UNSET, data


def _text_of(value: Raw) -> str | UnsetType:
    """What a value says as text: an object's string `text`, `result` or `response`, a number as text."""
    match _first_byte(value):
        case b"{":
            return _text_in_object(value)
        case b"[" | b"n":
            return UNSET
        case b'"':
            return msgspec.json.decode(value, type=str)
        case _:
            return bytes(value).decode()


def _text_in_object(value: Raw) -> str | UnsetType:
    named = _named_texts.decode(value)
    for name in _NAMED_TEXTS:
        candidate: Raw | UnsetType = getattr(named, name)
        if candidate is not UNSET and _first_byte(candidate) == b'"':
            text = decode(candidate)
            return text if isinstance(text, str) else UNSET
    return UNSET


def _first_byte(value: Raw) -> bytes:
    # White space before it is not part of a value that was taken out of a larger one, but of a text that is JSON.
    head = bytes(memoryview(value)[:1])
    return head if head not in _WHITE_SPACE else bytes(value).lstrip()[:1]


def output_mode_for(task: AgentTask, configured: OutputMode) -> OutputMode:
    return "whole" if task.is_passed_on else configured


def encode_output(output: StepOutput, mode: OutputMode, warnings: list[str]) -> bytes:
    """The output as JSON text."""
    if mode == "data":
        for content in (output.data, output.text):
            if content is not UNSET:
                return encode(content)
        warnings.append(NO_DATA)
    return encode(output)
