"""Hundreds of bad inputs against the program as it is started: each its documented outcome, and little memory."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import aiohttp
import pytest
from tests.crash.client import TrunklineClient
from tests.crash.server import KillableServer, server_on
from tests.scenarios.hostile.bad_inputs import BadInput, bad_inputs, good, http

from trunkline.jsontypes import JsonObject
from trunkline.messages import ERROR_CODES

pytestmark = [pytest.mark.anyio, pytest.mark.embedded_only]

INPUTS = list(bad_inputs())
_MOST_MEMORY = 64 * 1024 * 1024
# 60 MB on an idle machine, and 82 MB were seen on a busy one.
_MOST_KEPT_MEMORY = 96 * 1024 * 1024


class Agents:
    """All of them on one port: the first part of the path says which."""

    def __init__(self, inputs: Sequence[BadInput]) -> None:
        self._inputs = inputs
        self.port = 0

    def url(self, number: int) -> str:
        return f"http://127.0.0.1:{self.port}/{number}/"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Whoever does not want to hear more goes away.
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"Content-Length: (\d+)", head)
            body = await reader.readexactly(int(length[1]) if length else 0)
            writer.write(self._answer(head.split(b" ")[1].decode(), head.startswith(b"GET"), body))
            await writer.drain()
        writer.close()

    def _answer(self, path: str, is_get: bool, body: bytes) -> bytes:
        number, _, rest = path.removeprefix("/").partition("/")
        one = self._inputs[int(number)] if number.isdecimal() else None
        if one is None or (is_get and not (one.card and rest.endswith("agent-card.json"))):
            return http(b"", status=404)
        if is_get:
            card = one.card.replace(b"{url}", self.url(int(number)).encode())
            return card if card.startswith(b"HTTP/") else http(card)
        request_id = re.search(rb'"(?:id|task_id)":"([^"]*)"', body)
        asked = request_id[1].decode() if request_id else ""
        # An agent whose stream broke off still knows how its task ended.
        return good(asked) if b'"tasks/get"' in body else one.answer(asked)


@asynccontextmanager
async def agents_running() -> AsyncGenerator[Agents]:
    agents = Agents(INPUTS)
    server = await asyncio.start_server(agents.serve, "127.0.0.1", 0, backlog=512)
    agents.port = server.sockets[0].getsockname()[1]
    try:
        yield agents
    finally:
        server.close()


async def outcome(client: TrunklineClient, url: str, number: int, one: BadInput) -> str:
    name = f"bad-{number}"
    await client.call(
        "POST",
        "/agents",
        {"name": name, "url": url, "protocol": one.protocol, "timeout_ms": one.timeout_ms},
    )
    step: JsonObject = {"agent": name, "retry": {"max_attempts": 1}}
    await client.call("POST", "/workflows", {"name": name, "steps": {"only": step}})
    run = await client.call("POST", f"/workflows/{name}/execute?wait=60", {})
    error = run["error"]
    return str(error["code"]) if isinstance(error, dict) else str(run["status"])


def memory_of(process_id: int, line: str) -> int:
    status = Path(f"/proc/{process_id}/status").read_text()
    found = re.search(rf"{line}:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) * 1024


def forget_the_most(process_id: int) -> None:
    """From now on `VmHWM` is the most since now."""
    Path(f"/proc/{process_id}/clear_refs").write_text("5")


class TriedInput(NamedTuple):
    outcome: str
    # Bytes of memory that it took for a moment.
    most: int


async def tried(server: KillableServer) -> dict[str, TriedInput]:
    """One after the other, so that each has its own measure."""
    found: dict[str, TriedInput] = {}
    async with agents_running() as agents, aiohttp.ClientSession() as session:
        client = TrunklineClient(session, server.url)
        for number, one in enumerate(INPUTS):
            before = memory_of(server.process_id, "VmRSS")
            forget_the_most(server.process_id)
            came = await outcome(client, agents.url(number), number, one)
            found[one.name] = TriedInput(came, memory_of(server.process_id, "VmHWM") - before)
        await client.raw("GET", "/readyz")
    return found


def test_there_are_enough_of_them_and_each_outcome_is_documented() -> None:
    assert len(INPUTS) >= 200
    assert len({one.name for one in INPUTS}) == len(INPUTS)
    assert {one.outcome for one in INPUTS} <= {*ERROR_CODES, "COMPLETED"}


@pytest.mark.skipif(sys.platform != "linux", reason="the memory of another process is read from /proc")
async def test_every_bad_input_has_its_outcome_and_costs_little_memory(tmp_path: Path) -> None:
    async with server_on(tmp_path / "data") as server:
        await server.start()
        before = memory_of(server.process_id, "VmRSS")
        found = await tried(server)
        kept = memory_of(server.process_id, "VmRSS") - before
    expected = {one.name: one.outcome for one in INPUTS}
    came = {name: result.outcome for name, result in found.items()}
    assert came == expected
    assert {name: result.most for name, result in found.items() if result.most > _MOST_MEMORY} == {}
    assert kept <= _MOST_KEPT_MEMORY
