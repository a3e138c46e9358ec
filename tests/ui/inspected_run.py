"""
A run to look into: attempts that fail, polls, a stream, files, many items, a failure, and content that means harm.

    flaky      answers 503, hangs up, works for a while and is polled three times
    stream     four server-sent events
    files      a picture, an SVG that runs a script, a page of HTML, a file that is kept next to the output
    each       sixty items; the last of them fails
    long       two megabytes of JSON
    broken     fails with words that are HTML
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.ui.agents import ThreadedAgents
from tests.ui.wheel_install import trunkline_up

from trunkline.cli.follow import follow_run
from trunkline.cli.rest.client import Client
from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.testing import jsonrpc_error, jsonrpc_task, simple_success
from trunkline.testing.agents import Call, Hangup, Reply, Scripted, Stream

# What a browser would run, load or follow, were it not text.
HOSTILE_TEXT = "<img src=x onerror=alert(1)><script>alert(2)</script> javascript:alert(3) {{7*7}}"
# One red pixel.
PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
    "0000000c49444154789c63f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
)
DRAWING = b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(4)"><script>alert(5)</script></svg>'
# Longer than what stays in an output.
LONG_FILE = bytes(range(256)) * 1_200
ITEMS = 60
ROWS = 20_000
# More digits than a browser keeps of a number.
SERIAL = 12345678901234567890
QUICKLY: JsonObject = {"max_attempts": 3, "backoff": "fixed", "first_delay": "10ms"}
CARD: JsonObject = {
    "name": "Streamer",
    "protocolVersion": "0.3.0",
    "preferredTransport": "JSONRPC",
    "capabilities": {"streaming": True},
    "skills": [],
}


def _result(call: Call, result: JsonObject) -> JsonObject:
    return {"jsonrpc": "2.0", "id": call.id, "result": result}


def _streamed(call: Call) -> Scripted:
    def status(state: str, text: str, *, final: bool = False) -> Json:
        parts: Json = [{"kind": "text", "text": text}]
        said: Json = {"kind": "message", "role": "agent", "messageId": "m", "parts": parts}
        update: JsonObject = {"kind": "status-update", "taskId": "remote-1", "contextId": "c", "final": final}
        return _result(call, {**update, "status": {"state": state, "message": said}})

    def piece(text: str, *, append: bool = False) -> Json:
        artifact: Json = {"artifactId": "answer", "parts": [{"kind": "text", "text": text}]}
        update: JsonObject = {"kind": "artifact-update", "taskId": "remote-1", "contextId": "c"}
        return _result(call, {**update, "artifact": artifact, "append": append})

    return Stream(
        status("working", "Looking it up"),
        piece("The tide is "),
        piece("rising.", append=True),
        status("completed", "Done", final=True),
    )


def _file(name: str, media_type: str, content: bytes) -> Json:
    return {
        "kind": "file",
        "file": {"name": name, "mimeType": media_type, "bytes": b64encode(content).decode()},
    }


def _with_files(call: Call) -> Scripted:
    parts: Json = [
        {"kind": "text", "text": f"Four files, and some words: {HOSTILE_TEXT}"},
        {"kind": "data", "data": {"depth": 12.0, "unit": "m", "serial": SERIAL, "words": HOSTILE_TEXT}},
        _file("gauge.png", "image/png", PICTURE),
        _file("map.svg", "image/svg+xml", DRAWING),
        _file("report.html", "text/html", HOSTILE_TEXT.encode()),
        _file("readings.bin", "application/octet-stream", LONG_FILE),
    ]
    task: JsonObject = {"kind": "task", "id": "remote-1", "contextId": "c", "status": {"state": "completed"}}
    return _result(call, {**task, "artifacts": [{"artifactId": "a", "name": "Readings", "parts": parts}]})


def _item(call: Call) -> Scripted:
    given = call.body.get("input")
    number = given.get("number") if isinstance(given, dict) else None
    if number == ITEMS:
        return {"task_id": call.id, "status": "error", "output": None, "error": f"Too deep: {number}"}
    return simple_success({"number": number})(call)


def _long(call: Call) -> Scripted:
    rows: Json = [{"row": row, "name": f"gauge {row}", "note": "x" * 60} for row in range(ROWS)]
    return simple_success({"rows": rows})(call)


WORKFLOW: JsonObject = {
    "name": "tides",
    "steps": {
        "flaky": {"agent": "Flaky", "input": {"text": 'it\'s "$HOME" `id` \\ !\nGrüße @'}, "retry": QUICKLY},
        "stream": {"agent": "Streamer", "input": {"query": "tide"}},
        "files": {"agent": "Giver", "input": {"query": HOSTILE_TEXT}},
        "each": {
            "agent": "Each",
            "for_each": {"items": "${ input.numbers }", "on_error": "collect"},
            "input": {"number": "${ item }"},
            "retry": {"max_attempts": 1},
        },
        "long": {"agent": "Long"},
        "broken": {
            "agent": "Broken",
            "needs": ["flaky", "stream", "files", "each", "long"],
            "retry": QUICKLY,
        },
    },
    "output": "${ steps.stream.output }",
}


@dataclass(frozen=True)
class InspectedRun:
    client: Client
    run: str

    @property
    def url(self) -> str:
        return self.client.url


@dataclass(frozen=True)
class SlowRun:
    """A run whose only step, `only`, has called its agent, which answers "At last" when it may."""

    id: str
    agent_url: str
    let_answer: Callable[[], None]


def begin_slow_run(inspected: InspectedRun, agents: ThreadedAgents) -> SlowRun:
    may_answer = agents.portal.call(asyncio.Semaphore, 0)

    async def slow(call: Call) -> Json:
        await may_answer.acquire()
        return simple_success({"text": "At last"})(call)

    agent = agents.start(slow)
    inspected.client.create_agent({"name": "Slow", "url": agent.url, "protocol": "simple-a2a"})
    inspected.client.save_workflow(encode({"name": "slow", "steps": {"only": {"agent": "Slow"}}}))
    run = inspected.client.execute("slow", {"text": "Hurry"})["id"]
    agents.portal.call(agent.called)
    return SlowRun(run, agent.url, lambda: agents.portal.call(may_answer.release))


@contextmanager
def inspected_system(session: Path, folder: Path, agents: ThreadedAgents) -> Generator[InspectedRun]:
    working = jsonrpc_task("Busy", state="working")
    polled = (working, working, working, jsonrpc_task("Calm at last"))
    flaky = agents.start(Reply(503, b"busy"), Hangup(), *polled)
    stream = agents.start(_streamed)
    stream.publish({**CARD, "url": stream.url})
    started = {
        "Flaky": (flaky, "jsonrpc-2.0"),
        "Streamer": (stream, "auto"),
        "Giver": (agents.start(_with_files), "jsonrpc-2.0"),
        "Each": (agents.start(_item), "simple-a2a"),
        "Long": (agents.start(_long), "simple-a2a"),
        "Broken": (agents.start(jsonrpc_error(-32000, HOSTILE_TEXT)), "jsonrpc-2.0"),
    }
    with trunkline_up(session, folder, name="inspected") as url:
        client = Client(url)
        for name, (agent, protocol) in started.items():
            client.create_agent({"name": name, "url": agent.url, "protocol": protocol})
        client.save_workflow(encode(WORKFLOW))
        run = client.execute("tides", {"numbers": list(range(1, ITEMS + 1)), "words": HOSTILE_TEXT})["id"]
        follow_run(client, run, show="nothing")
        yield InspectedRun(client, run)
