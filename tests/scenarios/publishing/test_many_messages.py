"""Many messages, each sent twice: with the extension for idempotency, each starts one task."""

from __future__ import annotations

import asyncio
import os

import pytest
from tests.scenarios.publishing.a2a_caller import A2ACaller, text

from trunkline.jsontypes import JsonObject
from trunkline.testing import RunningSystem, ScriptedAgent, simple_success

pytestmark = pytest.mark.anyio

# `TRUNKLINE_REPEATED_MESSAGES=1000` is the full size.
MESSAGES = int(os.environ.get("TRUNKLINE_REPEATED_MESSAGES", "60"))
AT_ONCE = 20
EXTENSION = {"A2A-Extensions": "urn:trunkline:a2a:idempotency:1"}


async def test_messages_that_are_sent_twice_start_one_task_and_one_call_each(system: RunningSystem) -> None:
    async with ScriptedAgent(simple_success({"text": "done"})) as agent:
        await system.register("A", agent.url, protocol="simple-a2a")
        await system.save({"name": "front", "publish": True, "steps": {"only": {"agent": "A"}}})
        caller = A2ACaller(system, "workflows/front")

        async def send(number: int) -> str:
            params: JsonObject = {"message": text("hi", f"m-{number}", contextId="c")}
            body: JsonObject = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params}
            result = (await caller.post(body, EXTENSION))["result"]
            assert isinstance(result, dict)
            assert isinstance(result["task"], dict)
            return str(result["task"]["id"])

        tasks: set[str] = set()
        for start in range(0, MESSAGES, AT_ONCE):
            numbers = range(start, min(start + AT_ONCE, MESSAGES))
            # Both at the same time: neither knows of the other.
            sent = await asyncio.gather(*(send(number) for number in (*numbers, *numbers)))
            assert sent[: len(numbers)] == sent[len(numbers) :]
            tasks |= set(sent)
        listed = await caller.call("ListTasks", {"pageSize": 1})
    assert len(tasks) == MESSAGES
    assert listed["totalSize"] == MESSAGES
    assert len(agent.calls) == MESSAGES
