"""One step of a run, and a run without what its steps were given: nobody has to read megabytes to see one value."""

from __future__ import annotations

import pytest

from trunkline.jsontypes import JsonObject
from trunkline.messages import ERROR_CODES
from trunkline.testing import RunningSystem, ScriptedAgent, simple_success
from trunkline.testing.system import objects_in

pytestmark = pytest.mark.anyio

STEPS: JsonObject = {
    "one": {"agent": "Agent"},
    "each": {
        "agent": "Agent",
        "for_each": {"items": "${ input.words }"},
        "input": {"word": "${ item }"},
    },
    "later": {"agent": "Agent", "when": "false"},
}


async def finished(system: RunningSystem, agent: ScriptedAgent) -> str:
    await system.register("Agent", agent.url, protocol="simple-a2a")
    await system.save({"name": "three", "steps": STEPS})
    return str((await system.run("three", {"words": ["a", "b"]}))["id"])


async def test_one_step_is_what_the_run_says_of_it(system: RunningSystem) -> None:
    async with ScriptedAgent(simple_success("ok")) as agent:
        run_id = await finished(system, agent)
    run = await system.get(run_id)
    for step in objects_in(run["steps"]):
        alone = await system.call("GET", f"/runs/{run_id}/steps/{step['name']}")
        assert (alone.status, alone.json) == (200, step)


async def test_one_item_is_what_the_list_of_items_says_of_it(system: RunningSystem) -> None:
    async with ScriptedAgent(simple_success("ok")) as agent:
        run_id = await finished(system, agent)
    listed = await system.items(f"/runs/{run_id}/steps?of=each")
    alone = await system.call("GET", f"/runs/{run_id}/steps/each%5B1%5D")
    assert alone.json == listed[1]
    assert alone.json["input"] == {"word": "b"}


@pytest.mark.parametrize("name", ["nobody", "each%5B7%5D", "one%5B0%5D", "each%5B"])
async def test_a_step_that_is_none_is_said_to_be_none(system: RunningSystem, name: str) -> None:
    async with ScriptedAgent(simple_success("ok")) as agent:
        run_id = await finished(system, agent)
    missing = await system.call("GET", f"/runs/{run_id}/steps/{name}")
    assert missing.status == 404
    assert missing.json["fix"] == "Its steps: one, each, later."


async def test_a_run_can_be_read_without_what_its_steps_were_given(system: RunningSystem) -> None:
    async with ScriptedAgent(simple_success("ok")) as agent:
        run_id = await finished(system, agent)
    run = (await system.call("GET", f"/runs/{run_id}?step_payloads=false")).json
    listed = await system.items(f"/runs/{run_id}/steps?payloads=false")
    assert run["input"] == {"words": ["a", "b"]}
    assert objects_in(run["steps"]) == listed
    assert not any(step.keys() & {"input", "output"} for step in listed)
    assert all(step["status"] for step in listed)


async def test_a_flag_that_is_neither_true_nor_false_is_refused(system: RunningSystem) -> None:
    refused = await system.call("GET", "/runs/any?step_payloads=maybe")
    assert refused.status == 422
    assert "step_payloads is 'maybe'" in str(refused.json["detail"])


async def test_every_error_code_is_listed_with_its_fix(system: RunningSystem) -> None:
    listed = objects_in((await system.call("GET", "/error-codes")).json["items"])
    assert [code["code"] for code in listed] == list(ERROR_CODES)
    told = {str(code["code"]): (code["reached_agent"], code["fix"]) for code in listed}
    assert told["agent_dns_failed"] == (
        "no",
        "Correct the host name in the agent's url, or make it resolvable where the bridge runs.",
    )
    assert told["agent_timeout"][0] == "maybe"
    assert told["agent_jsonrpc_error"][0] == "yes"
