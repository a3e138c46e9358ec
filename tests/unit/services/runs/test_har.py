from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.har_schema import check_har

from trunkline.bridge.wire.exchanges import ExchangeKind, SentRequest, encode_exchange, record_exchange
from trunkline.bridge.wire.stream_frames import StreamFrameRecorder
from trunkline.clock import Instant
from trunkline.jsontypes import JsonObject, decode, encode
from trunkline.protocols.base import AgentAnswer, AnswerTiming
from trunkline.services.runs.har import to_har
from trunkline.services.runs.stored_exchanges import StoredExchange, convert_exchange, decode_exchange
from trunkline.telemetry.redaction import Redaction
from trunkline.testing import objects_in

JSON = {"content-type": "application/json"}


def recorded(
    *,
    answer: AgentAnswer | None = None,
    frames: StreamFrameRecorder | None = None,
    kind: ExchangeKind = "send",
    at: int = 0,
    duration_ms: float = 12.5,
    body: bytes = b'{"a":1}',
    error: str | None = None,
    notes: tuple[str, ...] = (),
    url: str = "http://host/agent?x=1&y=",
) -> StoredExchange:
    exchange = record_exchange(
        Redaction(),
        SentRequest("POST" if body else "GET", url, {"Content-Type": "application/json"}, body),
        answer,
        step="write",
        attempt=2,
        started_at=Instant(1_750_000_000_123_456 + at),
        duration_ms=duration_ms,
        error=error,
        notes=notes,
        kind=kind,
        frames=frames,
    )
    return decode_exchange(encode_exchange(exchange))


def entries_of(archive: JsonObject) -> list[JsonObject]:
    check_har(archive)
    log = archive["log"]
    assert isinstance(log, dict)
    return objects_in(log["entries"])


def test_an_exchange_is_a_valid_entry() -> None:
    answer = AgentAnswer(200, {**JSON, "x-other": "1"}, "ü".encode())
    (entry,) = entries_of(to_har([recorded(answer=answer, notes=("Odd.", "Very odd."))]))
    assert entry["_step"] == "write"
    assert entry["_attempt"] == 2
    assert entry["pageref"] == "write/2"
    assert entry["comment"] == "Odd.\nVery odd."
    request, response = entry["request"], entry["response"]
    assert isinstance(request, dict)
    assert isinstance(response, dict)
    assert request["queryString"] == [{"name": "x", "value": "1"}, {"name": "y", "value": ""}]
    assert request["postData"] == {"mimeType": "application/json", "text": '{"a":1}'}
    assert response["content"] == {"size": 2, "mimeType": "application/json", "text": "ü"}
    assert response["statusText"] == "OK"


@pytest.mark.parametrize(
    ("timing", "expected"),
    [
        (None, {"send": 0, "wait": 12.5, "receive": 0}),
        (AnswerTiming(2, 10), {"send": 0, "connect": 2, "wait": 8, "receive": 2.5}),
        # Two clocks were read: the whole is never shorter than its parts.
        (AnswerTiming(13, 14), {"send": 0, "connect": 12.5, "wait": 0, "receive": 0}),
    ],
)
def test_the_duration_is_shown_in_parts_if_they_are_known(
    timing: AnswerTiming | None, expected: JsonObject
) -> None:
    answer = AgentAnswer(200, JSON, b"{}", timing)
    (entry,) = entries_of(to_har([recorded(answer=answer)]))
    assert entry["timings"] == expected


def test_a_stream_has_its_events_and_the_time_until_the_first() -> None:
    ticks = iter([0.0, 0.004, 0.010])
    frames = StreamFrameRecorder(Redaction(), lambda: next(ticks))
    frames.add(b"one")
    frames.add(b"two")
    answer = AgentAnswer(200, {"content-type": "text/event-stream"}, b"")
    (entry,) = entries_of(to_har([recorded(answer=answer, frames=frames, kind="stream")]))
    assert entry["_kind"] == "stream"
    assert entry["_frames"] == [{"at_ms": 4, "data": "one"}, {"at_ms": 10, "data": "two"}]
    assert entry["timings"] == {"send": 0, "wait": 4, "receive": 8.5}
    response = entry["response"]
    assert isinstance(response, dict)
    assert response["content"] == {
        "size": 22,
        "mimeType": "text/event-stream",
        "text": "data: one\n\ndata: two\n\n",
    }


def test_a_call_without_an_answer_says_why() -> None:
    (entry,) = entries_of(to_har([recorded(error="The agent closed the connection without an answer.")]))
    response = entry["response"]
    assert isinstance(response, dict)
    assert (response["status"], response["statusText"], response["bodySize"]) == (0, "", -1)
    assert entry["_error"] == "The agent closed the connection without an answer."


def test_entries_are_in_the_order_of_their_beginnings_and_pages_are_attempts() -> None:
    archive = to_har([recorded(at=2), recorded(at=1, kind="card", body=b"")], next_cursor="7")
    assert [entry["_kind"] for entry in entries_of(archive)] == ["card", "send"]
    log = archive["log"]
    assert isinstance(log, dict)
    (page,) = objects_in(log["pages"])
    assert page["title"] == "write, attempt 2"
    assert page["startedDateTime"] == "2025-06-15T15:06:40.123457Z"
    assert log["_next_cursor"] == "7"


def test_nothing_is_an_archive_too() -> None:
    assert entries_of(to_har([])) == []


def test_an_address_with_a_secret_taken_out_stays_an_address() -> None:
    (entry,) = entries_of(to_har([recorded(url="http://host/hooks/a2a/[redacted]")]))
    request = entry["request"]
    assert isinstance(request, dict)
    assert request["url"] == "http://host/hooks/a2a/%5Bredacted%5D"


def test_what_the_rest_interface_gives_becomes_the_same_archive() -> None:
    exchange = recorded(answer=AgentAnswer(299, JSON, b"{}"))
    assert to_har([convert_exchange(decode(encode(exchange)))]) == to_har([exchange])


@pytest.mark.parametrize("status", [100, 299, 599, 999])
def test_whatever_status_an_agent_invents(status: int) -> None:
    entries_of(to_har([recorded(answer=AgentAnswer(status, {}, b""))]))


@given(st.binary(max_size=200), st.dictionaries(st.text(), st.text()), st.lists(st.binary(max_size=50)))
def test_whatever_an_agent_answers_the_archive_is_valid(
    body: bytes, headers: dict[str, str], events: list[bytes]
) -> None:
    frames = StreamFrameRecorder(Redaction())
    for event in events:
        frames.add(event)
    answer = AgentAnswer(200, headers, body)
    entries_of(to_har([recorded(answer=answer), recorded(answer=answer, frames=frames, kind="stream")]))
