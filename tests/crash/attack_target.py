"""A process under attack, and what it has to go on doing: answer `/livez`, and complete short runs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from time import perf_counter

import aiohttp
from tests.crash.server import KillableServer

from trunkline.jsontypes import Json, JsonObject, decode, encode
from trunkline.testing import jsonrpc_task
from trunkline.testing.agents import Call
from trunkline.testing.system import objects_in

# Only a hang takes as long.
AMPLE_SECONDS = 300


PUSHING_CARD: JsonObject = {
    "name": "Pusher",
    "protocolVersion": "0.3.0",
    "preferredTransport": "JSONRPC",
    "capabilities": {"pushNotifications": True},
    "skills": [],
}


class PushingAgent:
    """Works on a task until `is_done`, and knows where it can push and how often it was polled."""

    def __init__(self) -> None:
        self._target: asyncio.Future[tuple[str, str]] = asyncio.get_running_loop().create_future()
        self.polls = 0
        self.is_done = False

    def answer(self, call: Call) -> Json:
        if call.method == "tasks/get":
            self.polls += 1
        elif not self._target.done():
            params = call.body["params"]
            assert isinstance(params, dict)
            configuration = params["configuration"]
            assert isinstance(configuration, dict)
            push = configuration["pushNotificationConfig"]
            assert isinstance(push, dict)
            self._target.set_result((str(push["url"]), str(push["token"])))
        return jsonrpc_task("Sunny")(call) if self.is_done else jsonrpc_task("", state="working")(call)

    async def target(self) -> tuple[str, str]:
        """Address and token."""
        return await self._target


class Target:
    def __init__(self, server: KillableServer, session: aiohttp.ClientSession) -> None:
        self.server = server
        self.session = session
        self.longest_livez_ms = 0.0
        self.good_runs = 0
        self.lost_runs = 0
        self.figures: dict[str, int | float] = {}
        self.pusher = PushingAgent()
        # What the agent that gives files answers instead of a file.
        self.forged_parts: list[Json] = []

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

    async def begin(self, workflow: str, run_input: Json = None) -> str:
        run = await self.call("POST", f"/workflows/{workflow}/execute", run_input)
        assert isinstance(run, dict)
        return str(run["id"])

    async def status_of(self, run_id: str) -> Json:
        run = await self.call("GET", f"/runs/{run_id}")
        assert isinstance(run, dict)
        assert run["status"] in {"PENDING", "RUNNING", "COMPLETED"}, run["error"]
        return run["status"]

    async def ended(self, workflow: str, run_input: Json = None) -> JsonObject:
        """A run that ends in any way, with the outputs of its steps."""
        run_id = await self.begin(workflow, run_input)
        while True:
            run = await self.call("GET", f"/runs/{run_id}")
            assert isinstance(run, dict)
            if run["status"] not in {"PENDING", "RUNNING"}:
                return run
            await asyncio.sleep(0.1)

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
async def agent(answer: Callable[[bytes], bytes]) -> AsyncGenerator[str]:
    """Gives every request the answer that belongs to its body."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
                answered = answer(await reader.readexactly(length))
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(answered) + answered)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=2**24)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    finally:
        server.close()


def simple(output: Json) -> Callable[[bytes], bytes]:
    """An agent that answers in Simple A2A, always the same."""
    answered = encode({"task_id": "any", "status": "success", "output": output})
    return lambda _: answered


def parts_of_task(parts: Json, body: bytes) -> bytes:
    """An answer in JSON-RPC 2.0, with an artifact of these parts."""
    request = decode(body)
    assert isinstance(request, dict)
    result: Json = {
        "kind": "task",
        "id": "remote-1",
        "contextId": "c",
        "status": {"state": "completed"},
        "artifacts": [{"artifactId": "f", "parts": parts}],
    }
    return encode({"jsonrpc": "2.0", "id": request["id"], "result": result})
