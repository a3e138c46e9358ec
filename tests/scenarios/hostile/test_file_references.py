"""Answers with references to stored files, which only Trunkline may write: they load nothing, and no file of others."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from tests.scenarios.test_attachments import CONTENT, echo, file_agent, file_in, file_part

from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.testing import RunningSystem, ScriptedAgent, running_system
from trunkline.testing.agents import Call, Reply
from trunkline.testing.system import error_of, objects_in, step_of

pytestmark = [pytest.mark.anyio, pytest.mark.embedded_only]

PASS_ON: JsonObject = {
    "name": "two",
    "steps": {
        "give": {"agent": "Giver"},
        "take": {
            "agent": "Taker",
            "input": {"parts": "${ steps.give.output.artifacts[0].parts }"},
            "retry": {"max_attempts": 1},
        },
    },
}


@pytest.fixture
async def small_system(tmp_path: Path) -> AsyncGenerator[RunningSystem]:
    async with running_system(
        tmp_path / "data",
        max_inline_bytes=1_024,
        max_request_bytes=3 * len(CONTENT),
        blobs=str(tmp_path / "blobs"),
    ) as system:
        yield system


def answer_with(parts: Json, call: Call) -> JsonObject:
    result: Json = {
        "kind": "task",
        "id": "remote-1",
        "contextId": "c",
        "status": {"state": "completed"},
        "artifacts": [{"artifactId": "f", "parts": parts}],
    }
    return {"jsonrpc": "2.0", "id": call.id, "result": result}


def reference_part(run_id: Json, digest: Json) -> JsonObject:
    href = f"/api/v1/runs/{run_id}/blobs/{digest}"
    reference: Json = {"run": run_id, "id": digest, "bytes": 1, "href": href}
    return {"kind": "file", "file": {"name": "a", "blob": reference}}


@pytest.mark.parametrize(
    "spelling",
    [
        pytest.param(b'"blob"', id="plain"),
        pytest.param(rb'"bl\u006fb"', id="escaped"),
        pytest.param(rb'"\u0062l\u006F\u0062"', id="escaped-in-capitals"),
    ],
)
async def test_a_reference_that_an_agent_made_up_is_never_expanded(
    small_system: RunningSystem, spelling: bytes
) -> None:
    system = small_system
    async with file_agent(CONTENT) as giving, ScriptedAgent(echo) as taking:
        await system.register("Giver", giving.url, protocol="jsonrpc-2.0")
        await system.register("Taker", taking.url, protocol="jsonrpc-2.0")
        await system.save(PASS_ON)
        first = await system.run("two")
        stored = file_in(first, "give")["blob"]
        assert isinstance(stored, dict)
        forged: list[Json] = [reference_part(stored["run"], stored["id"])]

        def forge(call: Call) -> Reply:
            body = encode(answer_with(forged * 5_000, call)).replace(b'"blob"', spelling)
            return Reply(200, body, {"Content-Type": "application/json"})

        giving.script(forge)
        run = await system.run("two")
    output = step_of(run, "give")["output"]
    assert isinstance(output, dict)
    (artifact,) = objects_in(output["artifacts"])
    parts = objects_in(artifact["parts"])
    assert len(parts) == 5_000
    assert b"href" not in encode(parts)
    assert b64encode(CONTENT) not in b"".join(encode(call.body) for call in taking.calls[1:])
    # A part of A2A has no such field: the step that passes it on fails, and with it nothing but this run.
    assert error_of(run)["code"] == "request_not_encodable"


async def test_the_files_of_one_request_have_a_limit(small_system: RunningSystem) -> None:
    system = small_system
    references = ", ".join(["steps.give.output.artifacts[0].parts[0]"] * 4)
    async with file_agent(CONTENT) as giving, ScriptedAgent(echo) as taking:
        await system.register("Giver", giving.url, protocol="jsonrpc-2.0")
        await system.register("Taker", taking.url, protocol="jsonrpc-2.0")
        for count in (3, 4):
            named = ", ".join(references.split(", ")[:count])
            take: Json = {
                "agent": "Taker",
                "input": {"parts": f"${{ [{named}] }}"},
                "retry": {"max_attempts": 1},
            }
            await system.save({"name": f"send-{count}", "steps": {"give": {"agent": "Giver"}, "take": take}})
        fits, exceeds = await system.run("send-3"), await system.run("send-4")
    assert fits["status"] == "COMPLETED"
    assert taking.calls[0].message["parts"] == [file_part(CONTENT)] * 3
    assert exceeds["status"] == "FAILED"
    error = error_of(exceeds)
    assert (error["code"], error["step"]) == ("attachments_too_large", "take")
    assert "It names 4 files." in str(error["message"])
    assert len(taking.calls) == 1


async def test_a_run_cannot_send_the_files_of_an_unrelated_run(small_system: RunningSystem) -> None:
    system = small_system
    steal: JsonObject = {
        "name": "steal",
        "steps": {
            "take": {"agent": "Taker", "input": {"parts": "${ input.parts }"}, "retry": {"max_attempts": 1}}
        },
    }
    async with file_agent(CONTENT) as giving, ScriptedAgent(echo) as taking:
        await system.register("Giver", giving.url, protocol="jsonrpc-2.0")
        await system.register("Taker", taking.url, protocol="jsonrpc-2.0")
        await system.save(PASS_ON)
        await system.save(steal)
        stored = file_in(await system.run("two"), "give")["blob"]
        assert isinstance(stored, dict)
        run = await system.run("steal", {"parts": [reference_part(stored["run"], stored["id"])]})
    assert run["status"] == "FAILED"
    error = error_of(run)
    assert (error["code"], error["step"]) == ("blob_missing", "take")
    assert "is not related to run" in str(error["message"])
    assert len(taking.calls) == 1


async def test_files_of_a_child_run_reach_its_parent_and_its_siblings(small_system: RunningSystem) -> None:
    system = small_system
    child: JsonObject = {
        "name": "child",
        "steps": {"give": {"agent": "Giver"}},
        "output": "${ steps.give.output.artifacts[0].parts }",
    }
    sibling: JsonObject = {
        "name": "sibling",
        "steps": {"take": {"agent": "Taker", "input": {"parts": "${ input.parts }"}}},
    }
    parent: JsonObject = {
        "name": "parent",
        "steps": {
            "inner": {"workflow": "child"},
            "take": {"agent": "Taker", "input": {"parts": "${ steps.inner.output }"}},
            "again": {
                "workflow": "sibling",
                "input": {"parts": "${ steps.inner.output }"},
                "needs": ["take"],
            },
        },
    }
    async with file_agent(CONTENT) as giving, ScriptedAgent(echo) as taking:
        await system.register("Giver", giving.url, protocol="jsonrpc-2.0")
        await system.register("Taker", taking.url, protocol="jsonrpc-2.0")
        for workflow in (child, sibling, parent):
            await system.save(workflow)
        run = await system.run("parent")
    assert run["status"] == "COMPLETED"
    assert [call.message["parts"] for call in taking.calls] == [[file_part(CONTENT)]] * 2
