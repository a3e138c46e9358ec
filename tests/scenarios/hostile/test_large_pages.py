"""Lists of large runs: a page has a size, and all runs are on exactly one of them."""

from __future__ import annotations

import aiohttp
import pytest

from trunkline.api.paging import MAX_PAGE_BYTES
from trunkline.jsontypes import Json, JsonObject
from trunkline.sse import SseParser
from trunkline.testing import RunningSystem, ScriptedAgent, jsonrpc_task, simple_success
from trunkline.testing.system import objects_in

pytestmark = pytest.mark.anyio

WORKFLOW: JsonObject = {"name": "one", "steps": {"work": {"agent": "Worker", "input": {"text": "x"}}}}
LARGE: Json = {"text": "x" * 2_000_000}
RUNS = 12


async def test_a_page_of_large_runs_ends_early(system: RunningSystem) -> None:
    async with ScriptedAgent(simple_success({"text": "done"})) as agent:
        await system.register("Worker", agent.url, protocol="simple-a2a")
        await system.save(WORKFLOW)
        started = [(await system.run("one", LARGE))["id"] for _ in range(RUNS)]
        found: list[Json] = []
        path = "/runs?payloads=true&limit=1000"
        cursor = ""
        while True:
            answer = await system.call("GET", f"{path}{cursor}")
            runs = objects_in(answer.json["items"])
            assert len(answer.body) < 1.5 * MAX_PAGE_BYTES
            assert all(run["input"] == LARGE for run in runs)
            found += [run["id"] for run in runs]
            if answer.json["next_cursor"] is None:
                break
            cursor = f"&cursor={answer.json['next_cursor']}"
    assert found == started[::-1]


async def pages_of(system: RunningSystem, path: str) -> list[list[JsonObject]]:
    """All pages of a list: several, each of which is about as small as the limit."""
    pages: list[list[JsonObject]] = []
    cursor = ""
    while True:
        answer = await system.call("GET", f"{path}limit=1000{cursor}")
        items = objects_in(answer.json["items"])
        assert len(answer.body) < 1.5 * MAX_PAGE_BYTES, len(items)
        pages.append(items)
        if answer.json["next_cursor"] is None:
            assert len(pages) > 1
            return pages
        cursor = f"&cursor={answer.json['next_cursor']}"


async def stream(system: RunningSystem, path: str) -> list[bytes]:
    """The chunks of an event stream, as the server wrote them."""
    chunks = [b""]
    async with (
        aiohttp.ClientSession() as session,
        session.get(
            f"{system.url}/api/v1{path}", headers={"Accept": "text/event-stream"}, read_bufsize=2**24
        ) as response,
    ):
        async for data, is_end in response.content.iter_chunks():
            chunks[-1] += data
            if is_end:
                chunks.append(b"")
    return [chunk for chunk in chunks if chunk]


async def test_pages_of_large_events_end_early(system: RunningSystem) -> None:
    sent: list[str] = []
    for _ in range(5):
        batch: Json = [
            {
                "specversion": "1.0",
                "type": "t",
                "source": "s",
                "id": f"e{len(sent) + n}",
                "data": "x" * 250_000,
            }
            for n in range(16)
        ]
        answer = await system.call("POST", "/events", batch)
        assert answer.status == 202
        sent += [str(event["id"]) for event in objects_in(batch)]
    pages = await pages_of(system, "/events?")
    assert [event["id"] for page in pages for event in page] == sent[::-1]


async def test_pages_and_streams_of_large_questions_end_early(system: RunningSystem) -> None:
    """Whatever an agent asks is in the events of the run and in the inbox."""
    steps: JsonObject = {f"s{number}": {"agent": "Asking", "input": {}} for number in range(RUNS)}
    question = "x" * 2_000_000
    async with ScriptedAgent(jsonrpc_task(question, state="input-required")) as agent:
        await system.register("Asking", agent.url, protocol="jsonrpc-2.0")
        await system.save({"name": "many", "steps": steps})
        run_id = await system.start("many")
        await system.wait_for(run_id, {"WAITING"})
        items = [item for page in await pages_of(system, "/inbox?") for item in page]
        assert {str(item["step"]) for item in items} == steps.keys()
        pages = await pages_of(system, f"/runs/{run_id}/events?")
        await system.call("POST", f"/runs/{run_id}/cancel")
        await system.wait_for(run_id)
    numbers = [event["seq"] for page in pages for event in page]
    assert numbers == list(range(1, len(numbers) + 1))
    streamed = await stream(system, f"/runs/{run_id}/events")
    assert max(map(len, streamed)) < 1.5 * MAX_PAGE_BYTES
    longest = len(question) + 1_000
    events = SseParser(max_line_bytes=longest, max_event_bytes=longest).feed(b"".join(streamed))
    assert [event.id for event in events if event.id][: len(numbers)] == [str(number) for number in numbers]


async def test_pages_of_large_definitions_end_early(system: RunningSystem) -> None:
    """A list does not show them, but they are read for it."""
    note = "x" * 900_000
    for number in range(RUNS):
        steps: JsonObject = {"work": {"agent": "Worker", "input": {"note": note}}}
        await system.save({"name": f"w{number:02}", "steps": steps})
        trigger: JsonObject = {
            "name": f"t{number:02}", "workflow": "w00", "input": {"note": note}, "schedule": {"every": "1h"},
        }  # fmt: skip
        answer = await system.call("PUT", f"/triggers/t{number:02}", trigger)
        assert answer.status == 201, answer.body
    for path, letter in (("/workflows?", "w"), ("/triggers?", "t")):
        pages = await pages_of(system, path)
        assert [each["name"] for page in pages for each in page] == [f"{letter}{n:02}" for n in range(RUNS)]
