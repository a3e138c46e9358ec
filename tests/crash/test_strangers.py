"""
More unfinished connections than a process may open files by default: no run that was accepted fails.

The figures are printed: connections, runs, the longest time of `/livez`, peak memory.
"""

from __future__ import annotations

import asyncio
import resource
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from time import perf_counter

import aiohttp
import pytest
from tests.crash.attack_target import AMPLE_SECONDS, Target, agent, simple
from tests.crash.attacks import MEGABYTE, add_agent, add_workflow, step
from tests.crash.report import write_figures
from tests.crash.server import server_on

from trunkline.jsontypes import Json, JsonObject, decode

pytestmark = pytest.mark.anyio

STRANGERS = 1_300
# So that the limit for one address does not keep them away.
ADDRESSES = ("127.0.0.2", "127.0.0.3", "127.0.0.4")
RUNS = 150
# What a shell or systemd gives to a program that does not ask for more.
USUAL_LIMIT = 1_024


@contextmanager
def open_files(soft: int) -> Generator[None]:
    """The soft limit of this process, which processes that it starts inherit."""
    before, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (before, hard))


@asynccontextmanager
async def strangers(port: int) -> AsyncGenerator[list[asyncio.StreamReader]]:
    """They begin a request, and never end it; one that is sent away comes back."""
    here: dict[asyncio.StreamReader, asyncio.StreamWriter] = {}

    async def stay(number: int) -> None:
        address = (ADDRESSES[number % len(ADDRESSES)], 0)
        while True:
            with suppress(OSError):
                reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=address)
                here[reader] = writer
                writer.write(b"GET /livez HTTP/1.1\r\nHost: x")
                while await reader.read(1024):
                    pass
                del here[reader]
                writer.transport.abort()
            await asyncio.sleep(0.5)

    async with asyncio.TaskGroup() as group:
        staying = [group.create_task(stay(number)) for number in range(STRANGERS)]
        try:
            yield list(here)
        finally:
            for each in staying:
                each.cancel()
            for writer in here.values():
                writer.transport.abort()


def connections_of(process_id: int) -> int:
    """Files and connections that a process has open."""
    return len(list(Path(f"/proc/{process_id}/fd").iterdir()))


async def call(target: Target, method: str, path: str, headers: dict[str, str] | None = None) -> JsonObject:
    """As a client does it that the server may disconnect: it tries again."""
    while True:
        with suppress(aiohttp.ClientConnectionError):
            url = f"{target.server.url}{path}"
            async with target.session.request(method, url, headers=headers) as answer:
                assert answer.status < 400, await answer.text()
                found = decode(await answer.read())
                assert isinstance(found, dict)
                return found
        await asyncio.sleep(0.1)


async def begin(target: Target, number: int) -> str:
    key = {"Idempotency-Key": f"run-{number}"}
    return str((await call(target, "POST", "/api/v1/workflows/good/execute", key))["id"])


async def end_of(target: Target, run_id: str) -> str:
    while True:
        run = await call(target, "GET", f"/api/v1/runs/{run_id}")
        if run["status"] not in {"PENDING", "RUNNING"}:
            return str(run["status"])
        await asyncio.sleep(0.1)


async def watch(target: Target, stopped: asyncio.Event) -> None:
    while not stopped.is_set():
        began = perf_counter()
        await call(target, "GET", "/livez")
        target.longest_livez_ms = max(target.longest_livez_ms, (perf_counter() - began) * 1000)
        await asyncio.sleep(0.05)


async def test_unfinished_connections_of_strangers_fail_no_accepted_run(tmp_path: Path) -> None:
    async with (
        server_on(tmp_path / "data") as server,
        agent(simple({"text": "done"})) as good,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=20)) as session,
        asyncio.timeout(AMPLE_SECONDS),
    ):
        with open_files(USUAL_LIMIT):
            await server.start()
        target = Target(server, session)
        await add_agent(target, "Good", good, "simple-a2a")
        after_a: Json = ["a"]
        after_b: Json = ["b"]
        steps: JsonObject = {
            "a": step("Good"),
            "b": step("Good", needs=after_a),
            "c": step("Good", needs=after_b),
        }
        await add_workflow(target, "good", steps)
        stopped = asyncio.Event()
        port = int(server.url.rpartition(":")[2])
        with open_files(8 * USUAL_LIMIT):
            async with strangers(port), asyncio.TaskGroup() as group:
                while connections_of(server.process_id) < 900:
                    await asyncio.sleep(0.1)
                watching = group.create_task(watch(target, stopped))
                try:
                    begun = await asyncio.gather(*(begin(target, number) for number in range(RUNS)))
                    most = connections_of(server.process_id)
                    ended = [await end_of(target, run_id) for run_id in begun]
                finally:
                    stopped.set()
                await watching
                target.lost_runs = sum(status != "COMPLETED" for status in ended)
        figures = {
            "strangers": STRANGERS,
            "descriptors under strangers": most,
            "runs under strangers": RUNS,
            "runs lost": target.lost_runs,
            "longest /livez, ms, under strangers": round(target.longest_livez_ms),
            "peak memory, MB, under strangers": target.peak_memory_bytes() // MEGABYTE,
        }
        write_figures(figures)
        sys.stdout.write("".join(f"{name}: {figure}\n" for name, figure in figures.items()))
        assert target.lost_runs == 0
        # Each step has one attempt: a call without a descriptor was not counted as one.
        assert most > 900
