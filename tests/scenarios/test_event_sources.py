"""Topics of other systems as event sources, on a real Kafka: records become events, each once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer

from trunkline.errors import ConfigurationError
from trunkline.jsontypes import JsonObject, encode
from trunkline.messages import TopicNames
from trunkline.testing import RunningSystem, running_system
from trunkline.testing.system import objects_in

pytestmark = pytest.mark.anyio

WAITING = """
name: waiting
steps:
  pay: {wait_for: {event: order.paid, key: "${ input.order }"}}
output: ${ steps.pay.output.data.amount }
"""
STARTED = "{name: started, steps: {work: {set: {n: '${ input.n }'}}}}"


async def write(servers: str, topic: str, *records: tuple[bytes, object]) -> None:
    producer = Producer({"bootstrap.servers": servers})
    for key, value in records:
        producer.produce(topic, value if isinstance(value, bytes) else encode(value), key)
    assert await asyncio.to_thread(producer.flush, 60) == 0


@pytest.fixture
async def system(
    tmp_path: Path, topics: TopicNames, kafka_servers: str, backend_settings: object
) -> AsyncGenerator[RunningSystem]:
    source = {
        "topic": topics.commands,
        "type": "order.${ record.value.kind }",
        "id": "string(record.value.id)",
        "filter": "record.value.kind != 'noise'",
        "servers": f"kafka://{kafka_servers}",
    }
    async with running_system(tmp_path / "data", sources=json.dumps([source])) as running:
        yield running


async def until(
    system: RunningSystem, path: str, enough: Callable[[list[JsonObject]], bool]
) -> list[JsonObject]:
    while not enough(found := await system.items(path)):
        await asyncio.sleep(0.05)
    return found


async def lag_of(system: RunningSystem, topic: str) -> JsonObject:
    consumers = (await system.call("GET", "/system")).json["consumers"]
    (lag,) = [each for each in objects_in(consumers) if each["topic"] == topic]
    return lag


async def test_records_complete_waits_start_runs_and_count_once(
    system: RunningSystem, topics: TopicNames, kafka_servers: str
) -> None:
    await system.save(WAITING)
    await system.save(STARTED)
    trigger: JsonObject = {
        "name": "on-paid", "workflow": "started", "event": {"type": "order.paid"}, "input": {"n": "${ event.id }"},
    }  # fmt: skip
    assert (await system.call("POST", "/triggers", trigger)).status == 201
    run_id = await system.start("waiting", {"order": "42"})
    paid = {"id": 1, "kind": "paid", "amount": 10}
    others = [(b"42", {"id": 2, "kind": "noise"}), (b"43", {"id": 3, "kind": "paid"})]
    await write(kafka_servers, topics.commands, (b"42", paid), (b"42", paid), *others)
    assert (await system.wait_for(run_id))["output"] == 10
    events = await until(system, "/events", lambda found: len(found) >= 2)
    assert sorted((event["id"], event["key"], event["source"]) for event in events) == [
        ("1", "42", f"kafka/{topics.commands}"),
        ("3", "43", f"kafka/{topics.commands}"),
    ]  # fmt: skip
    runs = await until(
        system,
        "/runs?workflow=started&status=COMPLETED",
        lambda found: len(found) >= 2,
    )
    assert len(runs) == 2
    assert await system.items("/dead-letters") == []
    while (lag := await lag_of(system, topics.commands))["waiting"] != 0:
        await asyncio.sleep(0.1)
    assert (lag["role"], lag["detail"]) == ("executor", None)


async def test_a_record_that_does_not_fit_becomes_a_dead_letter_and_the_others_go_on(
    system: RunningSystem, topics: TopicNames, kafka_servers: str
) -> None:
    await write(
        kafka_servers,
        topics.commands,
        (b"bad", b"{"),
        (b"odd", {"amount": 1}),
        (b"good", {"id": 1, "kind": "paid"}),
    )
    letters = await until(system, "/dead-letters", lambda found: len(found) >= 2)
    reasons = {str(letter["key"]): str(letter["reason"]) for letter in letters}
    assert "not valid JSON" in reasons["bad"]
    assert "'filter' of the source cannot be evaluated" in reasons["odd"]
    assert [event["id"] for event in await until(system, "/events", bool)] == ["1"]
    answer = await system.call("POST", f"/dead-letters/{letters[0]['id']}/replay")
    assert answer.status == 409
    assert "still cannot be read" in str(answer.json["detail"])
    assert len(await system.items("/dead-letters")) == 2


async def test_a_dead_letter_is_read_again_after_its_source_was_corrected(
    tmp_path: Path, topics: TopicNames, kafka_servers: str, backend_settings: object
) -> None:
    source = {"topic": topics.commands, "servers": kafka_servers, "type": "${ record.value.type }"}
    await write(kafka_servers, topics.commands, (b"k", {"kind": "paid"}))
    async with running_system(tmp_path / "data", sources=json.dumps([source])) as system:
        (letter,) = await until(system, "/dead-letters", bool)
    source["type"] = "order.${ record.value.kind }"
    async with running_system(tmp_path / "data", sources=json.dumps([source])) as system:
        assert (await system.call("POST", f"/dead-letters/{letter['id']}/replay")).status == 202
        (event,) = await system.items("/events")
        assert (event["type"], event["id"]) == (
            "order.paid",
            f"{topics.commands}:{letter['partition']}:{letter['offset']}",
        )
        assert await system.items("/dead-letters") == []


async def test_a_missing_topic_is_a_warning_and_stops_nothing_else(
    tmp_path: Path, topics: TopicNames, kafka_servers: str, backend_settings: object
) -> None:
    sources = [
        {"topic": topic, "servers": kafka_servers, "type": "a"}
        for topic in (f"{topics.commands}-missing", topics.commands)
    ]
    async with running_system(tmp_path / "data", sources=json.dumps(sources)) as system:
        await write(kafka_servers, topics.commands, (b"k", 1))
        await until(system, "/events", bool)
        expected = f"Event source {topics.commands}-missing: "
        for path in ("//readyz", "/system"):
            while expected not in str((await system.call("GET", path)).json["warnings"]):
                await asyncio.sleep(0.05)


@pytest.mark.embedded_only
async def test_a_mistake_in_the_setting_is_named_at_the_start(
    tmp_path: Path, backend_settings: object
) -> None:
    with pytest.raises(ConfigurationError) as raised:
        async with running_system(tmp_path / "data", sources='[{"topic": "orders", "type": "a"}]'):
            pass
    assert "sources[0].servers: 'servers' is missing; the broker is memory://" in raised.value.message
    with pytest.raises(ConfigurationError, match="not a list of objects"):
        async with running_system(tmp_path / "data", sources="{}"):
            pass
