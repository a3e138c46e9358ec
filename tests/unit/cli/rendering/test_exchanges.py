from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from tests.unit.cli.exchanges import exchange

from trunkline.cli.rendering.exchanges import exchange_lines


@pytest.fixture(autouse=True)
def utc() -> Iterator[None]:
    """The reader's time zone, for the time of a test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


def test_an_exchange_reads_like_curl() -> None:
    assert exchange_lines(exchange(notes=["Odd."], kind="poll")) == [
        "12:00:00 write attempt 2: poll (1,234 ms)",
        "> POST http://host/agent",
        "> A: b",
        ">",
        "> {",
        '>   "q": 1',
        "> }",
        "< 200",
        "< c: d",
        "<",
        "< fine",
        "# Odd.",
    ]


def test_a_stream_shows_its_events_with_their_times_and_not_its_body() -> None:
    frames = [{"at_ms": 12.4, "data": '{"a":1}'}, {"at_ms": 1500, "data": "two\nlines"}]
    lines = exchange_lines(exchange(kind="stream", frames=frames))
    assert lines[0] == "12:00:00 write attempt 2: stream (1,234 ms, 2 events)"
    assert lines[-3:] == ["<", '< +12 ms  {"a":1}', "< +1,500 ms  two lines"]
    assert "fine" not in str(lines)


def test_a_push_comes_from_the_agent() -> None:
    lines = exchange_lines(exchange(kind="push"))
    assert lines[1] == "< POST http://host/agent"
    assert "> 200" in lines


def test_an_exchange_of_an_older_server_is_shown_as_a_call() -> None:
    assert exchange_lines(exchange())[0] == "12:00:00 write attempt 2: send (1,234 ms)"


def test_a_call_without_an_answer_says_why() -> None:
    lines = exchange_lines(exchange(response=None, error="The agent did not answer."))
    assert lines[-1] == "! The agent did not answer."


def test_an_agent_cannot_steer_the_terminal() -> None:
    body = "\x1b]0;owned\x07\x1b[2J\ttab"
    frames = [{"at_ms": 1, "data": "\x1b[31m"}]
    response = {"status": 200, "headers": {"x": "\x1b[1m"}, "body": body}
    plain = exchange_lines(exchange(response=response, notes=["\x9b31m"]))
    streamed = exchange_lines(exchange(response=response, frames=frames))
    assert plain[-2] == "< \\x1b]0;owned\\x07\\x1b[2J\ttab"
    assert not [line for line in (*plain, *streamed) if not line.replace("\t", "").isprintable()]
