"""
What Google's ADK says in the metadata of a part.

    {"adk_thought": true}             the model's thinking, which is not output
    {"adk_type": "function_call"}     a function that the agent has called and waits for
"""

from __future__ import annotations

import msgspec
from msgspec import UNSET, Raw, UnsetType


class _AdkMetadata(msgspec.Struct):
    adk_thought: bool = False
    adk_type: str | None = None


_NO_ADK_METADATA = _AdkMetadata()


def is_adk_thought(metadata: Raw | UnsetType) -> bool:
    return metadata is not UNSET and _adk_metadata_in(metadata).adk_thought


def is_adk_function_call(metadata: Raw | UnsetType) -> bool:
    return metadata is not UNSET and _adk_metadata_in(metadata).adk_type == "function_call"


def _adk_metadata_in(metadata: Raw) -> _AdkMetadata:
    if b'"adk_t' not in bytes(metadata):
        return _NO_ADK_METADATA
    try:
        return msgspec.json.decode(metadata, type=_AdkMetadata)
    except msgspec.ValidationError:
        return _NO_ADK_METADATA
