"""Large answers at the same time: calls wait for the memory that they need, and none of them fails."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.scenarios.hostile.agents import LOOPBACK, ConnectionScript, RawAgent, running

from trunkline.jsontypes import Json, JsonObject
from trunkline.stores.port.transfer import PAYLOADS
from trunkline.stores.sqlite import open_sqlite
from trunkline.testing import ScriptedAgent, running_system, simple_success
from trunkline.testing.agents import Call
from trunkline.transports.answer_memory import CALL_MEMORY, COPIES, INPUT_COPIES, CallMemory, MemoryBudget
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


async def queued_tasks(data: Path) -> int:
    async with open_sqlite(data / "trunkline.db", allow_in_use=True) as store:
        return (await store.backlog.count()).queued_tasks


async def stored_pieces(data: Path) -> list[int]:
    """The sizes of large payloads as they are stored."""
    async with open_sqlite(data / "trunkline.db", allow_in_use=True) as store, store.transaction() as tx:
        rows = [row async for batch in tx.transfer.dump(PAYLOADS) for row in batch]
    return [len(row[1]) for row in rows if isinstance(row[1], bytes)]


async def test_a_call_with_a_large_input_begins_when_the_one_before_it_has_ended(tmp_path: Path) -> None:
    may_answer = asyncio.Event()

    async def slow(call: Call) -> Json:
        await may_answer.wait()
        return simple_success("ok")(call)

    async with (
        ScriptedAgent(slow) as agent,
        # The input of one call takes half of it.
        running_system(tmp_path, max_memory_in_flight=2 * INPUT_COPIES * SIZE) as system,
    ):
        await system.register("Large", agent.url, protocol="simple-a2a")
        await system.save({"name": "one", "steps": {"only": {"agent": "Large", "input": "${ input }"}}})
        async with asyncio.timeout(AMPLE):
            runs = [await system.start("one", {"text": "x" * SIZE})]
            await agent.called()
            runs.append(await system.start("one", {"text": "y" * SIZE}))
            while await queued_tasks(tmp_path) == 0:
                await asyncio.sleep(0.01)
            assert len(agent.calls) == 1
            taken = await system.metric("trunkline_answer_memory_bytes")
            assert taken is not None
            assert taken > INPUT_COPIES * SIZE
            may_answer.set()
            ended = [await system.wait_for(run_id) for run_id in runs]
        assert {str(run["status"]) for run in ended} == {"COMPLETED"}
        assert await system.metric("trunkline_answer_memory_bytes") == 0


async def test_an_answer_that_every_item_of_a_loop_reads_is_stored_once(tmp_path: Path) -> None:
    items = 60
    given: list[str] = []

    def note(call: Call) -> Json:
        data = call.body["input"]
        assert isinstance(data, dict)
        given.append(str(data["text"]))
        return simple_success({"text": "done"})(call)

    async with (
        ScriptedAgent(simple_success({"text": "x" * SIZE})) as reader,
        ScriptedAgent(note) as agent,
        running_system(tmp_path) as system,
    ):
        await system.register("Reader", reader.url, protocol="simple-a2a")
        await system.register("Each", agent.url, protocol="simple-a2a")
        text = "${ steps.read.output.text }"
        each: JsonObject = {
            "agent": "Each",
            "needs": ["read"],
            "for_each": list(range(items)),
            "input": {"text": text, "item": "${ item }"},
        }
        steps: JsonObject = {"read": {"agent": "Reader"}, "each": each}
        await system.save({"name": "loop", "steps": steps, "output": text})
        async with asyncio.timeout(AMPLE):
            run = await system.wait_for(await system.start("loop"))
        assert run["status"] == "COMPLETED", run["error"]
        assert run["output"] == "x" * SIZE
        assert given == ["x" * SIZE] * items
        # Once, and not with each of the sixty steps and tasks.
        assert await stored_pieces(tmp_path) == [SIZE + 2]
        assert (tmp_path / "trunkline.db").stat().st_size < 12 * SIZE
