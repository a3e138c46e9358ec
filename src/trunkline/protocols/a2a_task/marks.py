"""
What Google's ADK says in the metadata of a part.

    {"adk_thought": true}             the model's thinking, which is not output
    {"adk_type": "function_call"}     a function that the agent has called and waits for
"""

from __future__ import annotations

import msgspec
from msgspec import UNSET, Raw, UnsetType


class _Marks(msgspec.Struct):
    adk_thought: bool = False
    adk_type: str | None = None


_NO_MARKS = _Marks()


def marks_thought(metadata: Raw | UnsetType) -> bool:
    return metadata is not UNSET and _marks_in(metadata).adk_thought


def marks_function_call(metadata: Raw | UnsetType) -> bool:
    return metadata is not UNSET and _marks_in(metadata).adk_type == "function_call"


def _marks_in(metadata: Raw) -> _Marks:
    if b'"adk_t' not in bytes(metadata):
        return _NO_MARKS
    try:
        return msgspec.json.decode(metadata, type=_Marks)
    except msgspec.ValidationError:
        return _NO_MARKS
