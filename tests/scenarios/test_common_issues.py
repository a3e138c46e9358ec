"""The eight common migration issues, as an operator reads them in the run, on the wire and in the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any  # what structlog's lines hold

import pytest
from structlog.testing import capture_logs

from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.testing import Call, RunningSystem, ScriptedAgent, simple_success
from trunkline.testing.agents import Reply, Script
from trunkline.testing.system import error_of, step_of

pytestmark = pytest.mark.anyio

Lines = Sequence[Mapping[str, Any]]


def task(**fields: Json) -> Script:
    """A task without anything but what is given."""

    def answer(call: Call) -> Json:
        return {"jsonrpc": "2.0", "id": call.id, "result": dict(fields)}

    return answer


async def issue(system: RunningSystem, name: str, script: Script) -> tuple[JsonObject, JsonObject, Lines]:
    """The run, what was on the wire, and what was logged."""
    with capture_logs() as logs:
        async with ScriptedAgent(script) as agent:
            await system.register(name, agent.url, protocol="jsonrpc-2.0")
            step: JsonObject = {"agent": name, "retry": {"max_attempts": 1}}
            await system.save({"name": name, "steps": {"only": step}})
            run = await system.run(name, {"query": "hi"})
            (exchange,) = await system.items(f"/runs/{run['id']}/wire")
    return run, exchange, logs


def line(logs: Lines, level: str, text: str) -> Mapping[str, Any]:
    """The first line of this level that says this, with everything that a line of a task carries."""
    found, *_ = [entry for entry in logs if entry["log_level"] == level and text in repr(entry)]
    assert {"run_id", "task_id", "agent_name", "correlation_id", "protocol"} <= found.keys()
    return found


async def test_1_an_agent_that_cannot_find_its_input_says_so_and_its_error_tells_where_to_look(
    shared_system: RunningSystem,
) -> None:
    refused: JsonObject = {"detail": "Field 'query' is missing"}
    run, _, logs = await issue(shared_system, "issue-1", Reply(422, encode(refused)))
    assert error_of(run)["code"] == "agent_http_error"
    assert "Field 'query' is missing" in str(error_of(run)["message"])
    assert "where it looks for its input" in str(error_of(run)["fix"])
    line(logs, "error", "Field 'query' is missing")


@pytest.mark.parametrize("missing", ["jsonrpc", "id", "result"])
async def test_2_an_answer_without_a_required_field_is_called_malformed(
    shared_system: RunningSystem, missing: str
) -> None:
    def incomplete(call: Call) -> Json:
        whole: JsonObject = {"jsonrpc": "2.0", "id": call.id, "result": {"status": {"state": "completed"}}}
        return {name: value for name, value in whole.items() if name != missing}

    run, exchange, logs = await issue(shared_system, f"issue-2-{missing}", incomplete)
    assert str(error_of(run)["message"]).startswith("malformed JSON-RPC response: Response missing")
    assert f"'{missing}'" in str(error_of(run)["message"])
    assert "always respond with 'jsonrpc': '2.0'" in str(error_of(run)["fix"])
    logged = line(logs, "error", "malformed JSON-RPC response")
    assert logged["event"] == "protocol_translation_error"
    assert logged["direction"] == "response"
    assert isinstance(exchange["response"], dict)
    assert repr(logged["data"]) == exchange["response"]["body"]


@pytest.mark.parametrize(
    "artifacts",
    [[], [{"artifactId": "a", "parts": []}], [{"artifactId": "a"}]],
    ids=["none", "empty", "no parts"],
)
async def test_3_empty_artifacts_are_a_warning_and_the_full_result_is_the_output(
    shared_system: RunningSystem, artifacts: list[Json], request: pytest.FixtureRequest
) -> None:
    name = f"issue-3-{request.node.callspec.id.replace(' ', '-')}"
    status: JsonObject = {"state": "completed"}
    run, exchange, logs = await issue(shared_system, name, task(status=status, artifacts=artifacts))
    assert run["status"] == "COMPLETED"
    assert step_of(run, "only")["output"] == {"status": status, "artifacts": artifacts}
    warnings = step_of(run, "only")["warnings"]
    assert isinstance(warnings, list)
    assert "artifacts" in str(warnings[0]).lower()
    assert exchange["notes"] == warnings
    line(logs, "warning", "artifacts")


async def test_4_a_state_that_is_not_recognised_is_named(shared_system: RunningSystem) -> None:
    script = task(status={"state": "done"}, artifacts=[{"parts": [{"kind": "text", "text": "fine"}]}])
    run, _, logs = await issue(shared_system, "issue-4", script)
    assert run["status"] == "FAILED"
    assert str(error_of(run)["message"]).startswith("Task state: done")
    assert "completed" in str(error_of(run)["fix"])
    assert "fine" in str(error_of(run)["detail"])
    line(logs, "error", "Task state: done")


async def test_5_an_error_in_a_result_is_reported_as_what_it_is(shared_system: RunningSystem) -> None:
    script = task(status="error", error="out of paper")
    run, _, logs = await issue(shared_system, "issue-5", script)
    assert run["status"] == "FAILED"
    assert "out of paper" in str(error_of(run))
    assert "'error'" in str(error_of(run)["fix"])
    line(logs, "error", "out of paper")


async def test_6_a_history_that_cannot_be_read_is_a_warning(shared_system: RunningSystem) -> None:
    script = task(status={"state": "completed"}, history=[{"parts": [{"kind": "text", "text": "hi"}]}])
    run, exchange, logs = await issue(shared_system, "issue-6", script)
    assert run["status"] == "COMPLETED"
    assert "Can't extract output from history: item 0 is missing 'role'" in str(exchange["notes"])
    assert "Can't extract output from history" in str(step_of(run, "only")["warnings"])
    line(logs, "warning", "Can't extract output from history")


async def test_7_an_agent_that_does_not_take_our_content_type_tells_how_to_mend_it(
    shared_system: RunningSystem,
) -> None:
    refused: JsonObject = {"error": "Content-Type must be application/json"}
    run, _, _ = await issue(shared_system, "issue-7", Reply(400, encode(refused)))
    assert "Content-Type must be application/json" in str(error_of(run)["message"])
    assert "can't parse it" in str(error_of(run)["fix"])


async def test_8_an_answer_with_another_id_is_a_mismatch(shared_system: RunningSystem) -> None:
    other: JsonObject = {"jsonrpc": "2.0", "id": "task-9", "result": {"status": {"state": "completed"}}}
    run, _, logs = await issue(shared_system, "issue-8", other)
    assert error_of(run)["code"] == "agent_response_id_mismatch"
    assert str(error_of(run)["message"]).startswith(
        f"Response ID mismatch: expected {run['id']}/only/0, got task-9"
    )
    line(logs, "error", "Response ID mismatch")


async def test_a_simple_answer_with_another_task_id_is_a_warning_only(system: RunningSystem) -> None:
    with capture_logs() as logs:
        async with ScriptedAgent(
            {"task_id": "x", "status": "success", "output": "ok", "error": None}
        ) as agent:
            await system.register("Agent", agent.url, protocol="simple-a2a")
            await system.save({"name": "one", "steps": {"only": {"agent": "Agent"}}})
            run = await system.run("one")
    assert run["status"] == "COMPLETED"
    assert "Response task_id mismatch" in str(step_of(run, "only")["warnings"])
    line(logs, "warning", "Response task_id mismatch")


async def test_a_clean_answer_has_no_warnings(system: RunningSystem) -> None:
    async with ScriptedAgent(simple_success("ok")) as agent:
        await system.register("Agent", agent.url, protocol="simple-a2a")
        await system.save({"name": "one", "steps": {"only": {"agent": "Agent"}}})
        run = await system.run("one")
    assert step_of(run, "only")["warnings"] == []
