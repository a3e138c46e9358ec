"""Pieces of artifacts: a file whose content an event does not have whole is not sent as if it were."""

from __future__ import annotations

from trunkline.jsontypes import Json, JsonObject
from trunkline.protocols.a2a.common.parts import shown_part
from trunkline.publishing.updates import PartialArtifacts


def piece(*parts: JsonObject) -> list[Json]:
    progress: JsonObject = {"artifact_id": "a", "parts": [shown_part(part) for part in parts]}
    artifact, _ = PartialArtifacts().add(progress)
    listed = artifact["parts"]
    assert isinstance(listed, list)
    return listed


def test_a_file_that_was_cut_is_left_out() -> None:
    short: JsonObject = {"raw": "aGk=", "mediaType": "text/plain"}
    assert piece(short, {"raw": "aGk=" * 2_000, "mediaType": "text/plain"}) == [short]
    old: JsonObject = {"kind": "file", "file": {"bytes": "aGk=" * 2_000, "mimeType": "text/plain"}}
    assert piece(old) == []
