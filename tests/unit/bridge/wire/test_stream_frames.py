from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trunkline.agents.authentication.auth_config import credentials
from trunkline.bridge.wire.stream_frames import MAX_BYTES, StreamFrameRecorder
from trunkline.telemetry.redaction import Redaction

TOKEN = "canary/secret+token"


def frames_of(*events: bytes) -> StreamFrameRecorder:
    ticks = iter(range(len(events) + 1))
    frames = StreamFrameRecorder(
        Redaction(credentials("a", "bearer", {"token": TOKEN})), lambda: next(ticks) / 1000
    )
    for event in events:
        frames.add(event)
    return frames


def test_a_short_stream_is_kept_whole_with_its_times() -> None:
    frames = frames_of(b'{"a":1}', b'{"b":2}')
    assert [(frame.at_ms, frame.data) for frame in frames.kept] == [(1, '{"a":1}'), (2, '{"b":2}')]
    assert frames.as_body() == 'data: {"a":1}\n\ndata: {"b":2}\n\n'
    assert frames.notes == []


def test_of_a_long_stream_the_beginning_and_the_end_are_kept() -> None:
    frames = frames_of(*(f"event {number:04} {'x' * 100}".encode() for number in range(2_000)))
    kept = [frame.data for frame in frames.kept]
    assert kept[0].startswith("event 0000")
    assert kept[-1].startswith("event 1999")
    assert len(kept) + frames.dropped == 2_000
    assert frames.notes == [f"Events that are not kept: {frames.dropped}, after the first 343 of the stream."]
    assert f": {frames.dropped} events are not kept\n\n" in frames.as_body()


def test_an_event_that_is_too_long_is_cut_and_said() -> None:
    frames = frames_of(b"x" * 1_000_000, b"end")
    assert len(frames.kept[0].data) < MAX_BYTES / 4
    assert frames.kept[1].data == "end"
    assert frames.notes == ["Events that are truncated or not UTF-8: 1."]


def test_an_event_of_several_lines_stays_one_event() -> None:
    assert frames_of(b"one\ntwo").as_body() == "data: one\ndata: two\n\n"


def test_a_secret_in_an_event_is_not_shown() -> None:
    assert frames_of(f"token is {TOKEN}".encode()).kept[0].data == "token is [redacted]"


@given(st.lists(st.integers(0, 30_000), max_size=40))
def test_no_stream_takes_more_than_its_share(sizes: list[int]) -> None:
    frames = frames_of(*(b"x" * size for size in sizes))
    assert sum(len(frame.data) for frame in frames.kept) <= MAX_BYTES
    assert len(frames.kept) + frames.dropped == len(sizes)


def test_a_stream_may_take_more_where_it_is_set() -> None:
    events = [b"x" * 50_000, b"y" * 70_000]
    frames = StreamFrameRecorder(Redaction(), max_bytes=300_000)
    for event in events:
        frames.add(event)
    assert [frame.data.encode() for frame in frames.kept] == events
    assert frames.notes == []
