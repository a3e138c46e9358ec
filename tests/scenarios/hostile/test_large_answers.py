"""Large answers at the same time: calls wait for the memory that they need, and none of them fails."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.scenarios.hostile.agents import LOOPBACK, ConnectionScript, RawAgent, running

from trunkline.jsontypes import JsonObject
from trunkline.testing import ScriptedAgent, running_system, simple_success
from trunkline.transports.answer_memory import CALL_MEMORY, COPIES, CallMemory, MemoryBudget
from trunkline.transports.https import HttpTransport

pytestmark = [pytest.mark.anyio, pytest.mark.embedded_only]

SIZE = 300_000
AMPLE = 60.0
SHORT = 1.0


async def declared(agent: RawAgent, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await agent.request(reader)
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % SIZE + b"x" * SIZE)


async def chunked(agent: RawAgent, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Its length is wrong, too: chunks count."""
    await agent.request(reader)
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in range(30):
        writer.write(b"2710\r\n" + b"x" * 10_000 + b"\r\n")
    writer.write(b"0\r\n\r\n")


@pytest.mark.parametrize("script", [declared, chunked])
async def test_an_answer_is_read_when_the_one_before_it_is_done_with(script: ConnectionScript) -> None:
    budget = MemoryBudget(COPIES * SIZE * 3 // 2)
    memories = [CallMemory(budget) for _ in range(2)]

    async with running(script) as agent, HttpTransport(LOOPBACK, memory=budget) as transport:

        async def call(memory: CallMemory) -> int:
            CALL_MEMORY.set(memory)
            return len((await transport.post(agent.url, b"{}", {}, AMPLE)).body)

        async with asyncio.timeout(AMPLE):
            assert await asyncio.create_task(call(memories[0])) == SIZE
            assert budget.taken_bytes == COPIES * SIZE
            second = asyncio.create_task(call(memories[1]))
            while budget.has_room:
                assert not second.done()
                await asyncio.sleep(0.01)
            memories[0].release()
            assert await second == SIZE
    memories[1].release()
    assert budget.taken_bytes == 0


@pytest.mark.parametrize("script", [declared, chunked])
async def test_the_time_of_a_call_stands_still_while_it_waits_for_memory(script: ConnectionScript) -> None:
    budget = MemoryBudget(COPIES * SIZE)
    holder = CallMemory(budget)
    await holder.take(COPIES * SIZE)
    clock = asyncio.get_running_loop().time
    async with running(script) as agent, HttpTransport(LOOPBACK, memory=budget) as transport:
        async with asyncio.timeout(AMPLE):
            waiting = asyncio.create_task(transport.post(agent.url, b"{}", {}, SHORT))
            while budget.has_room:
                assert not waiting.done()
                await asyncio.sleep(0.01)
            began = clock()
            while clock() < began + 2 * SHORT:
                await asyncio.sleep(0.01)
            holder.release()
            assert len((await waiting).body) == SIZE
    assert budget.taken_bytes == 0


async def test_many_large_answers_at_once_fail_no_run(tmp_path: Path) -> None:
    """Twenty at the same time, with memory for one: each waits, and none fails."""
    runs = 20
    async with (
        ScriptedAgent(simple_success({"text": "x" * SIZE})) as agent,
        running_system(tmp_path, max_memory_in_flight=COPIES * SIZE) as system,
    ):
        await system.register("Large", agent.url, protocol="simple-a2a", timeout_ms=5_000)
        step: JsonObject = {"agent": "Large", "retry": {"max_attempts": 1}}
        await system.save({"name": "one", "steps": {"only": step}})
        started = [await system.start("one") for _ in range(runs)]
        async with asyncio.timeout(AMPLE):
            ended = [await system.wait_for(run_id) for run_id in started]
        assert {str(run["status"]) for run in ended} == {"COMPLETED"}
        # Given back by every one of them.
        assert await system.metric("trunkline_answer_memory_bytes") == 0
