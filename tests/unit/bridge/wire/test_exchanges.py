from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.agents.authentication.auth_config import credentials
from trunkline.bridge.wire.exchanges import (
    MAX_BODY_BYTES,
    RecordedExchange,
    SentRequest,
    encode_exchange,
    record_exchange,
    to_curl,
)
from trunkline.bridge.wire.stream_frames import StreamFrameRecorder
from trunkline.clock import Instant
from trunkline.protocols.base import AgentAnswer
from trunkline.telemetry.redaction import Redaction

TOKEN = "canary/secret+token"
BEARER = credentials("My Agent", "bearer", {"token": TOKEN})


def exchange(
    *,
    redaction: Redaction | None = None,
    url: str = "http://host/agent",
    headers: Mapping[str, str] | None = None,
    body: bytes = b"{}",
    answer: AgentAnswer | None = None,
    error: str | None = None,
) -> RecordedExchange:
    return record_exchange(
        redaction or Redaction(BEARER),
        SentRequest("POST", url, {**BEARER.headers, **(headers or {})}, body),
        answer,
        step="write",
        attempt=2,
        started_at=Instant(1_750_000_000_123_456),
        duration_ms=12.5,
        error=error,
    )


def test_a_record_has_the_published_shape_and_survives_storage() -> None:
    made = exchange(answer=AgentAnswer(200, {"content-type": "application/json"}, b'{"ok":true}'))
    assert made.started_at == "2025-06-15T15:06:40.123456Z"
    assert made.request.body == "{}"
    assert made.response is not None
    assert (made.response.status, made.response.body) == (200, '{"ok":true}')
    assert msgspec.json.decode(encode_exchange(made), type=RecordedExchange) == made
    assert (made.step, made.attempt, made.duration_ms, made.error, made.notes) == ("write", 2, 12.5, None, [])


def test_our_credentials_appear_as_variables() -> None:
    assert exchange().request.headers["Authorization"] == "Bearer $TRUNKLINE_SECRET_MY_AGENT"


def test_a_key_in_the_query_appears_as_a_variable() -> None:
    key = credentials("a", "api_key", {"name": "key", "value": TOKEN, "in": "query"})
    made = exchange(redaction=Redaction(key), url=key.add_to("http://host/agent?x=1"))
    assert made.request.url == "http://host/agent?x=1&key=$TRUNKLINE_SECRET_A"


@pytest.mark.parametrize("form", [TOKEN, TOKEN.replace("/", "\\/"), "canary%2Fsecret%2Btoken"])
def test_a_secret_that_the_agent_repeats_is_taken_out_wherever_it_stands(form: str) -> None:
    answer = AgentAnswer(401, {"x-echo": f"got {form}", "x-other": "fine"}, f'{{"token":"{form}"}}'.encode())
    made = exchange(url=f"http://host/{form}", body=form.encode(), answer=answer, error=f"no: {form}")
    assert b"canary" not in encode_exchange(made)
    assert b"[redacted]" in encode_exchange(made)
    assert made.response is not None
    assert made.response.headers["x-other"] == "fine"


@pytest.mark.parametrize("name", ["Set-Cookie", "Cookie", "X-API-Key", "x-auth-token", "Proxy-Authorization"])
def test_headers_that_usually_hold_a_secret_are_not_shown(name: str) -> None:
    made = exchange(headers={name: "unknown to us"}, answer=AgentAnswer(200, {name.lower(): "theirs"}, b""))
    assert made.request.headers[name] == "[redacted]"
    assert made.response is not None
    assert made.response.headers[name.lower()] == "[redacted]"


def test_other_data_cannot_name_a_variable() -> None:
    made = exchange(headers={"X-Correlation-ID": "$TRUNKLINE_SECRET_OTHER"})
    assert made.request.headers["X-Correlation-ID"] == "[redacted]"
    assert "SECRET_OTHER" not in to_curl(made)


def test_a_long_body_is_cut_and_says_so() -> None:
    made = exchange(answer=AgentAnswer(200, {}, b"x" * 1_000_000))
    assert made.response is not None
    assert MAX_BODY_BYTES - 100 < len(made.response.body) <= MAX_BODY_BYTES
    (note,) = made.notes
    assert note == (
        "The response body is cut: it has 1,000,000 bytes, and 65,536 are kept. "
        "The limit is the setting max_wire_bytes."
    )


def test_a_request_says_in_fields_what_its_record_does_not_show() -> None:
    cut = exchange(body=b"x" * 1_000_000)
    assert (cut.request.body_cut, cut.request.body_notes) == (True, cut.notes)
    odd = exchange(body=b"caf\xe9")
    assert (odd.request.body_cut, odd.request.body_notes) == (msgspec.UNSET, odd.notes)
    whole = exchange(body=b"{}")
    assert msgspec.to_builtins(whole.request).keys() == {"method", "url", "headers", "body"}


def test_a_record_of_an_earlier_version_has_only_notes() -> None:
    made = exchange(body=b"x" * 1_000_000)
    old = {**msgspec.to_builtins(made), "request": {**msgspec.to_builtins(exchange(body=b"x").request)}}
    assert to_curl(old) == to_curl(made)


@pytest.mark.parametrize("letters", ["é", "€", "🙂"])
def test_a_cut_through_a_letter_is_not_bad_utf8(letters: str) -> None:
    for shift in range(4):
        made = exchange(body=b"x" * shift + letters.encode() * 100_000)
        assert "\N{REPLACEMENT CHARACTER}" not in made.request.body
        assert len(made.request.body.encode()) <= MAX_BODY_BYTES
        assert len(made.notes) == 1


def test_bytes_that_are_not_utf8_are_replaced_and_said() -> None:
    made = exchange(answer=AgentAnswer(200, {}, b"caf\xe9"))
    assert made.response is not None
    assert made.response.body == "caf\N{REPLACEMENT CHARACTER}"
    assert "not valid UTF-8" in made.notes[0]


@given(st.integers(-40, 40), st.integers(0, 30))
def test_no_part_of_a_secret_is_left_at_the_cut(offset: int, repetitions: int) -> None:
    secret = TOKEN.encode()
    body = secret * repetitions
    body += b"." * (MAX_BODY_BYTES + offset - len(body)) + secret * 3
    assert "canary" not in exchange(body=body).request.body


def test_a_stream_keeps_its_events_and_they_are_its_body() -> None:
    frames = StreamFrameRecorder(Redaction(BEARER))
    frames.add(b'{"a":1}')
    made = record_exchange(
        Redaction(BEARER),
        SentRequest("POST", "http://host/agent", {}, b"{}"),
        AgentAnswer(200, {"content-type": "text/event-stream"}, b""),
        step="write",
        attempt=1,
        started_at=Instant(0),
        duration_ms=1,
        kind="stream",
        frames=frames,
    )
    assert made.kind == "stream"
    assert made.frames == frames.kept
    assert made.response is not None
    assert made.response.body == 'data: {"a":1}\n\n'
    assert msgspec.json.decode(encode_exchange(made), type=RecordedExchange) == made


def test_the_headers_of_a_push_are_the_agents_own() -> None:
    made = record_exchange(
        Redaction(BEARER),
        SentRequest(
            "POST", "http://trunkline/hooks/a2a/[redacted]", {"x-a2a-notification-token": "t"}, b"{}"
        ),
        AgentAnswer(204, {}, b""),
        step="write",
        attempt=1,
        started_at=Instant(0),
        duration_ms=1,
        kind="push",
    )
    assert made.request.headers == {"x-a2a-notification-token": "[redacted]"}


def test_a_record_of_an_older_program_is_read_as_a_call() -> None:
    fields = msgspec.to_builtins(exchange())
    del fields["kind"], fields["frames"]
    assert msgspec.convert(fields, RecordedExchange).kind == "send"


ARN = "arn:aws:bedrock-agentcore:eu-central-1:123456789012:runtime/zone-a1B2c3D4e5"
HEADERS = {"Accept": "application/json", "X-Correlation-ID": "c-1", "X-Zone-Session": "s" * 36}


def called(url: str, body: bytes = b"{}", step: str = "write") -> RecordedExchange:
    return record_exchange(
        Redaction(),
        SentRequest("POST", url, HEADERS, body),
        None,
        step=step,
        attempt=1,
        started_at=Instant(0),
        duration_ms=1.0,
    )


def test_a_record_has_only_the_headers_that_have_left() -> None:
    assert called("http://host/agent").request.headers.keys() == {*HEADERS, "Accept-Encoding", "User-Agent"}
    assert called(ARN).request.headers.keys() == {"Accept", "X-Zone-Session"}
    assert called("stdio:zone").request.headers == {}


def test_a_call_of_agentcore_is_repeated_by_the_aws_command_line(tmp_path: Path) -> None:
    body = '{"text":"it\'s $HOME\\n"}'
    command = to_curl(called(f"{ARN}?qualifier=blue", body.encode()))
    # A program of that name, which shows what it was given.
    (tmp_path / "aws").write_text('#!/bin/sh\nprintf "%s " "$@"\ncat\n')
    (tmp_path / "aws").chmod(0o755)
    shown = subprocess.run(
        ["sh", "-c", command],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert shown == (
        f"bedrock-agentcore invoke-agent-runtime --region eu-central-1 --agent-runtime-arn {ARN} --qualifier blue "
        f"--accept application/json --runtime-session-id {'s' * 36} --payload fileb:///dev/stdin /dev/stdout {body}"
    )


def test_for_a_program_there_is_the_line_that_it_has_read() -> None:
    command = to_curl(called("stdio:zone", b'{"text":"it\'s"}'))
    assert command.startswith("# No curl command: the agent is a local program")
    shown = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True).stdout
    assert shown == '{"text":"it\'s"}\n'


@pytest.mark.parametrize(("url", "payload"), [(ARN, "fileb://"), ("stdio:zone", "\ncat ")])
def test_a_body_that_is_cut_is_read_from_a_file(url: str, payload: str) -> None:
    command = to_curl(called(url, b"x" * 100_000, step="write[1].a/b"))
    assert f"{payload}body-of-write-1-a-b-attempt-1.txt" in command
    assert "xxx" not in command


def test_an_arn_that_cannot_be_read_has_no_command() -> None:
    assert to_curl(called("arn:aws:lambda:x")).startswith("# No command for this URL: it must have")
