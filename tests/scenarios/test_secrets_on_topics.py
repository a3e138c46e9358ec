"""No secret travels: a message names its agent, and what an agent repeats is taken out before it is sent on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from trunkline.brokers.base import Producer, Undelivered
from trunkline.jsontypes import JsonObject
from trunkline.messages import OutgoingMessage
from trunkline.testing import ScriptedAgent, jsonrpc_task, running_system, simple_success
from trunkline.wiring import Interceptors

pytestmark = [pytest.mark.anyio, pytest.mark.distributed_only]

CANARY = "canary-7f3a-19e2b4"


class EchoingAgent:
    """A producer that keeps a copy of all that leaves."""

    def __init__(self, inner: Producer, sent: list[OutgoingMessage]) -> None:
        self._inner = inner
        self._sent = sent

    async def send(self, messages: Sequence[OutgoingMessage]) -> list[Undelivered]:
        self._sent += messages
        return await self._inner.send(messages)


async def test_neither_credentials_nor_their_echo_are_in_a_message(tmp_path: Path) -> None:
    sent: list[OutgoingMessage] = []
    interceptors = Interceptors(producer=lambda producer: EchoingAgent(producer, sent))
    secret: JsonObject = {"auth_type": "bearer", "auth_config": {"token": CANARY}}
    async with (
        ScriptedAgent(simple_success({"echo": CANARY})) as simple,
        ScriptedAgent(jsonrpc_task(f"it is {CANARY}", state="failed")) as failing,
        running_system(tmp_path / "data", interceptors=interceptors) as system,
    ):
        await system.register("Simple", simple.url, protocol="simple-a2a", **secret)
        await system.register("Failing", failing.url, protocol="jsonrpc-2.0", **secret)
        steps: JsonObject = {
            "a": {"agent": "Simple"},
            "b": {"agent": "Failing", "retry": {"max_attempts": 1}},
        }
        await system.save({"name": "both", "steps": steps})
        await system.run("both")
        assert simple.calls[0].headers["Authorization"] == f"Bearer {CANARY}"
    assert {b"agent-task", b"agent-result"} <= {value for message in sent for _, value in message.headers}
    for message in sent:
        assert CANARY.encode() not in message.value, message.topic
