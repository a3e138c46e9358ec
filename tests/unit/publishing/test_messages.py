"""Reading callers' messages, in every form that clients use."""

from __future__ import annotations

import pytest

from trunkline.jsontypes import Json, JsonObject
from trunkline.messages import CallerMessage
from trunkline.publishing.errors import A2AError
from trunkline.publishing.messages import MAX_PARTS, continued, history_length, message_json, read_message


def read(message: Json) -> CallerMessage:
    return read_message({"message": message}, publication="workflows/w", caller="", version="1.0").message


def parts(*listed: Json) -> list[JsonObject]:
    return read({"messageId": "m", "role": "user", "parts": list(listed)}).parts


@pytest.mark.parametrize(
    ("part", "stored"),
    [
        ({"text": "hi"}, {"text": "hi"}),
        ({"kind": "text", "text": "", "unknown": 1}, {"text": ""}),
        ({"data": None}, {"data": None}),
        ({"kind": "data", "data": {"a": 1}, "metadata": {"b": 2}}, {"data": {"a": 1}, "metadata": {"b": 2}}),
        ({"kind": "data", "data": {"value": [1]}, "metadata": {"data_part_compat": True}}, {"data": [1]}),
        (
            {"raw": "_-8", "media_type": "a/b", "filename": "f"},
            {"raw": "/+8=", "mediaType": "a/b", "filename": "f"},
        ),
        (
            {"kind": "file", "file": {"bytes": "dGNr", "mimeType": "text/plain", "name": "f"}},
            {"raw": "dGNr", "mediaType": "text/plain", "filename": "f"},
        ),
        ({"kind": "file", "file": {"uri": "https://a/b"}}, {"url": "https://a/b"}),
        ({"url": "https://a/b", "mediaType": ""}, {"url": "https://a/b"}),
    ],
)
def test_a_part_of_any_version_is_stored_in_the_form_of_1_0(part: Json, stored: JsonObject) -> None:
    assert parts(part) == [stored]


INVALID: list[object] = [
    None,
    [],
    {},
    {"messageId": "m", "role": "user"},
    {"messageId": "m", "role": "user", "parts": []},
    {"messageId": "m", "role": "agent", "parts": [{"text": "hi"}]},
    {"messageId": "", "role": "user", "parts": [{"text": "hi"}]},
    {"messageId": "m" * 1_001, "role": "user", "parts": [{"text": "hi"}]},
    {"messageId": 7, "role": "user", "parts": [{"text": "hi"}]},
    {"messageId": "m", "contextId": "c" * 256, "role": "user", "parts": [{"text": "hi"}]},
    {"messageId": "m", "role": "user", "parts": [{"text": "hi"}] * (MAX_PARTS + 1)},
    {"messageId": "m", "role": "user", "parts": ["hi"]},
    {"messageId": "m", "role": "user", "parts": [{}]},
    {"messageId": "m", "role": "user", "parts": [{"text": "hi", "url": "https://a"}]},
    {"messageId": "m", "role": "user", "parts": [{"text": 7}]},
    {"messageId": "m", "role": "user", "parts": [{"raw": "not base64!"}]},
    {"messageId": "m", "role": "user", "parts": [{"file": {"bytes": "dGNr", "uri": "https://a"}}]},
    {"messageId": "m", "role": "user", "parts": [{"file": {}}]},
    {"messageId": "m", "role": "user", "parts": [{"text": "hi", "metadata": []}]},
    {"messageId": "m", "role": "user", "parts": [{"text": "hi"}], "metadata": "no"},
    {"messageId": "m", "role": "user", "parts": [{"text": "hi"}], "extensions": ["e"] * 101},
    {"messageId": "m", "role": "user", "parts": [{"text": "hi"}], "referenceTaskIds": [1]},
]


@pytest.mark.parametrize("message", INVALID)
def test_a_message_that_cannot_be_read_is_refused_as_invalid_params(message: Json) -> None:
    with pytest.raises(A2AError) as refused:
        read(message)
    assert refused.value.kind.code == -32602


def test_names_may_be_in_snake_case() -> None:
    message = read(
        {
            "message_id": "m",
            "context_id": "c",
            "task_id": "t",
            "role": "ROLE_USER",
            "parts": [{"text": "hi"}],
            "reference_task_ids": ["r"],
        }
    )
    assert message_json(message, "t") == {
        "messageId": "m",
        "contextId": "c",
        "taskId": "t",
        "role": "ROLE_USER",
        "parts": [{"text": "hi"}],
        "referenceTaskIds": ["r"],
    }


def test_a_message_without_a_context_gets_that_of_its_task_and_may_name_no_other() -> None:
    fields: JsonObject = {"messageId": "m", "role": "user", "parts": [{"text": "hi"}]}
    assert continued(read(fields), "c").context_id == "c"
    assert continued(read(fields | {"contextId": "c"}), "c").context_id == "c"
    with pytest.raises(A2AError):
        continued(read(fields | {"contextId": "d"}), "c")


@pytest.mark.parametrize(
    ("given", "version", "length"),
    [(None, "1.0", None), (0, "1.0", 0), (0, "0.3", None), (2.0, "1.0", 2), (2, "0.3", 2)],
)
def test_the_history_length_means_what_its_version_says(
    given: Json, version: str, length: int | None
) -> None:
    assert history_length({"historyLength": given}, version) == length


@pytest.mark.parametrize("given", [-1, 1.5, "2", True])
def test_a_history_length_that_is_no_number_of_messages_is_refused(given: Json) -> None:
    with pytest.raises(A2AError):
        history_length({"history_length": given}, "1.0")
