"""Cards as agents publish them, and as somebody might who means harm."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.agents.cards import (
    MAX_CARD_BYTES,
    MAX_DETAILS_BYTES,
    MAX_INTERFACES,
    MAX_SKILLS,
    AgentCard,
    AgentInterface,
    BrokenCard,
    CardDetails,
    NotACard,
    read_card,
)
from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.publish_options import SkillOptions

BOM = b"\xef\xbb\xbf"
CARD: JsonObject = {"name": "A", "url": "http://a/", "protocolVersion": "0.3.0"}
URL = st.sampled_from(["http://a/", "//b", "http://u:p@c/", "", "\x1b[2J", "javascript:x", "http://[::1"])
WORDS = st.one_of(
    URL, st.sampled_from(["JSONRPC", "HTTP+JSON", "GRPC", "1.0", "0.3", "9"]), st.text(max_size=5)
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | WORDS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["url", "transport", "protocolBinding", "protocolVersion", "tenant", "streaming"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
FIELDS = [
    "name",
    "url",
    "protocolVersion",
    "preferredTransport",
    "additionalInterfaces",
    "capabilities",
    "supportedInterfaces",
    "supported_interfaces",
    "skills",
]
CARDS = st.dictionaries(st.sampled_from(FIELDS), VALUES)


def test_a_card_of_0_3_has_one_main_address_and_additional_ones() -> None:
    card = CARD | {"additionalInterfaces": [{"url": "http://a/g", "transport": "grpc"}, {"url": "x"}, 5]}
    assert read_card(encode(card)).interfaces == (
        AgentInterface(url="http://a/", transport="JSONRPC", protocol_version="0.3.0"),
        AgentInterface(url="http://a/g", transport="GRPC", protocol_version="0.3.0"),
    )


@pytest.mark.parametrize(
    "names",
    [
        ("supportedInterfaces", "protocolBinding", "protocolVersion"),
        ("supported_interfaces", "protocol_binding", "protocol_version"),
    ],
)
def test_a_card_of_1_0_names_every_address_with_its_binding(names: tuple[str, str, str]) -> None:
    interfaces, binding, version = names
    item: JsonObject = {"url": "http://a/1", binding: "jsonrpc", version: "1.0", "tenant": "t"}
    assert read_card(encode({"name": "A", interfaces: [item, {"url": "http://a/2"}]})).interfaces == (
        AgentInterface(url="http://a/1", transport="JSONRPC", protocol_version="1.0", tenant="t"),
    )


@pytest.mark.parametrize(
    ("written", "transport"),
    [("JSON-RPC", "JSONRPC"), ("json_rpc", "JSONRPC"), ("rest", "HTTP+JSON"), ("http+json", "HTTP+JSON")],
)
def test_a_transport_has_several_spellings(written: str, transport: str) -> None:
    (interface,) = read_card(encode(CARD | {"preferredTransport": written})).interfaces
    assert interface.transport == transport


def test_a_byte_order_mark_is_no_part_of_a_card() -> None:
    assert read_card(BOM + encode(CARD)) == read_card(encode(CARD))


def test_a_card_that_is_too_long_is_not_read() -> None:
    with pytest.raises(BrokenCard, match="the limit is 1,048,576"):
        read_card(encode(CARD | {"description": "x" * MAX_CARD_BYTES}))


def test_a_card_that_is_too_deep_is_not_read() -> None:
    with pytest.raises(BrokenCard, match="not JSON"):
        read_card(b'{"name": ' + b"[" * 200_000)


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"5", b"\xff\xfe", b"{}", b'{"url": "http://a/"}'])
def test_what_is_no_card_is_none(body: bytes) -> None:
    with pytest.raises(NotACard):
        read_card(body)


@pytest.mark.parametrize(
    "wrong",
    [5, [], {}, True, "", "x" * 3_000, "http://a/\n\x1b[31m", None],
    ids=lambda wrong: repr(wrong)[:20],
)
def test_an_address_that_makes_no_sense_counts_as_not_said(wrong: Json) -> None:
    (interface,) = read_card(encode(CARD | {"url": wrong})).interfaces
    assert interface.url is None


def test_words_that_are_none_are_not_shown_to_anybody() -> None:
    card = read_card(encode(CARD | {"protocolVersion": "\x1b]0;pwned\x07", "preferredTransport": "a b<c>"}))
    assert card.interfaces == (AgentInterface(url="http://a/", transport="JSONRPC", protocol_version=None),)


def test_no_more_addresses_are_read_than_make_sense() -> None:
    item: JsonObject = {"url": "http://a/", "protocolBinding": "GRPC"}
    card = read_card(encode({"name": "A", "supportedInterfaces": [item] * 1_000}))
    assert len(card.interfaces) == MAX_INTERFACES


@given(CARDS)
def test_whatever_a_card_holds_it_is_read_or_refused(card: JsonObject) -> None:
    with suppress(NotACard):
        assert isinstance(read_card(encode(card)), AgentCard)


@given(st.binary(max_size=200))
def test_whatever_the_bytes_are_they_are_read_or_refused(body: bytes) -> None:
    for text in (body, b"{" + body):
        with suppress(NotACard, BrokenCard):
            assert isinstance(read_card(text), AgentCard)


def test_the_skills_of_a_card_are_its_ids_without_what_is_none() -> None:
    skills: Json = [
        {"id": "translate"},
        {"id": "translate"},
        {"name": "no id"},
        {"id": 7},
        "x",
        {"id": "y" * 101},
    ]
    card = read_card(encode({"name": "A", "url": "https://a.example", "skills": skills}))
    assert card.skills == ("translate",)


def test_a_card_with_many_skills_is_read_up_to_a_limit() -> None:
    skills: Json = [{"id": f"s{number}"} for number in range(MAX_SKILLS + 50)]
    assert (
        len(read_card(encode({"name": "A", "url": "https://a.example", "skills": skills})).skills)
        == MAX_SKILLS
    )


def test_what_a_card_says_for_other_readers_is_kept() -> None:
    skill: JsonObject = {
        "id": "s",
        "name": "S",
        "description": "Does\ns.",
        "tags": ["t", 5, ""],
        "examples": ["e"],
    }
    card = CARD | {
        "description": "About.",
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["a/b", "\x1b"],
        "skills": [skill, {"id": "bare"}, {"name": "no id"}, skill],
    }
    assert read_card(encode(card)).details == CardDetails(
        description="About.",
        input_modes=("text/plain",),
        output_modes=("a/b",),
        skills=(
            SkillOptions(id="s", name="S", description="Does\ns.", tags=("t",), examples=("e",)),
            SkillOptions(id="bare", name="bare", description="bare"),
        ),
    )


def test_only_so_much_of_a_card_is_kept() -> None:
    skills: list[Json] = [{"id": str(n), "description": "d" * 2_000} for n in range(50)]
    details = read_card(encode(CARD | {"description": "\x1b[2J", "skills": skills})).details
    assert details.description is None
    assert 0 < len(encode(details)) <= MAX_DETAILS_BYTES
    assert [skill.id for skill in details.skills] == ["0", "1", "2", "3", "4", "5", "6", "7"][
        : len(details.skills)
    ]
