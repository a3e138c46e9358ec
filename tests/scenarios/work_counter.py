"""
Counts the work of a step: calls, messages encoded and decoded, rows and bytes written.

    python -m tests.scenarios.work_counter FOLDER

It is a process of its own, with its logs as by default. What a process has done before changes what it calls.
"""

from __future__ import annotations

import asyncio
import dis
import json
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import apsw
import msgspec
import uvloop

from trunkline.telemetry.logs import configure_logs
from trunkline.testing.system import running_system

RUNS = 200
AT_A_TIME = 50
STEPS = 3
TEXT = "What does a durable workflow cost, and who pays for it? " * 4
RUN_INPUT = msgspec.json.encode({"text": TEXT})
WORKFLOW = """
name: work
steps:
  one: {agent: Echo, input: {text: "${ input.text }"}}
  two: {agent: Echo, input: {text: "${ steps.one.output.text }"}}
  three: {agent: Echo, input: {text: "${ steps.two.output.text }"}}
output: ${ steps.three.output.text }
"""
COUNTS = ("encodes", "decodes", "rows", "bytes", "python calls")


class WorkCounter:
    """What the thread that made this does, while it is counted."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys(COUNTS, 0)
        self.statements: dict[str, int] = {}
        self._calls: dict[CodeType, int] = {}
        self._connections: list[apsw.Connection] = []

    def watch(self, connection: apsw.Connection) -> None:
        self._connections.append(connection)

    @contextmanager
    def counted(self) -> Generator[None]:
        before = self._changed_rows()
        for connection in self._connections:
            connection.exec_trace = self._see_statement
        sys.setprofile(self._see_call)
        try:
            yield
        finally:
            sys.setprofile(None)
            for connection in self._connections:
                connection.exec_trace = None
            self.counts["rows"] += self._changed_rows() - before
            # Whole calls in each run. How often turns and wake-ups happen depends on how busy the machine is.
            self.counts["python calls"] += sum(calls // RUNS * RUNS for calls in self._calls.values())

    def _changed_rows(self) -> int:
        return sum(connection.total_changes() for connection in self._connections)

    def _see_statement(self, _cursor: object, sql: str, values: Any) -> bool:
        self.statements[sql] = self.statements.get(sql, 0) + 1
        if sql.split(None, 1)[0].upper() in {"INSERT", "UPDATE"}:
            self.counts["bytes"] += sum(
                len(value) if isinstance(value, str | bytes) else 8 for value in values
            )
        return True

    def _see_call(self, frame: FrameType, event: str, called: Any) -> None:
        if frame.f_code.co_filename == __file__:
            # Only counts.
            return
        if event == "call":
            # How often a coroutine is resumed depends on how busy the machine is; how often it is called does not.
            if frame.f_lasti <= _first_instruction(frame.f_code):
                self._calls[frame.f_code] = self._calls.get(frame.f_code, 0) + 1
        elif event == "c_call":
            owner = called.__self__
            if "msgspec" in f"{type(owner).__module__} {getattr(owner, '__name__', '')}":
                if called.__name__ in {"encode", "encode_into", "to_builtins"}:
                    self.counts["encodes"] += 1
                elif called.__name__ in {"decode", "convert"}:
                    self.counts["decodes"] += 1


@cache
def _first_instruction(code: CodeType) -> int:
    """Where a function starts, and also a coroutine that runs for the first time."""
    return next((found.offset for found in dis.get_instructions(code) if found.opname == "RESUME"), 0)


class AgentAndClients:
    """The agent and the clients, in a thread of their own."""

    def __init__(self) -> None:
        self.calls = 0

    async def agent(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                request = json.loads(await _body(reader))
                self.calls += 1
                text = request["params"]["message"]["parts"][0]["text"]
                message = {
                    "kind": "message",
                    "role": "agent",
                    "messageId": str(self.calls),
                    "parts": [{"kind": "text", "text": text}],
                }
                body = json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": message}).encode()
                head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                writer.write(head % len(body) + body)
        writer.close()

    async def clients(self, url: str, runs: int) -> None:
        waiting = iter(range(runs))
        await asyncio.gather(*(self._client(url, waiting) for _ in range(AT_A_TIME)))

    async def _client(self, url: str, waiting: Generator[int] | Any) -> None:
        host, _, port = url.removeprefix("http://").partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        for _ in waiting:
            writer.write(
                b"POST /api/v1/workflows/work/execute?wait=60 HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(RUN_INPUT) + RUN_INPUT
            )
            run = json.loads(await _body(reader))
            assert (run["status"], run.get("output")) == ("COMPLETED", TEXT), run
        writer.close()


async def _body(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    return await reader.readexactly(int(length.partition(b":")[2]))


async def count(folder: Path) -> WorkCounter:
    work, outside = WorkCounter(), AgentAndClients()
    elsewhere = asyncio.new_event_loop()
    thread = asyncio.create_task(asyncio.to_thread(elsewhere.run_forever))

    async def there(coroutine: Any) -> Any:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, elsewhere))

    apsw.connection_hooks.append(work.watch)
    try:
        server = await there(asyncio.start_server(outside.agent, "127.0.0.1", 0))
        async with running_system(folder) as system:
            port = server.sockets[0].getsockname()[1]
            await system.register("Echo", f"http://127.0.0.1:{port}/", protocol="jsonrpc-2.0")
            await system.save(WORKFLOW)
            await there(outside.clients(system.url, AT_A_TIME))
            before = outside.calls
            with work.counted():
                await there(outside.clients(system.url, RUNS))
            assert outside.calls - before == RUNS * STEPS
        elsewhere.call_soon_threadsafe(server.close)
    finally:
        apsw.connection_hooks.remove(work.watch)
        elsewhere.call_soon_threadsafe(elsewhere.stop)
        await thread
        elsewhere.close()
    return work


if __name__ == "__main__":
    configure_logs("info", "json")
    counted = uvloop.run(count(Path(sys.argv[1])))
    per_step = {name: number / RUNS / STEPS for name, number in counted.counts.items()}
    sys.stdout.write(json.dumps({"per_step": per_step, "statements": counted.statements}))
