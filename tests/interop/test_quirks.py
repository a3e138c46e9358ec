"""What one framework alone does."""

from __future__ import annotations

import pytest
from tests.interop.agents import KINDS, Agent
from tests.interop.workflows import message, name_of, one, output_of, run_workflow

from trunkline.jsontypes import JsonObject
from trunkline.testing import RunningSystem
from trunkline.testing.system import error_of, step_of

pytestmark = pytest.mark.anyio


def only(*names: str) -> pytest.MarkDecorator:
    assert KINDS.keys() >= set(names)
    return pytest.mark.parametrize("agent", names, indirect=True)


@only("google-adk")
async def test_the_tokens_of_adk_are_in_the_output_and_its_thoughts_are_not_in_the_text(
    system: RunningSystem, agent: Agent
) -> None:
    output = output_of(await run_workflow(system, agent, "good morning"))
    assert output["text"] == "Heard: good morning"
    assert output["usage"] == {"promptTokenCount": 3, "candidatesTokenCount": 4, "totalTokenCount": 7}


@only("google-adk")
async def test_adk_receives_the_result_of_its_function(system: RunningSystem, agent: Agent) -> None:
    run_id = await system.start(name_of(one, agent), message("ask which city?"))
    waiting = await system.wait_for(run_id, {"WAITING", "FAILED", "COMPLETED"})
    assert waiting["status"] == "WAITING", waiting["error"]
    answer: JsonObject = {"id": "question-1", "name": "ask_a_person", "response": {"result": "Rome"}}
    await system.call("POST", f"/runs/{run_id}/steps/only/reply", {"data": answer})
    assert output_of(await system.wait_for(run_id))["text"] == "Returned: Rome"


@only("a2a-js-0.3", "a2a-js-1")
async def test_a_message_that_is_too_long_for_express_fails_with_its_size(
    system: RunningSystem, agent: Agent
) -> None:
    run = await run_workflow(system, agent, "x" * 150_000)
    assert run["status"] == "FAILED"
    error = error_of(run)
    assert error["http_status"] == 413
    assert "kB" in f"{error['message']}{error['fix']}"


@only("a2a-sdk-1-with-0.3")
async def test_an_agent_of_both_versions_speaks_the_older_one_when_it_is_pinned(
    system: RunningSystem, agent: Agent
) -> None:
    await system.call("DELETE", "/agents/Pinned")
    await system.register("Pinned", agent.url, protocol="a2a-0.3")
    await system.save({"name": "pinned", "steps": {"only": {"agent": "Pinned"}}})
    run = await system.run("pinned", {"text": "good morning"})
    assert output_of(run)["text"] == "Heard: good morning"
    assert step_of(run, "only")["protocol"] == "a2a-0.3"
