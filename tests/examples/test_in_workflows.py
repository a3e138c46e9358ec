"""The examples as agents of a workflow, which reads their output alike before and after."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable

import pytest
from tests.examples.processes import Side

from trunkline.jsontypes import Json, JsonObject
from trunkline.testing import RunningSystem, running_system
from trunkline.testing.system import error_of

pytestmark = pytest.mark.anyio

# How each side may be registered; `auto` finds out by itself.
WAYS: dict[str, tuple[Side, JsonObject]] = {
    "before": ("before", {"protocol": "simple-a2a"}),
    "before by auto": ("before", {"protocol": "auto"}),
    "after": ("after", {"protocol": "jsonrpc-2.0"}),
    "after as JSON": ("after", {"protocol": "jsonrpc-2.0", "protocol_config": {"input_mode": "json"}}),
    "after as data": ("after", {"protocol": "jsonrpc-2.0", "protocol_config": {"input_mode": "data"}}),
    "after by auto": ("after", {"protocol": "auto"}),
}
WORKFLOW: JsonObject = {
    "name": "one",
    "steps": {"only": {"agent": "Example", "retry": {"max_attempts": 1}}},
    "output": "${steps.only.output.data.result}",
}


@pytest.fixture(scope="module")
async def system(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[RunningSystem]:
    async with running_system(tmp_path_factory.mktemp("examples") / "data") as running:
        await running.register("Example", "http://127.0.0.1:9/agent")
        await running.save(WORKFLOW)
        yield running


async def run(system: RunningSystem, url: str, fields: JsonObject, given: Json) -> JsonObject:
    await system.call("DELETE", "/agents/Example")
    await system.register("Example", url, **fields)
    return await system.run("one", given)


@pytest.mark.parametrize("way", WAYS)
async def test_a_workflow_reads_the_output_alike_before_and_after(
    system: RunningSystem, url_of: Callable[[Side], str], way: str
) -> None:
    side, fields = WAYS[way]
    done = await run(system, url_of(side), fields, {"query": "tides", "n": 2})
    assert (done["status"], done["output"]) == ("COMPLETED", "Processed: tides"), done


@pytest.mark.parametrize("way", ["before", "after"])
async def test_a_failure_has_the_agents_own_message(
    system: RunningSystem, url_of: Callable[[Side], str], way: str
) -> None:
    side, fields = WAYS[way]
    failed = await run(system, url_of(side), fields, {"query": 7})
    assert failed["status"] == "FAILED"
    assert "query must be a string" in str(error_of(failed)["message"])
