"""Lists of large runs: a page has a size, and all runs are on exactly one of them."""

from __future__ import annotations

import pytest

from trunkline.api.paging import MAX_PAGE_BYTES
from trunkline.jsontypes import Json, JsonObject
from trunkline.testing import RunningSystem, ScriptedAgent, simple_success
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
