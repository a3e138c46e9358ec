"""Events and signals in the whole system: sent by REST in every form, taken by the steps that wait for them."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from trunkline.jsontypes import Json, JsonObject
from trunkline.testing import FakeClock, RunningSystem, running_system
from trunkline.testing.system import error_of, objects_in, step_of

pytestmark = pytest.mark.anyio

PAYMENT: JsonObject = {
    "name": "payment",
    "steps": {
        "pay": {
            "wait_for": {
                "event": "payment.received",
                "key": "${ input.order }",
                "match": "event.data.amount >= input.amount",
            }
        }
    },
    "output": "${ steps.pay.output }",
}


async def send(system: RunningSystem, body: Json, headers: dict[str, str] | None = None) -> JsonObject:
    answer = await system.call("POST", "/events", body, headers)
    assert answer.status == 202, answer.body
    return answer.json


async def test_an_event_completes_the_step_that_waits_for_it(system: RunningSystem) -> None:
    await system.save(PAYMENT)
    run_id = await system.start("payment", {"order": 42, "amount": 10})
    waiting = (await system.wait_for_step(run_id, "pay", {"WAITING"}))["waiting_for"]
    assert isinstance(waiting, dict)
    assert (waiting["kind"], waiting["event"], waiting["key"], waiting["until"]) == (
        "event", "payment.received", "42", None,
    )  # fmt: skip
    assert (await system.get(run_id))["status"] == "RUNNING"
    payment: JsonObject = {"type": "payment.received", "key": "42", "data": {"amount": 9}, "id": "p1"}
    assert await send(system, payment) == {"id": "p1"}
    await send(system, {**payment, "key": "43", "id": "p2", "data": {"amount": 99}})
    await send(system, {**payment, "id": "p3", "data": {"amount": 10}})
    run = await system.wait_for(run_id)
    assert isinstance(run["output"], dict)
    at = run["output"].pop("at")
    assert run["output"] == {
        "type": "payment.received", "key": "42", "data": {"amount": 10}, "id": "p3",
    }  # fmt: skip
    listed = await system.items("/events?type=payment.received&key=42")
    assert [(event["id"], event["source"]) for event in listed] == [("p3", "trunkline"), ("p1", "trunkline")]
    assert listed[0]["at"] == at


async def test_an_event_counts_that_arrived_before_the_step_began_to_wait(system: RunningSystem) -> None:
    await system.save(
        {
            "name": "late",
            "steps": {
                "go": {"wait_for": {"signal": "go"}},
                "pay": {"wait_for": {"event": "paid", "match": "event.data.n == 25"}, "needs": ["go"]},
            },
            "output": "${ steps.pay.output.data.n }",
        }
    )
    await send(system, {"type": "paid", "data": {"n": 25}, "id": "before the run"})
    run_id = await system.start("late")
    for number in range(30):
        await send(system, {"type": "paid", "data": {"n": number}})
    answer = await system.call("POST", f"/runs/{run_id}/signals/go")
    assert answer.status == 202
    run = await system.wait_for(run_id)
    assert (run["status"], run["output"]) == ("COMPLETED", 25)
    taken = step_of(run, "pay")["output"]
    assert isinstance(taken, dict)
    assert taken["id"] != "before the run"


async def test_an_event_is_taken_once_in_a_run_and_by_every_run(system: RunningSystem) -> None:
    await system.save(
        {
            "name": "two",
            "steps": {"a": {"wait_for": {"event": "e"}}, "b": {"wait_for": {"event": "e"}}},
            "output": "${ [steps.a.output.id, steps.b.output.id] }",
        }
    )
    runs = [await system.start("two") for _ in range(2)]
    await send(system, {"type": "e", "id": "one"})
    await send(system, {"type": "e", "id": "one"})
    await send(system, {"type": "e", "id": "two"})
    for run_id in runs:
        run = await system.wait_for(run_id)
        assert sorted(map(str, run["output"] if isinstance(run["output"], list) else [])) == ["one", "two"]


async def test_a_signal_reaches_its_run_alone(system: RunningSystem) -> None:
    await system.save({"name": "s", "steps": {"s": {"wait_for": {"signal": "approved"}}}})
    first, second = [await system.start("s") for _ in range(2)]
    answer = await system.call("POST", f"/runs/{first}/signals/approved", {"by": "Ada"})
    assert answer.status == 202
    run = await system.wait_for(first)
    assert isinstance(run["output"], dict)
    assert (run["output"]["type"], run["output"]["key"], run["output"]["data"]) == (
        "approved", None, {"by": "Ada"},
    )  # fmt: skip
    assert run["output"]["id"] == answer.json["id"]
    assert (await system.get(second))["status"] == "RUNNING"
    assert (await system.call("POST", f"/runs/{first}/signals/approved")).status == 409
    assert (await system.call("POST", "/runs/none/signals/approved")).status == 404
    assert [event["run_id"] for event in await system.items(f"/events?run={first}")] == [first]


CLOUD: JsonObject = {"specversion": "1.0", "id": "c1", "source": "/shop", "type": "order", "subject": "7"}


@pytest.mark.parametrize(
    ("body", "headers", "events"),
    [
        ({**CLOUD, "data": {"n": 1}}, {"Content-Type": "application/cloudevents+json"}, [("7", {"n": 1})]),
        ({**CLOUD, "data_base64": "aGk=", "key": "8"}, {}, [("8", "hi")]),
        (
            b'{"n":1}',
            {
                "ce-specversion": "1.0",
                "ce-id": "c1",
                "ce-source": "/shop",
                "ce-type": "order",
                "ce-partitionkey": "9",
                "Content-Type": "application/json",
            },
            [("9", {"n": 1})],
        ),
        (
            [{**CLOUD, "id": "c0"}, CLOUD],
            {"Content-Type": "application/cloudevents-batch+json"},
            [("7", None), ("7", None)],
        ),
    ],
    ids=["structured", "structured with binary data", "binary", "batch"],
)
async def test_cloud_events_are_taken_in_every_mode(
    system: RunningSystem, body: Json, headers: dict[str, str], events: list[tuple[str, Json]]
) -> None:
    received = await send(system, body, headers)
    assert received.get("ids", ["c1"]) == (["c0", "c1"] if isinstance(body, list) else ["c1"])
    listed = await system.items("/events?type=order")
    assert [(event["key"], event["data"]) for event in listed] == events
    assert all(event["source"] == "/shop" for event in listed)
    assert (await system.call("GET", "/events/c1")).json["type"] == "order"


@pytest.mark.parametrize(
    ("body", "status", "detail"),
    [
        (b"{", 400, "not valid JSON"),
        (5, 422, "must be a JSON object"),
        ({}, 422, "type"),
        ({"type": ""}, 422, "type"),
        ({"type": "a\nb"}, 422, "without control characters"),
        ({"type": "a", "key": True}, 422, "key"),
        ({"type": "a", "extra": 1}, 422, "extra"),
        ({"type": "a", "data": "x" * 300_000}, 422, "the limit is 262144"),
        ([], 422, "1 to 500 events"),
        ({**CLOUD, "specversion": "0.3"}, 422, "specversion"),
        ({"specversion": "1.0", "id": "1", "type": "a"}, 422, "has no source"),
    ],
)
async def test_an_event_that_cannot_be_read_is_refused_with_the_reason(
    shared_system: RunningSystem, body: Json, status: int, detail: str
) -> None:
    answer = await shared_system.call("POST", "/events", body)
    assert (answer.status, detail in str(answer.json["detail"])) == (status, True), answer.body
    assert answer.json["fix"]
    assert await shared_system.items("/events") == []


@pytest.mark.embedded_only
async def test_a_wait_survives_a_restart_and_ends_at_its_timeout(tmp_path: Path) -> None:
    clock = FakeClock()
    definition: JsonObject = {
        "name": "w",
        "steps": {
            "a": {"wait_for": {"event": "e", "timeout": "1h"}},
            "b": {"wait_for": {"event": "e", "timeout": "1h", "on_timeout": "continue", "count": 2}},
        },
    }
    async with running_system(tmp_path, clock=clock) as system:
        await system.save(definition)
        run_id = await system.start("w")
        await system.wait_for_step(run_id, "b", {"WAITING"})
    async with running_system(tmp_path, clock=clock) as system:
        await send(system, {"type": "e", "id": "one"})
        await system.wait_for_step(run_id, "a", {"COMPLETED"})
        clock.advance(timedelta(hours=1))
        run = await system.wait_for(run_id)
        assert (run["status"], step_of(run, "b")["output"]) == ("COMPLETED", None)
        failed = await system.start("w")
        await system.wait_for_step(failed, "b", {"WAITING"})
        clock.advance(timedelta(hours=1))
        assert error_of(await system.wait_for(failed))["code"] == "wait_timeout"


async def test_events_that_race_with_the_beginning_of_the_waits_are_never_lost(system: RunningSystem) -> None:
    await system.save({"name": "race", "steps": {"s": {"wait_for": {"event": "go", "key": "${ input.n }"}}}})

    async def one(number: int) -> str:
        run_id = await system.start("race", {"n": number})
        await send(system, {"type": "go", "key": number, "id": f"go{number}"})
        return run_id

    runs = await asyncio.gather(*(one(number) for number in range(100)))
    for number, run_id in enumerate(runs):
        run = await system.wait_for(run_id)
        assert isinstance(run["output"], dict)
        assert run["output"]["id"] == f"go{number}"
    assert len(objects_in((await system.call("GET", "/events?limit=1000")).json["items"])) == 100
