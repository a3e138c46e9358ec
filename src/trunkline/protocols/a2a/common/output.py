"""
From what an agent said to the step's output.

    {"text", "data", "artifacts", "response", "history", "metadata", "context_id", "usage"},
    each only where present

`text` and `data` come from the artifacts, else from the final status message, else from a Message, else from
the last agent message of the history; `protocols/outputs.py` has their rule. `response` is that last agent message,
as it was sent.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET, Raw, UnsetType

from trunkline.protocols.a2a.common.parsed_result import HasParts, ParsedResult, PartsMessage, text_of
from trunkline.protocols.a2a.common.states import is_agent
from trunkline.protocols.outputs import StepOutput, text_and_data, usage_in


def output_of(reading: ParsedResult[PartsMessage]) -> StepOutput:
    last = _last_agent_message(reading.history)
    sources: list[Sequence[HasParts]] = [
        reading.artifacts,
        *[[message] for message in (reading.status_message, reading.message, last) if message is not None],
    ]
    text, data = text_and_data(_first_text(sources), _first_data(sources))
    response = text_of(last) or text_of(reading.status_message) or text_of(reading.message)
    has_artifacts = any(artifact.has_parts() for artifact in reading.artifacts)
    return StepOutput(
        text=text,
        data=data,
        artifacts=reading.artifacts_whole if has_artifacts else UNSET,
        response=response or UNSET,
        history=reading.history_whole or UNSET,
        metadata=UNSET if reading.metadata is None else reading.metadata,
        context_id=reading.context_id or UNSET,
        usage=usage_in(_metadata_in(reading, last)),
    )


def history_notes(history: Sequence[PartsMessage]) -> list[str]:
    """What keeps us from reading the history, named."""
    notes: list[str] = []
    for index, item in enumerate(history):
        missing = [name for name, value in (("role", item.role), ("parts", item.parts)) if value is UNSET]
        if missing:
            fields = " and ".join(f"'{name}'" for name in missing)
            notes.append(f"Can't extract output from history: item {index} is missing {fields}")
    return notes


def _metadata_in(
    reading: ParsedResult[PartsMessage], last: PartsMessage | None
) -> list[Raw | UnsetType | None]:
    messages = (reading.status_message, reading.message, last)
    return [
        reading.metadata,
        *[message.metadata for message in messages if message is not None],
        *[artifact.metadata for artifact in reversed(reading.artifacts)],
    ]


def _last_agent_message(history: Sequence[PartsMessage]) -> PartsMessage | None:
    """The last message of the agent that has a text; else its last one with any content."""
    holder = [message for message in reversed(history) if is_agent(message.role) and message.has_parts()]
    return next((message for message in holder if message.texts()), holder[0] if holder else None)


def _first_text(sources: list[Sequence[HasParts]]) -> str | None:
    for source in sources:
        texts = [text for holder in source for text in holder.texts()]
        if texts:
            return "\n".join(texts)
    return None


def _first_data(sources: list[Sequence[HasParts]]) -> object:
    for source in sources:
        values = [value for holder in source for value in holder.data_values()]
        if values:
            return values[0] if len(values) == 1 else values
    return UNSET
