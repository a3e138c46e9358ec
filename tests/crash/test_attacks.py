"""
Attacks and heavy loads on a real process: no run is lost, and its memory stays within what is configured.

    large_answers          agents that give large answers, all at the same time
    readers                clients that ask for large pages and never read them
    half_open_connections  connections that never finish their request
    bodies                 requests with large bodies that never end
    objects                requests with as many objects as their length allows
    events                 clients that ask for pages of large events, and never read them
    validation             clients that validate the largest workflow again and again

During each of them, `/livez` is asked all the time, and a short run is started again and again. The figures are
printed: peak memory, the longest time of `/livez`, runs lost. At full size: `make chaos PART=attacks`.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from time import perf_counter

import aiohttp
import pytest
from tests.crash.report import write_figures
from tests.crash.server import KillableServer, server_on

from trunkline.jsontypes import MAX_CONTAINERS, Json, JsonObject, encode
from trunkline.testing.system import objects_in
from trunkline.workflow.validate import MAX_STEPS

pytestmark = pytest.mark.anyio

MEGABYTE = 1_000_000
ANSWERS = int(os.environ.get("TRUNKLINE_CHAOS_ANSWERS", "8"))
ANSWER_BYTES = int(os.environ.get("TRUNKLINE_CHAOS_ANSWER_MEGABYTES", "4")) * MEGABYTE
HALF_OPEN_CONNECTIONS = int(os.environ.get("TRUNKLINE_CHAOS_HALF_OPEN_CONNECTIONS", "250"))
EVENTS = int(os.environ.get("TRUNKLINE_CHAOS_EVENTS", "150"))
READERS = 4
# Of the attackers; the good clients have 127.0.0.1.
OTHER_ADDRESS = "127.0.0.2"
# As large as a body can be.
BODY_BYTES = 4 * 1024 * 1024
BUDGET_BYTES = 64 * 1024 * 1024
# Of the process without any load, with room for the pages and the statements of one turn.
BASE_BYTES = 400 * MEGABYTE
# Only a hang takes as long.
AMPLE_SECONDS = 300

Attack = Callable[["Target"], Awaitable[None]]


class Target:
    def __init__(self, server: KillableServer, session: aiohttp.ClientSession) -> None:
        self.server = server
        self.session = session
        self.longest_livez_ms = 0.0
        self.good_runs = 0
        self.lost_runs = 0

    async def call(self, method: str, path: str, body: Json = None) -> Json:
        url = f"{self.server.url}/api/v1{path}"
        async with self.session.request(method, url, data=None if body is None else encode(body)) as answer:
            assert answer.status < 400, await answer.text()
            return await answer.json()

    async def run(self, workflow: str, times: int = 1) -> None:
        """Runs that have to complete. Their payloads are not read: that would keep this process busy."""
        begun = {await self.begin(workflow) for _ in range(times)}
        while begun:
            await asyncio.sleep(0.1)
            listed = await self.call("GET", f"/runs?workflow={workflow}&limit=1000")
            assert isinstance(listed, dict)
            ended = {
                str(run["id"]): run["status"]
                for run in objects_in(listed["items"])
                if run["id"] in begun and run["status"] not in {"PENDING", "RUNNING"}
            }
            self.lost_runs += sum(status != "COMPLETED" for status in ended.values())
            begun -= ended.keys()

    async def begin(self, workflow: str) -> str:
        run = await self.call("POST", f"/workflows/{workflow}/execute", {})
        assert isinstance(run, dict)
        return str(run["id"])

    def watch(self, stopped: threading.Event) -> None:
        """In a thread: what this process does meanwhile must not count."""
        host = self.server.url.removeprefix("http://")
        while not stopped.wait(0.02):
            began = perf_counter()
            connection = HTTPConnection(host, timeout=AMPLE_SECONDS)
            connection.request("GET", "/livez")
            assert connection.getresponse().status == 200
            connection.close()
            self.longest_livez_ms = max(self.longest_livez_ms, (perf_counter() - began) * 1000)

    async def run_good_ones(self) -> None:
        while True:
            await self.run("good")
            self.good_runs += 1
            await asyncio.sleep(0.2)

    def peak_memory_bytes(self) -> int:
        status = Path(f"/proc/{self.server.process_id}/status").read_text()
        (line,) = [line for line in status.splitlines() if line.startswith("VmHWM:")]
        return int(line.split()[1]) * 1024


@asynccontextmanager
async def agent(answer: bytes) -> AsyncGenerator[str]:
    """Gives every request the same output, in Simple A2A."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
                await reader.readexactly(length)
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(answer) + answer)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    finally:
        server.close()


def simple_answer(text: str) -> bytes:
    return encode({"task_id": "any", "status": "success", "output": {"text": text}})


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


ATTACKS: tuple[Attack, ...] = (
    large_answers,
    readers,
    half_open_connections,
    bodies,
    objects,
    events,
    validation,
)


async def prepare(target: Target, good: str, large: str) -> None:
    for name, url in (("Good", good), ("Large", large)):
        body: JsonObject = {"name": name, "url": url, "protocol": "simple-a2a", "timeout_ms": 60_000}
        await target.call("POST", "/agents", body)
        step: JsonObject = {"agent": name, "retry": {"max_attempts": 1}}
        await target.call("POST", "/workflows", {"name": name.lower(), "steps": {"only": step}})


async def test_no_attack_loses_a_run_or_takes_more_memory_than_configured(tmp_path: Path) -> None:
    flags = ("--max-memory-in-flight", str(BUDGET_BYTES), "--max-connections", "200")
    flags += ("--max-connections-per-address", "150", "--max-body-memory", str(BUDGET_BYTES))
    async with (
        agent(simple_answer("done")) as good,
        agent(simple_answer("x" * ANSWER_BYTES)) as large,
        server_on(tmp_path / "data", *flags) as server,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session,
        asyncio.timeout(AMPLE_SECONDS + ANSWERS * 10),
    ):
        await server.start()
        target = Target(server, session)
        await prepare(target, good, large)
        lines: list[str] = []
        for attack in ATTACKS:
            target.longest_livez_ms = 0.0
            stopped = threading.Event()
            async with asyncio.TaskGroup() as group:
                watching = group.create_task(asyncio.to_thread(target.watch, stopped))
                others = group.create_task(target.run_good_ones())
                try:
                    await attack(target)
                finally:
                    stopped.set()
                    others.cancel()
                await watching
            peak = target.peak_memory_bytes()
            lines.append(
                f"{attack.__name__:22} peak memory {peak // MEGABYTE} MB, "
                f"longest /livez {target.longest_livez_ms:.0f} ms"
            )
            write_figures_of(target, attack.__name__, peak)
        sys.stdout.write(
            "\n".join((*lines, f"runs lost: {target.lost_runs}, good runs: {target.good_runs}\n"))
        )
        assert target.lost_runs == 0
        assert target.peak_memory_bytes() < BASE_BYTES + 3 * BUDGET_BYTES, lines
        # The same after a restart.
        await server.kill()
        await server.start()
        await target.run("good")
        assert target.peak_memory_bytes() < BASE_BYTES + 3 * BUDGET_BYTES
        assert target.lost_runs == 0


_FIGURES: dict[str, int | float] = {}


def write_figures_of(target: Target, attack: str, peak_bytes: int) -> None:
    _FIGURES[f"peak memory, MB, after {attack}"] = peak_bytes // MEGABYTE
    _FIGURES[f"longest /livez, ms, during {attack}"] = round(target.longest_livez_ms)
    _FIGURES["good runs during attacks"] = target.good_runs
    _FIGURES["runs lost"] = target.lost_runs
    write_figures(_FIGURES)
