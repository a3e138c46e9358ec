"""Event sources: how a record becomes an event, and what is wrong with a source in the settings."""

from __future__ import annotations

from typing import Any

import pytest

from trunkline.errors import ConfigurationError
from trunkline.jsontypes import encode
from trunkline.messages import BrokerRecord
from trunkline.messages.codec import UnreadableMessage
from trunkline.services.events.sources import MAX_SOURCES, EventSource, event_sources

ORDER = {"id": 7, "kind": "paid", "amount": 10, "note": {"text": "thanks"}}


def source(**fields: Any) -> EventSource:
    given = {"topic": "orders", "type": "order.paid", **fields}
    (found,) = event_sources([given], servers="kafka:9092", own_topics=["trunkline.tasks"])
    return found


def record(
    value: object = ORDER, key: bytes | None = b"k", headers: tuple[tuple[str, bytes], ...] = ()
) -> BrokerRecord:
    content = value if isinstance(value, bytes | None) else encode(value)
    return BrokerRecord(topic="orders", partition=3, offset=42, key=key, value=content, headers=headers)


def error(*given: dict[str, Any], servers: str | None = "kafka:9092") -> str:
    with pytest.raises(ConfigurationError) as raised:
        event_sources(given, servers=servers, own_topics=["trunkline.tasks"])
    return raised.value.message


def test_a_record_is_an_event_with_its_own_key_and_value_unless_the_source_says_otherwise() -> None:
    event = source().read(record())
    assert event is not None
    assert (event.type, event.key, event.id, event.source, event.data) == (
        "order.paid", "k", "orders:3:42", "kafka/orders", encode(ORDER),
    )  # fmt: skip


def test_expressions_make_type_key_id_and_data() -> None:
    mapped = source(
        type="order.${ record.value.kind }",
        key="record.value.id",
        id="${ record.headers.trace }-${ record.partition }",
        data="{'amount': record.value.amount}",
    )
    event = mapped.read(record(headers=(("trace", b"old"), ("trace", b"t1"), ("binary", b"\xff"))))
    assert event is not None
    assert (event.type, event.key, event.id, event.data) == ("order.paid", "7", "t1-3", b'{"amount":10}')


def test_a_filter_leaves_records_out() -> None:
    filtered = source(filter="record.value != null && record.value.amount > 5")
    assert filtered.read(record()) is not None
    assert filtered.read(record({"amount": 5})) is None
    assert filtered.read(record(None)) is None


def test_text_needs_no_json() -> None:
    event = source(format="text", key="record.value").read(record(b"hello"))
    assert event is not None
    assert (event.key, event.data) == ("hello", b'"hello"')


def test_a_key_that_is_not_text_is_no_key() -> None:
    event = source().read(record(key=b"\xff\x00"))
    assert event is not None
    assert event.key is None


@pytest.mark.parametrize(
    ("fields", "given", "category", "words"),
    [
        ({}, record(b"{"), "malformed", "not valid JSON"),
        ({"format": "text"}, record(b"\xff"), "malformed", "not valid UTF-8 text"),
        ({}, record(b"[" * 300 + b"]" * 300), "malformed", "nested too deeply"),
        ({}, record(b"[" + b"[]," * 100_001 + b"[]]"), "malformed", "too many objects"),
        ({"max_bytes": 10}, record(), "too_large", "the source accepts 10 (max_bytes)"),
        (
            {"type": "${ record.value.missing }"},
            record(),
            "unmapped",
            "'type' of the source cannot be evaluated",
        ),
        ({"filter": "record.value.missing > 1"}, record(), "unmapped", "'filter' of the source cannot be"),
        ({"type": "${ record.value.note }"}, record(), "unmapped", "'type' of the source is not text"),
        ({"type": "${ record.value }", "format": "text"}, record(b"a\nb"), "unmapped", "control characters"),
        ({"key": "record.value.note"}, record(), "unmapped", "neither text nor a whole number"),
        ({}, record("x" * 300_000), "unmapped", "the limit is 262144"),
    ],
)
def test_a_record_that_does_not_fit_is_unreadable(
    fields: dict[str, Any], given: BrokerRecord, category: str, words: str
) -> None:
    with pytest.raises(UnreadableMessage) as raised:
        source(**fields).read(given)
    assert raised.value.category == category
    assert words in raised.value.reason


def test_every_mistake_of_the_setting_is_named_with_its_place() -> None:
    said = error(
        {"type": "a", "topics": "orders"},
        {"topic": "orders", "type": "${ record. }", "key": "event.data", "max_bytes": 0},
        {"topic": "orders", "type": "b"},
        {"topic": "orders", "type": "c"},
        {"topic": "trunkline.tasks", "type": "d"},
        {"topic": "x", "type": "e", "servers": "kafka"},
    )
    for words in (
        "sources[0]: 'topic' is missing",
        "sources[0].topics: unknown key 'topics'; did you mean 'topic'?",
        "sources[1].type: ",
        "sources[1].key: ",
        "sources[1].max_bytes: 'max_bytes' must be a whole number from 1",
        "sources[3].topic: 'orders' has two sources",
        "sources[4].topic: 'trunkline.tasks' is a topic of Trunkline itself",
        "sources[5].servers: 'servers' must be kafka://host:port",
    ):
        assert words in said


def test_a_source_without_a_kafka_names_the_missing_address() -> None:
    assert "the broker is memory://" in error({"topic": "orders", "type": "a"}, servers=None)
    (own,) = event_sources(
        [{"topic": "orders", "type": "a", "servers": "kafka://one:9092,two:9092"}],
        servers=None,
        own_topics=[],
    )
    assert own.servers == "one:9092,two:9092"


def test_the_number_of_sources_is_limited() -> None:
    many = [{"topic": f"t{number}", "type": "a"} for number in range(MAX_SOURCES + 1)]
    assert "the limit is 32" in error(*many)
