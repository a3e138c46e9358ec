"""The process ends at every point at which it takes records of an event source; each record fires its trigger once."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Generator, Mapping
from pathlib import Path

import aiohttp
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from tests.crash.crash_points import KILLED, point_in
from tests.crash.process_instances import ProcessStarter
from tests.crash.test_trigger_points import client_of
from tests.services import fresh_topics

pytestmark = pytest.mark.anyio

# `make chaos` writes ten thousand.
SIZE = int(os.environ.get("TRUNKLINE_CHAOS_RECORDS", "300"))
POINTS = ("arrive", "received_events.put", "commit.before", "commit.after", "settle.before", "settle.after")


@pytest.fixture
def topic(kafka_admin: AdminClient) -> Generator[str]:
    with fresh_topics(kafka_admin) as topics:
        yield topics.commands


async def write(servers: str, topic: str, numbers: range) -> None:
    producer = Producer({"bootstrap.servers": servers})
    for number in numbers:
        producer.produce(topic, f'{{"n": {number}}}', str(number))
        producer.poll(0)
    assert await asyncio.to_thread(producer.flush, 60) == 0


@pytest.mark.timeout(120 + SIZE // 10)
@pytest.mark.parametrize("point", POINTS)
async def test_each_record_counts_once_wherever_the_process_ends(
    point: str,
    topic: str,
    kafka_servers: str,
    tmp_path: Path,
    starter: ProcessStarter,
    session: aiohttp.ClientSession,
    mode_settings: Mapping[str, str],
) -> None:
    source = {"topic": topic, "type": "counted", "servers": kafka_servers}
    settings = {**mode_settings, "TRUNKLINE_SOURCES": json.dumps([source])}
    client = await client_of(await starter.start(tmp_path / "data", settings=settings), session)
    await client.call("POST", "/workflows", b"{name: one, steps: {work: {set: {n: '${ input.n }'}}}}")
    await client.call(
        "POST",
        "/triggers",
        {"name": "t", "workflow": "one", "event": {"type": "counted"}, "input": {"n": "${ event.data.n }"}},
    )
    await starter.end()
    for half in (range(SIZE // 2), range(SIZE // 2, SIZE)):
        life = await starter.start(tmp_path / "data", point_in(mode_settings, point), 1, settings)
        await write(kafka_servers, topic, half)
        assert await life.ended == KILLED
    client = await client_of(await starter.start(tmp_path / "data", settings=settings), session)
    while len(await client.pages("/events")) < SIZE:
        await asyncio.sleep(0.05)
    while len(runs := await client.pages("/runs?status=COMPLETED")) < SIZE:
        await asyncio.sleep(0.05)
    outputs = sorted(int(str(event["key"])) for event in await client.pages("/events"))
    all_runs = await client.pages("/runs")
    await starter.end()
    assert outputs == list(range(SIZE))
    assert len(all_runs) == len(runs) == SIZE
