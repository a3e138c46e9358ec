"""Strangers' connections and a lack of file descriptors: runs wait for them, and do not fail."""

from __future__ import annotations

import asyncio
import os
import resource
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from trunkline.jsontypes import JsonObject
from trunkline.telemetry import log_events
from trunkline.testing import ScriptedAgent, running_system, simple_success
from trunkline.testing.system import step_of

pytestmark = [pytest.mark.anyio, pytest.mark.embedded_only]


@contextmanager
def no_descriptors_left() -> Generator[None]:
    """Takes every descriptor that this process may still open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(name) for name in os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 16, hard))
    taken: list[int] = []
    try:
        while True:
            try:
                taken.append(os.dup(0))
            except OSError:
                break
        yield
    finally:
        for descriptor in taken:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("protocol", ["simple-a2a", "auto"])
async def test_a_call_without_a_descriptor_waits_and_costs_no_attempt(tmp_path: Path, protocol: str) -> None:
    async with (
        ScriptedAgent(simple_success("ok")) as agent,
        running_system(tmp_path) as system,
    ):
        await system.register("Agent", agent.url, protocol=protocol)
        step: JsonObject = {"agent": "Agent", "retry": {"max_attempts": 1}}
        await system.save({"name": "one", "steps": {"only": step}})
        with capture_logs() as lines, no_descriptors_left():
            run_id = await system.start("one")
            while not any(line["event"] == log_events.OUT_OF_RESOURCES for line in lines):
                assert (await system.get(run_id))["status"] != "FAILED"
                await asyncio.sleep(0.02)
        run = await system.wait_for(run_id)
    assert run["status"] == "COMPLETED", run["error"]
    assert step_of(run, "only")["attempts"] == 1


async def test_clients_that_only_connect_stop_no_run(tmp_path: Path) -> None:
    async with (
        ScriptedAgent(simple_success("ok")) as agent,
        running_system(tmp_path, max_connections=40, max_connections_per_address=40) as system,
    ):
        await system.register("Agent", agent.url, protocol="simple-a2a")
        await system.save({"name": "one", "steps": {"only": {"agent": "Agent"}}})
        host, port = system.url.removeprefix("http://").split(":")
        idle_connections = [await asyncio.open_connection(host, int(port)) for _ in range(200)]
        for _, writer in idle_connections:
            writer.write(b"GET /livez HTTP/1.1\r\nHost: x")
        async with asyncio.timeout(60):
            run = await system.run("one")
            # The oldest had to go.
            assert await idle_connections[0][0].read() == b""
        for _, writer in idle_connections:
            writer.transport.abort()
    assert run["status"] == "COMPLETED"
