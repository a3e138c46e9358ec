from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trunkline.cli.sse import ServerEvent, read_events


def test_an_event_is_what_stands_before_an_empty_line() -> None:
    lines = [b"id: 1\n", b"event: RunStarted\n", b'data: {"seq":1}\n', b"\n"]
    assert list(read_events(lines)) == [ServerEvent("1", '{"seq":1}')]


def test_comments_are_no_events() -> None:
    assert list(read_events([b": hello\n", b"\n", b": ping\n", b"\n"])) == []


def test_carriage_returns_and_missing_spaces_are_taken() -> None:
    assert list(read_events([b"id:7\r\n", b"data:a\r\n", b"data: b\r\n", b"\r\n"])) == [
        ServerEvent("7", "a\nb")
    ]


def test_what_a_cut_leaves_unfinished_is_dropped() -> None:
    assert list(read_events([b"id: 1\n", b"data: a\n", b"\n", b"id: 2\n", b"data: b\n"])) == [
        ServerEvent("1", "a")
    ]


@given(st.lists(st.binary(max_size=20)))
def test_no_line_is_too_strange(lines: list[bytes]) -> None:
    for event in read_events(lines):
        assert isinstance(event.data, str)
