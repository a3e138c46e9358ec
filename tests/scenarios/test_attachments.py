"""Files in what agents answer: short ones stay in the output, long ones are kept next to it and go on by reference."""

from __future__ import annotations

from base64 import b64decode, b64encode
from pathlib import Path

import pytest

from trunkline.jsontypes import Json, JsonObject
from trunkline.testing import RunningSystem, ScriptedAgent, running_system
from trunkline.testing.agents import Call, Scripted
from trunkline.testing.system import objects_in, step_of

pytestmark = pytest.mark.anyio

CONTENT = bytes(range(256)) * 64


def file_part(content: bytes) -> JsonObject:
    file: Json = {"name": "a.bin", "mimeType": "application/x-test", "bytes": b64encode(content).decode()}
    return {"kind": "file", "file": file}


def with_file(content: bytes) -> Json:
    return {
        "kind": "task",
        "id": "remote-1",
        "contextId": "c",
        "status": {"state": "completed"},
        "artifacts": [{"artifactId": "f", "name": "File", "parts": [file_part(content)]}],
    }


def file_agent(content: bytes) -> ScriptedAgent:
    return ScriptedAgent(lambda call: {"jsonrpc": "2.0", "id": call.id, "result": with_file(content)})


def echo(call: Call) -> Scripted:
    parts = call.message["parts"]
    result: Json = {"kind": "message", "role": "agent", "messageId": "m", "parts": parts}
    return {"jsonrpc": "2.0", "id": call.id, "result": result}


def file_in(run: JsonObject, step: str) -> JsonObject:
    output = step_of(run, step)["output"]
    assert isinstance(output, dict)
    (artifact,) = objects_in(output["artifacts"])
    (part,) = objects_in(artifact["parts"])
    file = part["file"]
    assert isinstance(file, dict)
    return file


async def test_a_short_file_stays_in_the_output(system: RunningSystem) -> None:
    async with file_agent(CONTENT) as agent:
        await system.register("Giver", agent.url, protocol="jsonrpc-2.0")
        await system.save({"name": "one", "steps": {"give": {"agent": "Giver"}}})
        run = await system.run("one")
    assert b64decode(str(file_in(run, "give")["bytes"])) == CONTENT


async def test_a_large_file_is_stored_outside_the_output_and_reaches_the_next_agent_whole(
    tmp_path: Path,
) -> None:
    steps: Json = {
        "give": {"agent": "Giver"},
        "take": {"agent": "Taker", "input": {"parts": "${ steps.give.output.artifacts[0].parts }"}},
    }
    async with (
        file_agent(CONTENT) as source,
        ScriptedAgent(echo) as sink,
        running_system(tmp_path / "data", max_inline_bytes=1_024, blobs=str(tmp_path / "blobs")) as system,
    ):
        await system.register("Giver", source.url, protocol="jsonrpc-2.0")
        await system.register("Taker", sink.url, protocol="jsonrpc-2.0")
        await system.save({"name": "two", "steps": steps})
        run = await system.run("two")
        file = file_in(run, "give")
        reference = file["blob"]
        assert isinstance(reference, dict)
        kept = await system.call("GET", f"/{reference['href']}")
        missing = await system.call("GET", f"/runs/{run['id']}/blobs/{'0' * 64}")
    assert run["status"] == "COMPLETED"
    assert (file["name"], file["mimeType"], reference["bytes"]) == (
        "a.bin",
        "application/x-test",
        len(CONTENT),
    )
    assert "bytes" not in file
    assert (kept.status, kept.body) == (200, CONTENT)
    assert sink.calls[0].message["parts"] == [file_part(CONTENT)]
    assert missing.status == 404
    assert missing.json["fix"]


async def test_a_file_that_is_gone_fails_the_step_that_needs_it_before_anything_is_sent(
    system: RunningSystem,
) -> None:
    href = f"/api/v1/runs/{'0' * 36}/blobs/{'0' * 64}"
    reference: Json = {"run": "0" * 36, "id": "0" * 64, "bytes": 1, "href": href}
    part: Json = {"kind": "file", "file": {"name": "a.bin", "blob": reference}}
    async with ScriptedAgent(echo) as agent:
        await system.register("Taker", agent.url, protocol="jsonrpc-2.0")
        await system.save(
            {
                "name": "one",
                "steps": {
                    "take": {"agent": "Taker", "input": {"parts": [part]}, "retry": {"max_attempts": 1}}
                },
            }
        )
        run = await system.run("one")
    error = step_of(run, "take")["error"]
    assert isinstance(error, dict)
    assert (run["status"], error["code"]) == ("FAILED", "blob_missing")
    assert agent.calls == []
