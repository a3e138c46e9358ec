"""A named secret that an agent repeats wherever it can: it appears in nothing that anybody can read."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from html import escape
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from structlog.testing import capture_logs
from structlog.typing import EventDict
from tests.scenarios.test_secrets import CANARY, ECHOES, assert_hidden, everything_kept, everything_readable
from tests.scenarios.trace_collector import collecting

from trunkline.bridge.wire.exchanges import to_curl
from trunkline.brokers.base import Producer, Undelivered
from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.messages import OutgoingMessage
from trunkline.services.runs.har import to_har
from trunkline.services.runs.stored_exchanges import convert_exchange
from trunkline.testing import Call, RunningSystem, ScriptedAgent, running_system, simple_error, simple_success
from trunkline.testing.agents import Reply, Script, Stream
from trunkline.wiring import Interceptors

pytestmark = pytest.mark.anyio

PLACE: JsonObject = {"$secret": "bot"}
ENCODED = {
    "in base64": b64encode(CANARY.encode()).decode(),
    "inside base64": b64encode(f"bot:{CANARY}:x".encode()).decode(),
    "in base64 for addresses": urlsafe_b64encode(f"t={CANARY}".encode()).decode(),
    "in an address": quote(CANARY, safe=""),
    "in a form": quote_plus(CANARY),
    "in HTML": escape(CANARY),
}
# No piece of them as long as this may be left.
PIECES = [text[at : at + 12] for text in ENCODED.values() for at in range(6, len(text) - 18)]


class EchoingAgent:
    """A producer that keeps a copy of all that leaves."""

    def __init__(self, inner: Producer, sent: list[OutgoingMessage]) -> None:
        self._inner = inner
        self._sent = sent

    async def send(self, messages: Sequence[OutgoingMessage]) -> list[Undelivered]:
        self._sent += messages
        return await self._inner.send(messages)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("named")


@pytest.fixture(scope="module")
def sent() -> list[OutgoingMessage]:
    return []


@pytest.fixture(scope="module")
def logs() -> Generator[list[EventDict]]:
    """Of everything that the tests of this file do."""
    with capture_logs() as lines:
        yield lines
    assert_hidden("\n".join(repr(line) for line in lines), "logs", CANARY)


@pytest.fixture(scope="module")
async def watched(
    shared_settings: Mapping[str, str], folder: Path, sent: list[OutgoingMessage], logs: list[EventDict]
) -> AsyncGenerator[RunningSystem]:
    interceptors = Interceptors(producer=lambda producer: EchoingAgent(producer, sent))
    async with running_system(folder, interceptors=interceptors) as running:
        assert (await running.call("PUT", "/secrets/bot", {"value": CANARY})).status == 201
        yield running


def mirror(call: Call) -> Reply:
    """All that came, in the body and in a header, and in every way to write it down."""
    body = encode(
        {"task_id": call.id, "status": "success", "output": {"text": encode(call.body).decode(), **ENCODED}}
    )
    return Reply(200, body, {"Content-Type": "application/json", "X-Echo": json.dumps(CANARY)})


def escaped(call: Call) -> Reply:
    """Every letter as an escape: only whoever reads the JSON sees it."""
    letters = "".join(f"\\u{ord(letter):04x}" for letter in CANARY)
    text = (
        f'{{"task_id": "{call.id}", "status": "success", "output": {{"text": "{letters}", "{letters}": 1}}}}'
    )
    return Reply(200, text.encode())


MORE: list[tuple[str, str, Script]] = [
    ("mirror", "simple-a2a", mirror),
    ("escaped", "simple-a2a", escaped),
    ("encoded error", "simple-a2a", simple_error(" ".join(ENCODED.values()))),
]


async def run_one(
    system: RunningSystem, name: str, url: str, step_input: JsonObject, **fields: Json
) -> JsonObject:
    await system.register(name, url, **fields)
    workflow = name.replace(" ", "-")
    step: JsonObject = {"agent": name, "input": step_input, "retry": {"max_attempts": 1}}
    steps: JsonObject = {"only": step, "next": {"agent": name, "input": {"text": "${ steps.only.output }"}}}
    await system.save({"name": workflow, "steps": steps})
    return await system.run(workflow)


async def everything_of(system: RunningSystem, run: JsonObject, agent: str) -> dict[str, str]:
    texts = await everything_readable(system, str(run["id"]), agent)
    for path in (
        "/secrets",
        "/workflows",
        f"/workflows/{agent.replace(' ', '-')}",
        "/inbox",
        "//openapi.json",
    ):
        texts[path] = (await system.call("GET", path)).body.decode()
    exchanges = await system.items(f"/runs/{run['id']}/wire")
    texts["curl"] = "\n".join(map(to_curl, exchanges))
    texts["har"] = str(to_har(convert_exchange(exchange) for exchange in exchanges))
    return texts


@pytest.mark.parametrize(
    ("name", "protocol", "script"), [*ECHOES, *MORE], ids=[echo[0] for echo in (*ECHOES, *MORE)]
)
async def test_an_agent_that_repeats_a_named_secret_does_not_make_it_readable(
    watched: RunningSystem,
    folder: Path,
    shared_settings: Mapping[str, str],
    sent: list[OutgoingMessage],
    logs: list[EventDict],
    name: str,
    protocol: str,
    script: Script,
) -> None:
    async with ScriptedAgent(script) as agent:
        step_input: JsonObject = {"text": "hi", "deep": [{"a/b~c": PLACE}]}
        run = await run_one(watched, name, agent.url, step_input, protocol=protocol)
        texts = await everything_of(watched, run, name)
    assert_reached(agent.calls[0])
    for where, text in texts.items():
        assert_hidden(text, where, CANARY, *PIECES)
    for where, text in (await everything_kept(folder, shared_settings)).items():
        assert_hidden(text, where, CANARY)
    for message in sent:
        assert_hidden(message.value.decode("latin-1"), message.topic, CANARY)
    assert bool(sent) is bool(shared_settings)
    assert {"secret_set", "http_call", "protocol_request_translation"} <= {line["event"] for line in logs}


def assert_reached(call: Call) -> None:
    assert encode(CANARY) in encode(call.body) or encode(CANARY)[1:-1] in encode(call.body)


def streamed(call: Call) -> Stream:
    """The secret in the middle of pieces, and over the edge of two."""
    half = len(CANARY) // 2

    def piece(text: str, *, append: bool) -> Json:
        part: Json = {"kind": "text", "text": text}
        event: JsonObject = {"kind": "artifact-update", "taskId": "t", "contextId": "c", "append": append}
        return {
            "jsonrpc": "2.0",
            "id": call.id,
            "result": {**event, "artifact": {"artifactId": "a", "parts": [part]}},
        }

    def status(state: str, text: str, *, final: bool) -> Json:
        message: Json = {"role": "agent", "messageId": "m", "parts": [{"kind": "text", "text": text}]}
        update: JsonObject = {"kind": "status-update", "taskId": "t", "contextId": "c", "final": final}
        return {
            "jsonrpc": "2.0",
            "id": call.id,
            "result": {**update, "status": {"state": state, "message": message}},
        }

    return Stream(
        status("working", f"I have {CANARY}", final=False),
        piece(f"it is {CANARY[:half]}", append=False),
        piece(f"{CANARY[half:]} and {CANARY}", append=True),
        status("completed", CANARY, final=True),
    )


async def test_a_stream_that_repeats_a_named_secret_does_not_make_it_readable(watched: RunningSystem) -> None:
    async with ScriptedAgent(streamed) as agent:
        card: JsonObject = {"name": CANARY, "protocolVersion": "0.3.0", "url": agent.url}
        agent.publish({**card, "capabilities": {"streaming": True}})
        run = await run_one(watched, "Streams", agent.url, {"text": "hi", "t": PLACE})
        texts = await everything_of(watched, run, "Streams")
    assert agent.calls[0].method == "message/stream"
    assert_reached(agent.calls[0])
    texts.pop("/agents/Streams/health")
    for where, text in texts.items():
        assert_hidden(text, where, CANARY)


async def test_no_span_has_a_named_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with collecting() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        async with ScriptedAgent(simple_error(f"no: {CANARY}")) as agent, running_system(tmp_path) as system:
            await system.call("PUT", "/secrets/bot", {"value": CANARY})
            await run_one(system, "Traced", agent.url, {"t": PLACE}, protocol="simple-a2a")
    spans = [span for span in collector.spans if span.name == "invoke_agent Traced"]
    assert spans
    assert_hidden(repr(collector.spans), "spans", CANARY)


@pytest.mark.parametrize(
    "body", [{"value": "abc"}, {"value": CANARY, CANARY: 1}, {"value": [CANARY]}, {CANARY: CANARY}]
)
async def test_a_refusal_does_not_repeat_what_was_given(watched: RunningSystem, body: JsonObject) -> None:
    answer = await watched.call("PUT", "/secrets/refused", body)
    assert answer.status == 422
    assert_hidden(answer.body.decode(), "answer", CANARY)


async def test_a_body_that_is_no_json_is_not_repeated(watched: RunningSystem) -> None:
    answer = await watched.call("PUT", "/secrets/refused", f'{{"value": "{CANARY}'.encode())
    assert answer.status == 400
    assert_hidden(answer.body.decode(), "answer", CANARY)


async def test_secrets_are_listed_without_their_values(watched: RunningSystem) -> None:
    second = await watched.call("PUT", "/secrets/another.one", {"value": simple_success.__name__})
    changed = await watched.call("PUT", "/secrets/another.one", {"value": CANARY})
    items = await watched.items("/secrets?limit=1")
    assert (second.status, changed.status) == (201, 200)
    assert [item["name"] for item in items] == ["another.one", "bot"]
    assert set(items[0]) == {"name", "version", "created_at", "updated_at"}
    assert (await watched.call("DELETE", "/secrets/another.one")).status == 204
    assert (await watched.call("DELETE", "/secrets/another.one")).status == 404
    assert (await watched.call("GET", "/secrets/bot")).status == 405
