"""Files in artifacts: long ones are kept outside of the output, and reach the caller all the same."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from tests.scenarios.publishing.a2a_caller import A2ACaller, parts_of, text
from tests.scenarios.test_attachments import CONTENT, file_agent

from trunkline.jsontypes import JsonObject
from trunkline.testing import RunningSystem, running_system
from trunkline.testing.system import objects_in

pytestmark = pytest.mark.anyio

FILE: JsonObject = {
    "raw": b64encode(CONTENT).decode(),
    "mediaType": "application/x-test",
    "filename": "a.bin",
}


@pytest.fixture
async def storing(backend_settings: object, tmp_path: Path) -> AsyncGenerator[RunningSystem]:
    """It keeps files of any length outside of the outputs."""
    async with running_system(tmp_path / "data", max_inline_bytes=100) as running:
        yield running


async def test_a_long_file_of_an_agent_reaches_the_caller(storing: RunningSystem) -> None:
    async with file_agent(CONTENT) as agent:
        await storing.register("A", agent.url, protocol="jsonrpc-2.0")
        await storing.save({"name": "front", "publish": True, "steps": {"only": {"agent": "A"}}})
        caller = A2ACaller(storing, "workflows/front")
        events = await caller.streamed("SendStreamingMessage", {"message": text("hi")})
        task = events[0].result["task"]
        assert isinstance(task, dict)
        whole = await caller.task(task["id"])
    assert parts_of(whole) == [FILE]
    updates = objects_in([event.result.get("artifactUpdate") for event in events])
    assert [artifact["parts"] for artifact in objects_in([each["artifact"] for each in updates])] == [[FILE]]


# Without a data folder, and without a bucket, files stay in the outputs.
@pytest.mark.embedded_only
async def test_a_caller_cannot_read_the_files_of_other_runs(storing: RunningSystem) -> None:
    async with file_agent(CONTENT) as agent:
        await storing.register("A", agent.url, protocol="jsonrpc-2.0")
        await storing.save({"name": "keeps", "steps": {"only": {"agent": "A"}}})
        kept = await storing.run("keeps")
        output = kept["output"]
        assert isinstance(output, dict)
        # It repeats what its caller sends.
        await storing.save(
            {"name": "front", "publish": True, "steps": {"only": {"agent": "A"}}, "output": "${ input }"}
        )
        stolen: JsonObject = {"messageId": "m", "role": "ROLE_USER", "parts": [{"data": output}]}
        task = await A2ACaller(storing, "workflows/front").send(stolen)
    assert parts_of(task) == [{"text": "The file is too large, or no longer exists."}]
