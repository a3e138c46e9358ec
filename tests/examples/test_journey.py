"""Each pair of agents through a whole migration: every run reads the same text and data, and nothing is refused."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable

import pytest
from tests.examples.processes import EXAMPLES, GUIDE_AGENTS, Side
from tests.services import shared

from trunkline.jsontypes import Json, JsonObject
from trunkline.testing import RunningSystem, running_system
from trunkline.testing.system import objects_in

pytestmark = pytest.mark.anyio

INPUT: JsonObject = {"query": "What can you do?", "depth": 2}
ANSWER = "Processed: What can you do?"
WORKFLOWS: dict[str, JsonObject] = {
    "full": {"text": "${steps.only.output.text}", "data": "${steps.only.output.data.result}"},
    "data": {"whole": "${steps.only.output}", "result": "${steps.only.output.result}"},
}
READ: dict[str, Json] = {
    "full": {"text": ANSWER, "data": ANSWER},
    "data": {"whole": {"result": ANSWER}, "result": ANSWER},
}


@pytest.fixture(params=[*EXAMPLES, *GUIDE_AGENTS])
def pair(request: pytest.FixtureRequest) -> Callable[[Side], str]:
    told = shared(str(request.param), request.config)
    return lambda side: str(told[side])


@pytest.fixture(scope="module")
async def system(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[RunningSystem]:
    async with running_system(tmp_path_factory.mktemp("journey") / "data") as running:
        yield running


async def move(system: RunningSystem, how: str, **body: Json) -> JsonObject:
    answer = await system.call("POST", f"/migration/agents/Example/{how}", {"why": "a test", **body})
    assert answer.status == 200, answer.body
    return answer.json


async def compared(system: RunningSystem, number: int) -> list[JsonObject]:
    found: list[JsonObject] = []
    while len(found) < number:
        found = await system.items("/migration/agents/Example/comparisons")
    return found


@pytest.mark.parametrize("output_mode", WORKFLOWS)
async def test_every_stage_reads_the_same_and_the_cutover_is_not_refused(
    system: RunningSystem, pair: Callable[[Side], str], output_mode: str
) -> None:
    await system.call("DELETE", "/agents/Example")
    config: JsonObject = {"output_mode": output_mode}
    await system.register(
        "Example", pair("before"), protocol="simple-a2a", protocol_config=config, repeatable=True
    )
    step: JsonObject = {"agent": "Example", "retry": {"max_attempts": 1}}
    await system.save({"name": "journey", "steps": {"only": step}, "output": WORKFLOWS[output_mode]})

    async def read(protocol: str) -> None:
        done = await system.run("journey", INPUT)
        assert (done["status"], done["output"]) == ("COMPLETED", READ[output_mode]), done
        assert {str(found["protocol"]) for found in objects_in(done["steps"])} == {protocol}

    await read("simple-a2a")
    target: JsonObject = {"url": pair("after"), "protocol_config": config}
    await move(system, "shadow", percent=100, target=target, limits={"comparisons": 2})
    await read("simple-a2a")
    await read("simple-a2a")
    assert {str(found["verdict"]) for found in await compared(system, 2)} == {"agree"}
    status = (await system.call("GET", "/migration/agents/Example")).json
    assert status["expressions"] == []
    await move(system, "canary", percent=100)
    await read("jsonrpc-2.0")
    await move(system, "ready", note="deployed")
    await move(system, "cutover")
    await read("jsonrpc-2.0")
    await move(system, "rollback")
    await read("simple-a2a")
