"""Outputs as artifacts of 1.0, and all of that in the form of 0.3."""

from __future__ import annotations

import pytest

from trunkline.jsontypes import Json, JsonObject
from trunkline.publishing.artifacts import artifacts_of, named_artifacts
from trunkline.publishing.bindings.v03 import artifact_v03, event_v03, task_v03


def parts(output: Json) -> list[Json]:
    return [artifact["parts"] for artifact in artifacts_of(output)]


FILE: Json = {"kind": "file", "file": {"bytes": "dGNr", "name": "f"}, "metadata": {"a": 1}}
OUTPUTS: list[tuple[Json, list[Json]]] = [
    (None, []),
    ("hi", [[{"text": "hi"}]]),
    ({"text": "hi", "data": 1}, [[{"data": {"text": "hi", "data": 1}}]]),
    ([1], [[{"data": [1]}]]),
    (False, [[{"data": False}]]),
    ({"artifacts": [{"artifactId": "a", "parts": [{"kind": "text", "text": "hi"}]}]}, [[{"text": "hi"}]]),
    ({"artifacts": [{"parts": []}, "none", {"parts": [{"kind": "data"}]}]}, []),
    ({"artifacts": [{"parts": [FILE]}]}, [[{"raw": "dGNr", "filename": "f", "metadata": {"a": 1}}]]),
    (
        {"artifacts": [{"parts": [{"url": "https://a", "mediaType": "a/b"}]}]},
        [[{"url": "https://a", "mediaType": "a/b"}]],
    ),
]


@pytest.mark.parametrize(("output", "expected"), OUTPUTS)
def test_an_output_becomes_artifacts(output: Json, expected: list[Json]) -> None:
    assert parts(output) == expected


def test_artifacts_keep_their_ids_and_names() -> None:
    listed: Json = [
        {"artifactId": "a", "name": "n", "parts": [{"text": "x"}], "index": 0},
        {"parts": [{"text": "y"}], "description": "d"},
    ]
    assert artifacts_of({"artifacts": listed}) == [
        {"artifactId": "a", "name": "n", "parts": [{"text": "x"}]},
        {"artifactId": "output-2", "description": "d", "parts": [{"text": "y"}]},
    ]


WRITTEN: list[tuple[JsonObject, JsonObject]] = [
    (
        {"text": "x", "mediaType": "text/markdown"},
        {"kind": "text", "text": "x", "metadata": {"mediaType": "text/markdown"}},
    ),
    ({"data": {"a": 1}}, {"kind": "data", "data": {"a": 1}}),
    ({"data": [1]}, {"kind": "data", "data": {"value": [1]}, "metadata": {"data_part_compat": True}}),
    (
        {"raw": "dGNr", "mediaType": "a/b", "filename": "f"},
        {"kind": "file", "file": {"bytes": "dGNr", "mimeType": "a/b", "name": "f"}},
    ),
    (
        {"url": "https://a", "metadata": {"b": 1}},
        {"kind": "file", "file": {"uri": "https://a"}, "metadata": {"b": 1}},
    ),
]


@pytest.mark.parametrize(("part", "old"), WRITTEN)
def test_a_part_is_written_in_the_form_of_0_3(part: JsonObject, old: JsonObject) -> None:
    assert artifact_v03({"artifactId": "a", "parts": [part]}) == {"artifactId": "a", "parts": [old]}


def test_tasks_and_updates_are_written_in_the_form_of_0_3() -> None:
    asked: JsonObject = {"role": "ROLE_AGENT", "messageId": "m", "parts": [{"text": "Which?"}]}
    status: JsonObject = {"state": "TASK_STATE_INPUT_REQUIRED", "timestamp": "t", "message": asked}
    old: JsonObject = {
        "state": "input-required",
        "timestamp": "t",
        "message": {
            "kind": "message",
            "role": "agent",
            "messageId": "m",
            "parts": [{"kind": "text", "text": "Which?"}],
        },
    }
    assert task_v03({"id": "1", "contextId": "c", "status": status}) == {
        "kind": "task",
        "id": "1",
        "contextId": "c",
        "status": old,
    }
    update: JsonObject = {"taskId": "1", "contextId": "c", "status": status}
    written = event_v03({"statusUpdate": update}, True)
    assert written == {**update, "kind": "status-update", "status": old, "final": True}
    piece: JsonObject = {"taskId": "1", "artifact": {"artifactId": "a", "parts": []}, "append": True}
    assert event_v03({"artifactUpdate": piece}, False) == piece | {"kind": "artifact-update"}


def test_named_artifacts_are_made_of_values_of_any_kind() -> None:
    values: JsonObject = {
        "gone": None,
        "text": "hi",
        "part": {"parts": [{"text": "x"}]},
        "step": {"text": "t", "artifacts": [{"parts": [FILE]}, {"parts": [{"data": 1}]}]},
        "data": [1],
    }
    assert [(each["artifactId"], each["parts"]) for each in named_artifacts(values)] == [
        ("text", [{"text": "hi"}]),
        ("part", [{"text": "x"}]),
        ("step", [FILE, {"data": 1}]),
        ("data", [{"data": [1]}]),
    ]
