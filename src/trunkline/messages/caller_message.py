"""
The A2A message that started a run or answered its question, as it is stored with the run.

Its parts have the form of A2A 1.0, whatever version the caller speaks:

    {"text": "…"}  {"data": …}  {"raw": "<base64>"}  {"url": "…"}, each with "mediaType", "filename", "metadata"
"""

from __future__ import annotations

import msgspec

from trunkline.jsontypes import Json, JsonObject


class CallerMessage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    message_id: str
    # The caller's own, or the one that we gave the task.
    context_id: str
    parts: list[JsonObject]
    metadata: JsonObject | None = None
    extensions: list[str] = []
    reference_task_ids: list[str] = []
    # The name under which the workflow or the agent is published: `workflows/NAME`, `agents/NAME`.
    publication: str = ""
    # The id of the caller's API key; empty: no keys are in use.
    caller: str = ""
    # What the caller speaks: `1.0` or `0.3`.
    version: str = ""
    # The caller named the context: an agent may know it.
    chose_context: bool = False

    @property
    def text(self) -> str:
        """All text parts, joined by line breaks."""
        return "\n".join(text for part in self.parts if isinstance(text := part.get("text"), str))

    @property
    def is_for_agent(self) -> bool:
        """The caller has called a published agent, not a workflow."""
        return self.publication.startswith("agents/")

    @property
    def has_files(self) -> bool:
        return any("raw" in part or "url" in part for part in self.parts)

    def shown(self) -> Json:
        """What expressions read as `run.message`."""
        return {
            "message_id": self.message_id,
            "context_id": self.context_id,
            "parts": list(self.parts),
            "metadata": self.metadata or {},
            "extensions": list(self.extensions),
            "text": self.text,
        }


_decoder: msgspec.json.Decoder[CallerMessage] = msgspec.json.Decoder(CallerMessage)


def decode_caller_message(text: bytes) -> CallerMessage:
    """A message as the store has it."""
    return _decoder.decode(text)
