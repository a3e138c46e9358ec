"""
From what an agent said to the step's output.

    {"text", "data", "artifacts", "response", "history", "metadata", "context_id", "usage"},
    each only where present

`text` and `data` come from the artifacts, else from the final status message, else from a Message, else from
the last agent message of the history. `response` is that last agent message.
"""

from __future__ import annotations

from msgspec import UNSET, Raw, UnsetType

from trunkline.protocols.a2a_v1.model import Message, Part, data_in, parts_of, text_of, texts_in
from trunkline.protocols.a2a_v1.reading import Reading
from trunkline.protocols.a2a_v1.states import is_agent
from trunkline.protocols.outputs import Output, json_in, usage_in


def output_of(reading: Reading) -> Output:
    last = _last_agent_message(reading.history)
    in_artifacts = [part for artifact in reading.artifacts for part in parts_of(artifact)]
    sources = [in_artifacts, parts_of(reading.status_message), parts_of(reading.message), parts_of(last)]
    text = _first_text(sources)
    data = _first_data(sources)
    response = text_of(last) or text_of(reading.status_message) or text_of(reading.message)
    return Output(
        text=UNSET if text is None else text,
        data=json_in(text) if data is UNSET and text is not None else data,
        artifacts=reading.artifacts_whole if in_artifacts else UNSET,
        response=response or UNSET,
        history=reading.history_whole or UNSET,
        metadata=UNSET if reading.metadata is None else reading.metadata,
        context_id=reading.context_id or UNSET,
        usage=usage_in(_metadata_in(reading, last)),
    )


def history_notes(history: list[Message]) -> list[str]:
    """What keeps us from reading the history, named."""
    notes: list[str] = []
    for index, item in enumerate(history):
        missing = [name for name, value in (("role", item.role), ("parts", item.parts)) if value is UNSET]
        if missing:
            fields = " and ".join(f"'{name}'" for name in missing)
            notes.append(f"Can't extract output from history: item {index} is missing {fields}")
    return notes


def _metadata_in(reading: Reading, last: Message | None) -> list[Raw | UnsetType | None]:
    messages = (reading.status_message, reading.message, last)
    return [
        reading.metadata,
        *(message.metadata for message in messages if message is not None),
        *(artifact.metadata for artifact in reversed(reading.artifacts)),
    ]


def _last_agent_message(history: list[Message]) -> Message | None:
    """The last message of the agent that has a text; else its last one with any content."""
    spoken = [message for message in reversed(history) if is_agent(message.role) and parts_of(message)]
    return next((message for message in spoken if texts_in(parts_of(message))), spoken[0] if spoken else None)


def _first_text(sources: list[list[Part]]) -> str | None:
    for parts in sources:
        texts = texts_in(parts)
        if texts:
            return "\n".join(texts)
    return None


def _first_data(sources: list[list[Part]]) -> object:
    for parts in sources:
        values = data_in(parts)
        if values:
            return values[0] if len(values) == 1 else values
    return UNSET
