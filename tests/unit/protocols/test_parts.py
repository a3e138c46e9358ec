"""The parts that a workflow spells out, whichever form it uses."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trunkline.jsontypes import Json
from trunkline.protocols import ProtocolTranslationError
from trunkline.protocols.parts import (
    DataPart,
    FilePart,
    MessagePart,
    TextPart,
    fields_other_than_parts,
    parts_in,
    read_parts,
)


@pytest.mark.parametrize(
    ("part", "meant"),
    [
        ({"text": "hello"}, TextPart(text="hello")),
        ("hello", TextPart(text="hello")),
        ({"kind": "text", "text": ""}, TextPart(text="")),
        ({"type": "text", "text": "old"}, TextPart(text="old")),
        ({"text": "# A", "mediaType": "text/markdown"}, TextPart(text="# A", media_type="text/markdown")),
        ({"data": {"a": 1}}, DataPart(data={"a": 1})),
        ({"data": [1, 2]}, DataPart(data=[1, 2])),
        ({"data": None}, DataPart(data=None)),
        (
            {"kind": "data", "data": {"id": "1"}, "metadata": {"adk_type": "function_response"}},
            DataPart(data={"id": "1"}, metadata={"adk_type": "function_response"}),
        ),
        (
            {"raw": "aGk=", "mediaType": "text/plain", "filename": "hi.txt"},
            FilePart(raw="aGk=", media_type="text/plain", name="hi.txt"),
        ),
        ({"bytes": "aGk", "name": "hi"}, FilePart(raw="aGk=", name="hi")),
        ({"raw": "_-8="}, FilePart(raw="/+8=")),
        ({"raw": ""}, FilePart(raw="")),
        ({"url": "https://x.example/a.png"}, FilePart(url="https://x.example/a.png")),
        (
            {"uri": "https://x.example/a", "mime_type": "image/png"},
            FilePart(url="https://x.example/a", media_type="image/png"),
        ),
        (
            {"kind": "file", "file": {"bytes": "aGk=", "mimeType": "text/plain", "name": "hi.txt"}},
            FilePart(raw="aGk=", media_type="text/plain", name="hi.txt"),
        ),
        ({"kind": "file", "file": {"uri": "https://x.example/a"}}, FilePart(url="https://x.example/a")),
        ({"kind": "file", "url": "https://x.example/a", "text": None}, FilePart(url="https://x.example/a")),
    ],
)
def test_every_form_of_a_part_is_understood(part: Json, meant: MessagePart) -> None:
    assert read_parts([part], "a-dialect") == [meant]


@pytest.mark.parametrize(
    ("part", "complaint"),
    [
        (7, "parts[1] is a number, not an object"),
        (None, "parts[1] is null, not an object"),
        ({}, "parts[1] has none of text, data, raw and url: a part has exactly one content"),
        ({"text": "a", "data": 1}, "parts[1] has text and data: a part has exactly one content"),
        ({"text": 5}, "parts[1] has a text that is a number, not a string"),
        ({"kind": "file", "text": "a"}, "parts[1] is called file, but has text"),
        ({"kind": "image", "text": "a"}, "parts[1] has a kind that is none of text, data and file"),
        ({"raw": "a!"}, "parts[1] has bytes that are not base64 "),
        ({"raw": "aGk=é"}, "parts[1] has bytes that are not base64 "),
        ({"raw": 5}, "parts[1] has a raw that is a number, not a string"),
        ({"text": "a", "medaType": "x"}, "parts[1] has a field 'medaType' that parts do not support"),
        ({"text": "a", "metadata": 1}, "parts[1] has metadata that is a number, not an object"),
        ({"file": "x"}, "parts[1] has a file that is a string, not an object"),
        ({"file": {}}, "parts[1] must have either the file's bytes or its url"),
        ({"file": {"bytes": "aGk=", "uri": "x"}}, "parts[1] must have either the file's bytes or its url"),
        ({"file": {"path": "x"}}, "parts[1].file has a field 'path' that parts do not support"),
    ],
)
def test_a_part_that_cannot_be_sent_is_named(part: Json, complaint: str) -> None:
    with pytest.raises(ProtocolTranslationError) as raised:
        read_parts([{"text": "fine"}, part], "a-dialect")
    assert str(raised.value).startswith(complaint)
    assert raised.value.code == "request_not_encodable"
    assert (raised.value.protocol, raised.value.direction) == ("a-dialect", "request")
    assert raised.value.fix


def test_a_message_without_parts_is_refused() -> None:
    with pytest.raises(ProtocolTranslationError, match="at least one part"):
        read_parts([], "a-dialect")


@pytest.mark.parametrize("data", [None, "parts", [], {}, {"parts": None}, {"parts": "x"}, {"part": []}])
def test_an_input_without_a_list_of_parts_spells_none_out(data: Json) -> None:
    assert parts_in(data) is None


def test_fields_next_to_the_parts_are_kept() -> None:
    data: Json = {"parts": ["a"], "lang": "en"}
    assert parts_in(data) == ["a"]
    assert fields_other_than_parts(data) == {"lang": "en"}
    assert fields_other_than_parts("x") == {}


WORDS = st.sampled_from(
    ["text", "data", "raw", "bytes", "url", "uri", "file", "kind", "mediaType", "name", "metadata", "aGk="]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=10,
)


@settings(deadline=None, derandomize=True)
@given(listed=st.lists(VALUES, max_size=4))
def test_whatever_stands_in_parts_is_read_or_refused(listed: list[Json]) -> None:
    assert outcome_of(listed) in (f"{len(listed)} parts", "refused")


def outcome_of(listed: list[Json]) -> str:
    try:
        return f"{len(read_parts(listed, 'a-dialect'))} parts"
    except ProtocolTranslationError as exc:
        return "refused" if str(exc).startswith("parts") else str(exc)
