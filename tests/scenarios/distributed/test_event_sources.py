"""An event source that two executors share: members come and go, and every record counts once."""

from __future__ import annotations

import asyncio
import json

import pytest
from tests.crash.test_event_source_points import write
from tests.scenarios.distributed.in_process_roles import serving_roles
from tests.scenarios.distributed.topic_records import TopicReader

from trunkline.testing import RunningSystem

pytestmark = [pytest.mark.anyio, pytest.mark.distributed_only]

PART = 400


async def arrived(api: RunningSystem, number: int) -> list[str]:
    while len(found := await api.items("/events?limit=1000")) < number:
        await asyncio.sleep(0.05)
    return [str(event["key"]) for event in found]


async def test_records_count_once_while_executors_join_and_leave(kafka: TopicReader) -> None:
    topic = kafka.topics.commands
    sources = json.dumps([{"topic": topic, "type": "counted"}])
    async with serving_roles("api") as api, serving_roles("executor", sources=sources):
        writing = asyncio.create_task(write(kafka.servers, topic, range(PART)))
        async with serving_roles("executor", sources=sources):
            await write(kafka.servers, topic, range(PART, 2 * PART))
            await arrived(api, PART)
            await write(kafka.servers, topic, range(2 * PART, 3 * PART))
        await writing
        keys = await arrived(api, 3 * PART)
        assert sorted(keys, key=int) == [str(number) for number in range(3 * PART)]
        assert await api.items("/dead-letters") == []
