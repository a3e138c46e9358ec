"""
What a fuzzer throws bytes at: an agent's answers, its streams and its card, and a zone.

A target takes any bytes and returns nothing; what it raises is a bug. The first byte chooses the dialect, the
second what is done with the rest, so that one corpus reaches all of them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import msgspec

from trunkline.agents.http_urls import parse_url
from trunkline.jsontypes import JsonObject, decode, encode
from trunkline.messages import ERROR_CODES, AgentTask
from trunkline.protocols import (
    AgentAnswer,
    CardFetch,
    Failed,
    Interrupted,
    NegotiatedDialect,
    Outcome,
    ProtocolAdapterFactory,
    ProtocolTranslationError,
    Succeeded,
    Working,
    ZoneAdapter,
    failure_of,
    negotiate,
    next_card_url,
)
from trunkline.sse import SseLimitExceeded, SseParser
from trunkline.zones import Zone
from trunkline.zones.documents import contract_validator

GOLDEN = Path(__file__).parents[1] / "golden"
AGENT_URL = "http://agent.example/a2a"
TASK = AgentTask(task_id="task-123", input_data={"query": "q"}, context_id="ctx-1")
STATUSES = (200, 400, 404, 500)
# Short enough for a fuzzer to reach them.
MAX_LINE_BYTES = 2_048
MAX_EVENT_BYTES = 3_072

PROTOCOLS = ProtocolAdapterFactory.supported_protocols()
STREAMED = [name for name in PROTOCOLS if name in ("a2a-0.2", "a2a-0.3", "a2a-1.0", "a2a-1.0-http")]
LISTED = [name for name in PROTOCOLS if name.startswith("a2a-1")]
# What a fuzzer's bytes may take the place of; the first is all of it.
ENVELOPE = b'{"jsonrpc":"2.0","id":"6f0e","method":"execute_task","params":{"text":"hi"}}'
ENVELOPE_PARTS = (b"", b'"6f0e"', b'"execute_task"', b'{"text":"hi"}', b'"hi"')
RESPONSES = contract_validator("response")
ADAPTERS = {name: ProtocolAdapterFactory.create_adapter(name) for name in PROTOCOLS} | {"zone": ZoneAdapter()}
# By the names of their folders of golden answers.
ANSWERING = list(ADAPTERS)


class _Wire(msgspec.Struct):
    body: msgspec.Raw = msgspec.Raw(b"")
    text: str | None = None


class _Case(msgspec.Struct):
    """What a golden file says of an answer."""

    answer: _Wire


class Target(NamedTuple):
    run: Callable[[bytes], None]
    seeds: Callable[[], Iterator[bytes]]


def answers(data: bytes) -> None:
    """An answer to a message, or to the question which tasks there are."""
    first, second, body = _taken_apart(data)
    answer = AgentAnswer(status=STATUSES[second % len(STATUSES)], headers={}, body=body)
    try:
        if second & 0x80:
            name = LISTED[first % len(LISTED)]
            found = ADAPTERS[name].decode_find(answer, TASK)
            _must(found is None or found != "", "a task that is found has a name")
        else:
            check(ADAPTERS[ANSWERING[first % len(ANSWERING)]].decode(answer, TASK))
    except ProtocolTranslationError as exc:
        check(failure_of(exc))


def streams(data: bytes) -> None:
    """A stream, in one chunk or in two."""
    first, second, body = _taken_apart(data)
    reading = ADAPTERS[STREAMED[first % len(STREAMED)]].read_stream(TASK)
    parser = SseParser(max_line_bytes=MAX_LINE_BYTES, max_event_bytes=MAX_EVENT_BYTES)
    try:
        events = [*parser.feed(body[:second]), *parser.feed(body[second:])]
        news = [reading.take(event.data) for event in events]
        encode(news)
        _must(all(b.is_over for a, b in pairwise(news) if a.is_over), "what is over stays over")
        check(reading.outcome())
    except SseLimitExceeded as exc:
        _must(exc.limit in (MAX_LINE_BYTES, MAX_EVENT_BYTES), "the limit is one of ours")
    except ProtocolTranslationError as exc:
        check(failure_of(exc))


def cards(data: bytes) -> None:
    """A card, at the first address or at the last."""
    first, second, body = _taken_apart(data)
    url = next_card_url(AGENT_URL, [])
    _must(url is not None, "there is always an address to ask first")
    fetch = CardFetch(url=url or "", status=STATUSES[second % len(STATUSES)], body=body)
    fetches = [fetch] if first % 2 == 0 else [CardFetch(url=url or "", status=404), fetch]
    chosen = negotiate(AGENT_URL, fetches)
    encode(chosen)
    if isinstance(chosen, NegotiatedDialect):
        _must(chosen.protocol in PROTOCOLS, "the dialect is one that we speak")
        _must(parse_url(chosen.url)[:3] == parse_url(AGENT_URL)[:3], "no card leads to another origin")
    else:
        _must(chosen.reason != "", "whoever must decide learns why")


def zones(data: bytes) -> None:
    """A request to a zone, or a part of one in the place of another's."""
    part, body = ENVELOPE_PARTS[data[:1][0] % len(ENVELOPE_PARTS)] if data else b"", data[1:]
    body = ENVELOPE.replace(part, body, 1) if part else body
    zone = _running_zone()
    text = zone.loop.run_until_complete(zone.zone.answer(body)).body
    answer = msgspec.json.decode(text, type=_Response)
    RESPONSES.validate(decode(text))
    _must(b"\n" not in text, "an answer is one line")
    code = answer.error.code if answer.error is not None else None
    _must(code != -32603, "nothing breaks")
    _must(code != -32000 or b'"reason":"id_reused"' in text, "whoever may call is only refused for an old id")
    _must(
        (bytes(answer.id) == b"null") == (code in {-32700, -32600}),
        "an id is there where there was a request",
    )
    _must(bytes(answer.id) == b"null" or bytes(answer.id) in body, "an id is as it was written")
    _must(code == -32700 or _is_json(body), "what is not JSON is a parse error")


def _is_json(data: bytes) -> bool:
    try:
        json.loads(data.decode())
    except (ValueError, RecursionError):
        return False
    return True


class _Error(msgspec.Struct):
    code: int


class _Response(msgspec.Struct):
    id: msgspec.Raw
    error: _Error | None = None


class _Fuzzed(NamedTuple):
    zone: Zone
    loop: asyncio.AbstractEventLoop
    # It runs for as long as somebody holds this.
    life: AbstractAsyncContextManager[None]


@cache
def _running_zone() -> _Fuzzed:
    zone = Zone("fuzzed")
    schema: JsonObject = {
        "type": "object",
        "required": ["text"],
        "properties": {
            "text": {"type": "string"},
            "bot_token": {"type": "string"},
            "attachments": {"type": "array"},
        },
    }

    @zone.method("execute_task", params=schema)
    async def execute_task(params: JsonObject) -> JsonObject:  # pyright: ignore[reportUnusedFunction] - the zone has it
        return {"params": params}

    loop, life = asyncio.new_event_loop(), zone.running()
    loop.run_until_complete(life.__aenter__())
    return _Fuzzed(zone, loop, life)


def check(outcome: Outcome) -> None:
    """One of the documented outcomes, whole enough to be told and kept."""
    match outcome:
        case Succeeded():
            decode(outcome.output)
        case Failed(error=error):
            _must(error.code in ERROR_CODES, f"{error.code} is documented")
            _must(bool(error.message and error.fix), "an error says what happened and what to do")
            encode(error)
        case Working():
            _must(outcome.remote_task_id != "", "there is a task to ask for")
        case Interrupted():
            _must(outcome.question.text != "", "a question has words")
            encode(outcome.question)


def _must(holds: bool, rule: str) -> None:
    if not holds:
        raise AssertionError(rule)


def _taken_apart(data: bytes) -> tuple[int, int, bytes]:
    head = data[:2].ljust(2, b"\0")
    return head[0], head[1], data[2:]


def _answer_seeds() -> Iterator[bytes]:
    for number, protocol in enumerate(ANSWERING):
        for path in sorted((GOLDEN / "answers" / protocol).glob("*.json")):
            wire = msgspec.json.decode(path.read_bytes(), type=_Case).answer
            yield bytes([number, 0]) + (bytes(wire.body) if wire.text is None else wire.text.encode())
    listed = {"tasks": [{"id": "r", "history": [{"messageId": "msg-task-123"}]}], "nextPageToken": ""}
    yield b"\0\x80" + encode({"jsonrpc": "2.0", "id": "task-123", "result": listed})
    yield b"\1\x80" + encode(listed)


def _stream_seeds() -> Iterator[bytes]:
    for number, protocol in enumerate(STREAMED):
        for path in sorted((GOLDEN / "streams" / protocol).glob("*.sse")):
            yield bytes([number, 100]) + path.read_bytes()


def _card_seeds() -> Iterator[bytes]:
    url = f"{AGENT_URL}/rpc"
    interface = {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0", "tenant": "north"}
    capabilities = {"streaming": True, "pushNotifications": True}
    yield b"\0\0" + encode({"name": "a", "supportedInterfaces": [interface], "capabilities": capabilities})
    rest = interface | {"protocolBinding": "HTTP+JSON"}
    yield b"\0\0" + encode({"name": "a", "supportedInterfaces": [rest], "capabilities": capabilities})
    yield b"\0\0" + encode(
        {"name": "a", "url": url, "protocolVersion": "0.3.0", "preferredTransport": "JSONRPC"}
    )
    more = [{"url": url, "transport": "JSONRPC"}]
    yield b"\1\0" + encode({"name": "a", "url": "http://localhost:1", "additionalInterfaces": more})


def _zone_seeds() -> Iterator[bytes]:
    for method in ("execute_task", "get_task_result", "GetAsyncTaskResult", "rpc.discover"):
        request = encode({"jsonrpc": "2.0", "id": "6f0e", "method": method, "params": {"task_id": "t"}})
        yield b"\0" + request
        yield b"\0[" + request + b"]"
    yield b'\0{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]'
    for id_ in (b"-1.50e1", b'"\\ud83d\\ude00"', b"123456789012345678901234567890", b"null", b"true"):
        yield b"\1" + id_
    yield b'\2"get_task_result"'
    for params in (
        {"text": "hi", "bot_token": "x", "attachments": [{"a": 1.5e3}]},
        {"text": 5},
        ["hi"],
        "hi",
    ):
        yield b"\3" + encode(params)
    yield b'\3{"text":"\\u00e4","text":""}'
    yield b'\4"hi","correlation_id":"c","task_id":"t"'


TARGETS = {
    "answers": Target(answers, _answer_seeds),
    "streams": Target(streams, _stream_seeds),
    "cards": Target(cards, _card_seeds),
    "zones": Target(zones, _zone_seeds),
}
