"""
The attacks and heavy loads of `test_attacks.py`.

    large_answers          agents that give large answers, all at the same time
    readers                clients that ask for large pages and never read them
    half_open_connections  connections that never finish their request
    bodies                 requests with large bodies that never end
    objects                requests with as many objects as their length allows
    events                 clients that ask for pages of large events, and never read them
    validation             clients that validate the largest workflow again and again
    large_loop             a large answer that every item of a loop gets
    schemas                answers and inputs that a recursive schema can read in millions of ways
    file_references        answers with thousands of references to a file
    push_notifications     an agent that sends push notifications without pause
"""

from __future__ import annotations

import asyncio
import os
from base64 import b64encode
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from time import monotonic

from tests.crash.attack_target import PUSHING_CARD, Target, agent, parts_of_task, simple
from tests.unit.workflow.test_bounded_schema import RECURSIVE, chain

from trunkline.jsontypes import MAX_CONTAINERS, Json, JsonObject, encode
from trunkline.testing import ScriptedAgent
from trunkline.testing.system import error_of, objects_in, step_of
from trunkline.workflow.validate import MAX_STEPS

MEGABYTE = 1_000_000
ANSWERS = int(os.environ.get("TRUNKLINE_CHAOS_ANSWERS", "8"))
ANSWER_BYTES = int(os.environ.get("TRUNKLINE_CHAOS_ANSWER_MEGABYTES", "4")) * MEGABYTE
HALF_OPEN_CONNECTIONS = int(os.environ.get("TRUNKLINE_CHAOS_HALF_OPEN_CONNECTIONS", "250"))
EVENTS = int(os.environ.get("TRUNKLINE_CHAOS_EVENTS", "150"))
LOOP_ITEMS = int(os.environ.get("TRUNKLINE_CHAOS_LOOP_ITEMS", "20"))
LOOP_BYTES = int(os.environ.get("TRUNKLINE_CHAOS_LOOP_MEGABYTES", "2")) * MEGABYTE
PUSHES = int(os.environ.get("TRUNKLINE_CHAOS_PUSHES", "600"))
# Sent at once.
PUSHES_AT_ONCE = 20
PUBLIC_URL = "http://trunkline.example"
REFERENCES = 5_000
FILE_BYTES = 1024 * 1024
READERS = 4
# Of the attackers; the good clients have 127.0.0.1.
OTHER_ADDRESS = "127.0.0.2"
# As large as a body can be.
BODY_BYTES = 4 * 1024 * 1024
BUDGET_BYTES = 64 * 1024 * 1024
# Of the process without any load, with room for the pages and the statements of one turn.
_BASE_BYTES = 400 * MEGABYTE
# A run is in memory whole while it is driven; `max_run_bytes` limits it.
_RUN_BYTES = LOOP_ITEMS * LOOP_BYTES * 3 // 2
MAX_MEMORY_BYTES = _BASE_BYTES + 3 * BUDGET_BYTES + _RUN_BYTES

Attack = Callable[[Target], Awaitable[None]]


async def large_answers(target: Target) -> None:
    await target.run("large", ANSWERS)


@asynccontextmanager
async def held_open(target: Target, number: int, request: bytes) -> AsyncGenerator[None]:
    """Connections from another address than that of the good clients, which send the request and read nothing."""
    host, port = target.server.url.removeprefix("http://").split(":")
    # Without a reference to its writer, a connection ends.
    writers: list[asyncio.StreamWriter] = []
    try:
        for _ in range(number):
            with suppress(ConnectionError):
                _, writer = await asyncio.open_connection(
                    host, int(port), limit=1, local_addr=(OTHER_ADDRESS, 0)
                )
                writers.append(writer)
                # Not drained: the server may stop reading.
                writer.write(request)
        yield
    finally:
        for writer in writers:
            writer.transport.abort()


async def readers(target: Target) -> None:
    """They leave when the server has cut one of them, or has kept answering others for a while."""
    asked = b"GET /api/v1/runs?payloads=true&limit=1000 HTTP/1.1\r\nHost: localhost\r\n\r\n"
    async with held_open(target, READERS, asked):
        for _ in range(5):
            await target.run("good")


async def half_open_connections(target: Target) -> None:
    async with held_open(target, HALF_OPEN_CONNECTIONS, b"GET /livez HTTP/1.1\r\nHost: x"):
        for _ in range(5):
            await target.run("good")


async def validation(target: Target) -> None:
    steps: JsonObject = {f"s{number}": {"agent": "Good"} for number in range(MAX_STEPS)}
    body = encode({"name": "wide", "steps": steps})

    async def validate() -> None:
        async with target.session.post(
            f"{target.server.url}/api/v1/workflow-validation", data=body
        ) as answer:
            assert answer.status in {200, 503}
            await answer.read()

    for _ in range(2):
        await asyncio.gather(*(validate() for _ in range(8)))


async def bodies(target: Target) -> None:
    head = f"POST /api/v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Length: {BODY_BYTES}\r\n\r\n"
    body = head.encode() + b"x" * (BODY_BYTES - 1)
    async with held_open(target, HALF_OPEN_CONNECTIONS, body):
        for _ in range(5):
            await target.run("good")


async def objects(target: Target) -> None:
    """Each takes a hundred times as much memory as text, and as much time as it may."""
    wide = b"[" + b"[]," * (MAX_CONTAINERS - 10) + b"0]"
    too_wide = b"[" + b"[]," * (BODY_BYTES // 3 - 1) + b"0]"

    async def send(body: bytes) -> int:
        async with target.session.post(f"{target.server.url}/api/v1/events", data=body) as answer:
            await answer.read()
            return answer.status

    for _ in range(3):
        assert set(await asyncio.gather(*(send(wide) for _ in range(8)))) <= {422, 429}
        assert set(await asyncio.gather(*(send(too_wide) for _ in range(8)))) <= {413, 429}


async def events(target: Target) -> None:
    for number in range(EVENTS // 15):
        batch: Json = [
            {"specversion": "1.0", "type": "t", "source": "s", "id": f"{number}/{n}", "data": "x" * 250_000}
            for n in range(15)
        ]
        await target.call("POST", "/events", batch)
    asked = b"GET /api/v1/events?limit=1000 HTTP/1.1\r\nHost: localhost\r\n\r\n"
    async with held_open(target, READERS, asked):
        for _ in range(5):
            await target.run("good")


async def large_loop(target: Target) -> None:
    """One large answer, which every item of a loop gets: the second run uses the space of the first one's tasks."""
    for _ in range(2):
        run = await target.ended("loop", list(range(LOOP_ITEMS)))
        assert run["status"] == "COMPLETED", run["error"]


async def schemas(target: Target) -> None:
    """A short answer that a recursive schema can read in millions of ways, given to a child run and as an input."""
    for _ in range(3):
        run = await target.ended("parent")
        assert error_of(run)["code"] == "child_input_invalid"
        url = f"{target.server.url}/api/v1/workflows/child/execute"
        async with target.session.post(url, data=encode(chain(22, 1))) as answer:
            assert answer.status == 422


async def file_references(target: Target) -> None:
    """An answer that refers thousands of times to a file of the same run, which another step gets."""
    run = await target.ended("give")
    output = step_of(run, "only")["output"]
    assert isinstance(output, dict)
    (artifact,) = objects_in(output["artifacts"])
    (part,) = objects_in(artifact["parts"])
    target.forged_parts = [part] * REFERENCES
    for _ in range(3):
        run = await target.ended("pass_on")
        assert error_of(run)["code"] == "request_not_encodable"


async def push_notifications(target: Target) -> None:
    """An agent that says without pause that its task has moved on, and has nothing new when it is asked."""
    run_id = await target.begin("pushed")
    address, token = await target.pusher.target()
    url = address.replace(PUBLIC_URL, target.server.url)
    began = monotonic()

    async def push() -> None:
        for _ in range(PUSHES // PUSHES_AT_ONCE):
            headers = {"X-A2A-Notification-Token": token}
            async with target.session.post(url, data=b"{}", headers=headers) as answer:
                assert answer.status in {204, 429}, await answer.text()

    await asyncio.gather(*(push() for _ in range(PUSHES_AT_ONCE)))
    seconds = monotonic() - began
    polls = target.pusher.polls
    target.pusher.is_done = True
    async with target.session.post(url, data=b"{}", headers={"X-A2A-Notification-Token": token}):
        pass
    while (await target.status_of(run_id)) != "COMPLETED":
        await asyncio.sleep(0.1)
    rows = await target.call("GET", f"/runs/{run_id}/wire?limit=1000")
    assert isinstance(rows, dict)
    target.figures["pushes sent"] = PUSHES
    target.figures["polls after pushes"] = polls
    target.figures["wire records of pushes"] = len(objects_in(rows["items"]))
    # At most one a second, and one for each end of that time.
    assert polls <= seconds + 2, target.figures
    assert len(objects_in(rows["items"])) <= 2 * (polls + 4), target.figures


ATTACKS: tuple[Attack, ...] = (
    large_answers,
    readers,
    half_open_connections,
    bodies,
    objects,
    events,
    validation,
    large_loop,
    schemas,
    file_references,
    push_notifications,
)


@asynccontextmanager
async def attackers(target: Target) -> AsyncGenerator[None]:
    """Their agents and workflows, and the good ones."""

    def give(body: bytes) -> bytes:
        file: Json = {"name": "a", "bytes": b64encode(bytes(FILE_BYTES)).decode()}
        return parts_of_task(target.forged_parts or [{"kind": "file", "file": file}], body)

    async with (
        agent(simple({"text": "done"})) as good,
        agent(simple({"text": "x" * ANSWER_BYTES})) as large,
        agent(simple({"text": "x" * LOOP_BYTES})) as looped,
        agent(simple({"nested": chain(22, 1)})) as nested,
        agent(give) as giver,
        ScriptedAgent(target.pusher.answer) as pusher,
    ):
        for name, url in (("Good", good), ("Large", large), ("Looped", looped), ("Nested", nested)):
            await add_agent(target, name, url, "simple-a2a")
        await add_agent(target, "Giver", giver, "jsonrpc-2.0")
        pusher.publish({**PUSHING_CARD, "url": pusher.url})
        await add_agent(target, "Pusher", pusher.url, "auto")
        await add_workflow(target, "pushed", {"only": step("Pusher")})
        for name in ("Good", "Large"):
            await add_workflow(target, name.lower(), {"only": step(name)})
        text = "${ steps.read.output.text }"
        each = step("Good", needs=["read"], for_each="${ input }", input={"text": text, "item": "${ item }"})
        await add_workflow(target, "loop", {"read": step("Looped"), "each": each})
        await add_workflow(target, "child", {"only": step("Good")}, {"input": RECURSIVE})
        given = "${ steps.ask.output.data.nested }"
        inner: JsonObject = {"workflow": "child", "input": given, "needs": ["ask"]}
        await add_workflow(target, "parent", {"ask": step("Nested"), "inner": inner})
        await add_workflow(target, "give", {"only": step("Giver")})
        parts = "${ steps.only.output.artifacts[0].parts }"
        take = step("Giver", needs=["only"], input={"parts": parts})
        await add_workflow(target, "pass_on", {"only": step("Giver"), "take": take})
        yield


def step(agent_name: str, **more: Json) -> JsonObject:
    return {"agent": agent_name, "retry": {"max_attempts": 1}, **more}


async def add_agent(target: Target, name: str, url: str, protocol: str) -> None:
    body: JsonObject = {"name": name, "url": url, "protocol": protocol, "timeout_ms": 600_000}
    await target.call("POST", "/agents", body)


async def add_workflow(target: Target, name: str, steps: JsonObject, more: JsonObject | None = None) -> None:
    await target.call("POST", "/workflows", {"name": name, "steps": steps, **(more or {})})
