"""
The pieces of artifacts, put together by their ids.

    {"artifactId": "a", "parts": [1]} then {"artifactId": "a", "parts": [2]}, append    one with parts [1, 2]
    {"artifactId": "a", "parts": [1]} then {"artifactId": "a", "parts": [2]}            the second replaces it

A text that begins an appended piece goes on where the text before it ended. Adding a piece costs what the piece
costs, however long the artifact is already.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

import msgspec
from msgspec import UNSET

from trunkline.jsontypes import Json
from trunkline.protocols.a2a.v1.lenient_parts import parse_part
from trunkline.protocols.a2a.v1.model import RawField, V1Artifact, V1Part, non_empty

# An artifact as it goes into the output: in the exact form, or whatever else the agent sent.
WholeArtifact = V1Artifact | Mapping[str, object]
WholePart = V1Part | Json

_FIELDS = [(field.name, field.encode_name) for field in msgspec.structs.fields(V1Artifact)]


class _PartialArtifact(msgspec.Struct):
    """One artifact: its fields, and its parts as they came, one list for each piece."""

    fields: dict[str, object]
    metadata: RawField
    pieces: list[list[WholePart]]


class ArtifactAssembler:
    """The artifacts of one task, in the order in which they began."""

    def __init__(self) -> None:
        # By id; those without one by their number.
        self._gathered: dict[str | int, _PartialArtifact] = {}
        self._nameless = 0
        # True: a piece said that it goes on with an artifact of which we have not seen the beginning.
        self.has_gap = False

    def add(self, artifact: V1Artifact, whole: WholeArtifact, *, append: bool) -> bool:
        """Takes a piece; True when it replaced an artifact that was there."""
        key = self._key(artifact, append=append)
        earlier = self._gathered.get(key)
        fields, parts = _taken_apart(whole)
        if earlier is None or not append:
            self.has_gap = self.has_gap or append
            self._gathered[key] = _PartialArtifact(fields, artifact.metadata, [parts])
            return earlier is not None
        earlier.pieces.append(parts)
        if artifact.metadata is not UNSET:
            earlier.metadata = artifact.metadata
        return False

    def joined(self) -> tuple[list[V1Artifact], list[Mapping[str, object]]]:
        """The artifacts as we read them, and as they go into the output."""
        read: list[V1Artifact] = []
        whole: list[Mapping[str, object]] = []
        for each in self._gathered.values():
            parts = _joined(each.pieces)
            found = [part if isinstance(part, V1Part) else parse_part(part) for part in parts]
            read.append(
                V1Artifact(parts=[part for part in found if part is not None], metadata=each.metadata)
            )
            whole.append(each.fields | {"parts": parts} if parts or "parts" in each.fields else each.fields)
        return read, whole

    def _key(self, artifact: V1Artifact, *, append: bool) -> str | int:
        identity = non_empty(artifact.artifact_id)
        if identity is not None:
            return identity
        if not append:
            self._nameless += 1
        return self._nameless


def _taken_apart(whole: WholeArtifact) -> tuple[dict[str, object], list[WholePart]]:
    """The artifact's fields, and its parts."""
    fields = dict(_fields_of(whole))
    parts = fields.get("parts")
    return fields, cast("list[WholePart]", parts) if isinstance(parts, list) else []


def _fields_of(whole: WholeArtifact) -> Iterable[tuple[str, object]]:
    if not isinstance(whole, V1Artifact):
        return whole.items()
    values: Iterable[tuple[str, object]] = ((name, getattr(whole, attribute)) for attribute, name in _FIELDS)
    return ((name, value) for name, value in values if value is not UNSET)


def _joined(pieces: list[list[WholePart]]) -> list[WholePart]:
    if len(pieces) == 1:
        return pieces[0]
    parts: list[WholePart] = []
    texts: list[str] = []
    for piece in pieces:
        for index, part in enumerate(piece):
            text = _text_in(part)
            if index == 0 and texts and text is not None and _differ_only_in_text(parts[-1], part):
                texts.append(text)
                continue
            _close(parts, texts)
            parts.append(part)
            texts = [] if text is None else [text]
    _close(parts, texts)
    return parts


def _close(parts: list[WholePart], texts: list[str]) -> None:
    """Gives the last part the text that its followers have brought."""
    if len(texts) < 2:
        return
    last, text = parts[-1], "".join(texts)
    if isinstance(last, V1Part):
        parts[-1] = msgspec.structs.replace(last, text=text)
    elif isinstance(last, dict):
        parts[-1] = last | {"text": text}


def _text_in(part: WholePart) -> str | None:
    if isinstance(part, V1Part):
        return None if part.text is UNSET else part.text
    text = part.get("text") if isinstance(part, dict) else None
    return text if isinstance(text, str) else None


def _differ_only_in_text(last: WholePart, part: WholePart) -> bool:
    """Whether two text parts differ in nothing but their text."""
    if isinstance(last, V1Part) and isinstance(part, V1Part):
        return msgspec.structs.replace(last, text="") == msgspec.structs.replace(part, text="")
    if isinstance(last, dict) and isinstance(part, dict):
        return last | {"text": ""} == part | {"text": ""}
    return False
