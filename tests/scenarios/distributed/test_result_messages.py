"""What a bridge says about its task in every result, for whatever else reads the topic."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from trunkline.brokers.base import Producer, Undelivered
from trunkline.messages import OutgoingMessage
from trunkline.testing import ScriptedAgent, running_system, simple_success
from trunkline.wiring import Interceptors

pytestmark = [pytest.mark.anyio, pytest.mark.distributed_only]


class CopyingProducer:
    def __init__(self, inner: Producer, sent: list[OutgoingMessage]) -> None:
        self._inner = inner
        self._sent = sent

    async def send(self, messages: Sequence[OutgoingMessage]) -> list[Undelivered]:
        self._sent += messages
        return await self._inner.send(messages)


async def test_a_result_carries_the_correlation_id_of_its_task(tmp_path: Path) -> None:
    sent: list[OutgoingMessage] = []
    interceptors = Interceptors(producer=lambda producer: CopyingProducer(producer, sent))
    async with (
        ScriptedAgent(simple_success({})) as agent,
        running_system(tmp_path / "data", interceptors=interceptors) as system,
    ):
        await system.register("A", agent.url, protocol="simple-a2a")
        await system.save("{name: one, steps: {a: {agent: A}}}")
        await system.run("one")
        correlation_id = agent.calls[0].headers["X-Correlation-ID"]
    results = [message for message in sent if b"agent-result" in dict(message.headers).values()]
    assert [json.loads(message.value)["correlation_id"] for message in results] == [correlation_id]
