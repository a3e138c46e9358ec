"""Server-sent events: every line ending, every way to be cut into chunks, and what is too long."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trunkline.sse import SseEvent, SseLimitExceeded, SseParser

ENDINGS = [b"\n", b"\r\n", b"\r"]


def parser(max_line_bytes: int = 1_000, max_event_bytes: int = 1_000) -> SseParser:
    return SseParser(max_line_bytes=max_line_bytes, max_event_bytes=max_event_bytes)


def read(*chunks: bytes) -> list[SseEvent]:
    reader = parser()
    return [event for chunk in chunks for event in reader.feed(chunk)]


@pytest.mark.parametrize("ending", ENDINGS)
def test_an_event_is_what_stands_before_an_empty_line(ending: bytes) -> None:
    lines = [b"event: update", b"id: 7", b'data: {"a":1}', b"", b"data: b", b"", b""]
    assert read(ending.join(lines)) == [SseEvent(b'{"a":1}', "update", "7"), SseEvent(b"b", "message", "7")]


@pytest.mark.parametrize("ending", ENDINGS)
def test_it_does_not_matter_where_the_stream_is_cut_into_chunks(ending: bytes) -> None:
    stream = ending.join(
        [b": ping", b"event: e", b"data: one", b"data:two", b"", b"id: 1", b"data: x", b"", b""]
    )
    whole = read(stream)
    assert whole == [SseEvent(b"one\ntwo", "e", None), SseEvent(b"x", "message", "1")]
    for at in range(len(stream) + 1):
        assert read(stream[:at], stream[at:]) == whole
    assert read(*(stream[at : at + 1] for at in range(len(stream)))) == whole


def test_an_event_is_given_out_by_the_line_end_that_completes_it() -> None:
    reader = parser()
    assert reader.feed(b"data: a\r\n\r") == [SseEvent(b"a")]
    assert reader.feed(b"\n") == []
    assert reader.feed(b"data: b\r") == []
    assert reader.feed(b"\r") == [SseEvent(b"b")]


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"\xef\xbb\xbfdata: a\n\n", [SseEvent(b"a")]),
        (b"data: a\n\n\xef\xbb\xbfdata: b\n\n", [SseEvent(b"a")]),
        (b": ping\n\n:\n\n", []),
        (b": hello\n\n: ping\n\n", []),
        (b"id:7\r\ndata:a\r\ndata: b\r\n\r\n", [SseEvent(b"a\nb", id="7")]),
        (b"id: 1\ndata: a\n\nid: 2\ndata: b\n", [SseEvent(b"a", id="1")]),
        (b"data\n\n", [SseEvent(b"")]),
        (b"data:\n\n", [SseEvent(b"")]),
        (b"data:\ndata:\n\n", [SseEvent(b"\n")]),
        (b"data:  two spaces\n\n", [SseEvent(b" two spaces")]),
        (b"event: named\n\ndata: a\n\n", [SseEvent(b"a")]),
        (b"event: error\ndata: a\n\n", [SseEvent(b"a", "error")]),
        (b"id: a\0b\ndata: a\n\n", [SseEvent(b"a")]),
        (b"id: 1\n\ndata: a\n\nid\ndata: b\n\n", [SseEvent(b"a", id="1"), SseEvent(b"b", id="")]),
        (b"retry: 10\nunknown: x\ndatum: y\ndata: a\n\n", [SseEvent(b"a")]),
        (b"data: a\n\ndata: unfinished\n", [SseEvent(b"a")]),
        (b"data: a\n\ndata: cut", [SseEvent(b"a")]),
        (b"data: \xff\xfe\n\n", [SseEvent(b"\xff\xfe")]),
    ],
)
def test_what_the_standard_says_of_odd_streams(stream: bytes, events: list[SseEvent]) -> None:
    assert read(stream) == events


def test_a_byte_order_mark_may_be_cut_in_two() -> None:
    assert read(b"\xef", b"\xbb", b"\xbfdata: a\n\n") == [SseEvent(b"a")]


def test_a_line_may_be_as_long_as_the_cap_and_no_longer() -> None:
    assert parser(max_line_bytes=7).feed(b"data:ab\r\n\r\n") == [SseEvent(b"ab")]
    reader = parser(max_line_bytes=7)
    reader.feed(b"data:ab")
    with pytest.raises(SseLimitExceeded, match="a line of more than 7 bytes") as raised:
        reader.feed(b"c")
    assert (raised.value.what, raised.value.limit) == ("line", 7)


def test_an_event_may_be_as_long_as_the_cap_and_no_longer() -> None:
    assert parser(max_event_bytes=3).feed(b"data:a\ndata:b\n\n") == [SseEvent(b"a\nb")]
    with pytest.raises(SseLimitExceeded, match="an event of more than 3 bytes") as raised:
        parser(max_event_bytes=3).feed(b"data:a\ndata:bc\n")
    assert (raised.value.what, raised.value.limit) == ("event", 3)


def test_empty_data_lines_have_an_end_too() -> None:
    with pytest.raises(SseLimitExceeded):
        parser(max_event_bytes=100).feed(b"data:\n" * 102)


def test_what_came_ahead_of_an_endless_line_is_not_lost() -> None:
    reader = parser(max_line_bytes=10)
    assert reader.feed(b"data: a\n\n" + b"x" * 11) == [SseEvent(b"a")]
    for _ in range(2):
        with pytest.raises(SseLimitExceeded):
            reader.feed(b"\n\ndata: b\n\n")


def test_a_long_stream_takes_no_more_memory_than_its_longest_event() -> None:
    reader = parser(max_line_bytes=2_000, max_event_bytes=2_000)
    chunk = b": ping\r\n\r\nevent: e\r\nid: 1\r\ndata: " + b"x" * 1_000 + b"\r\n\r\n"
    reader.feed(chunk)
    tracemalloc.start()
    try:
        for _ in range(2_000):
            reader.feed(chunk)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 50_000


@settings(deadline=None, derandomize=True)
@given(
    lines=st.lists(
        st.sampled_from([b"", b"data: a", b"data", b"event: e", b"id: 1", b": c", b"\xef\xbb\xbf", b"x" * 20])
    ),
    endings=st.lists(st.sampled_from(ENDINGS), min_size=1),
    cuts=st.lists(st.integers(0, 300)),
)
def test_chunks_never_change_what_a_stream_says(
    lines: list[bytes], endings: list[bytes], cuts: list[int]
) -> None:
    stream = b"".join(line + endings[index % len(endings)] for index, line in enumerate(lines))
    edges = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    pieces = [stream[start:end] for start, end in pairwise(edges)]
    assert read(*pieces) == read(stream)


@settings(deadline=None, derandomize=True)
@given(chunks=st.lists(st.binary()))
def test_any_bytes_are_events_or_too_long(chunks: list[bytes]) -> None:
    reader = parser(max_line_bytes=16, max_event_bytes=16)
    try:
        events = [event for chunk in chunks for event in reader.feed(chunk)]
    except SseLimitExceeded:
        return
    assert all(len(event.data) <= 16 for event in events)
