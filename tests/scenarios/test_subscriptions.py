"""Subscriptions in the whole system: what is reported, in which order, how it is signed, and what failures do."""

from __future__ import annotations

import asyncio
import base64
import hmac
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from tests.scenarios.api.test_keys import bearer, create_key, guarded_system
from tests.scenarios.event_receiver import EventReceiver, ReceivedDelivery, event_receiver
from tests.scenarios.test_human_tasks import ask, reply

from trunkline.jsontypes import Json, JsonObject
from trunkline.testing import RunningSystem
from trunkline.testing.system import Answer

pytestmark = pytest.mark.anyio

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
NEXT_SECRET = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
GREETING: JsonObject = {
    "name": "greeting",
    "labels": {"team": "${ input.team }"},
    "steps": {"hello": {"set": {"text": "hello ${ input.team }"}}},
}
FAILING: JsonObject = {"name": "failing", "steps": {"bad": {"set": {"x": "${ input.missing.deep }"}}}}


@pytest.fixture
async def receiver() -> AsyncGenerator[EventReceiver]:
    async with event_receiver() as receiving:
        yield receiving


async def subscribe(
    system: RunningSystem, receiver: EventReceiver, *types: str, **fields: Json
) -> JsonObject:
    body: JsonObject = {"name": "outside", "url": receiver.url, "types": [*types], **fields}
    answer = await system.call("POST", "/subscriptions", body)
    assert answer.status == 201, answer.body
    return answer.json


async def deliveries(system: RunningSystem, name: str = "outside") -> list[dict[str, Any]]:
    answer = await system.call("GET", f"/subscriptions/{name}/deliveries")
    assert answer.status == 200
    items: Any = answer.json["items"]
    return items


async def delivery_with(system: RunningSystem, **wanted: Json) -> dict[str, Any]:
    async with asyncio.timeout(60):
        while True:
            for each in await deliveries(system):
                if wanted.items() <= each.items():
                    return each
            await asyncio.sleep(0)


async def status_becomes(system: RunningSystem, status: str) -> JsonObject:
    async with asyncio.timeout(60):
        while (found := (await system.call("GET", "/subscriptions/outside")).json)["status"] != status:
            await asyncio.sleep(0)
    return found


async def test_a_completed_run_is_reported_as_a_cloud_event(
    system: RunningSystem, receiver: EventReceiver
) -> None:
    await system.save(GREETING)
    await subscribe(system, receiver, "run.completed")
    run_id = await system.start("greeting", {"team": "a"})
    [event] = await receiver.accepts(1)
    run = await system.wait_for(run_id)
    assert {name: event[name] for name in ("specversion", "type", "subject", "source", "workflow")} == {
        "specversion": "1.0",
        "type": "run.completed",
        "subject": run_id,
        "source": "/trunkline",
        "workflow": "greeting",
    }
    data = event["data"]
    assert (data["run_id"], data["status"], data["output"]) == (run_id, "COMPLETED", run["output"])
    assert data["labels"] == {"team": "a"}
    headers = receiver.accepted[0].headers
    assert headers["content-type"].startswith("application/cloudevents+json")
    assert headers["webhook-id"] == event["id"] == f"{run_id}/{event['sequence']}"
    assert "webhook-signature" not in headers
    found = await delivery_with(system, status="delivered")
    assert (found["event_id"], found["run_id"], found["attempts"], found["event"]) == (
        event["id"], run_id, 1, event,
    )  # fmt: skip


async def test_the_signatures_can_be_verified_with_each_of_two_secrets(
    system: RunningSystem, receiver: EventReceiver
) -> None:
    await system.save(GREETING)
    await system.call("PUT", "/secrets/current", {"value": SECRET})
    await system.call("PUT", "/secrets/next", {"value": NEXT_SECRET})
    await subscribe(system, receiver, "run.completed", secret=["current", "next"])
    await system.start("greeting", {"team": "a"})
    await receiver.accepts(1)
    delivery = receiver.accepted[0]
    signatures = delivery.headers["webhook-signature"].split(" ")
    assert signatures == [signature(delivery, SECRET), signature(delivery, NEXT_SECRET)]


def signature(delivery: ReceivedDelivery, secret: str) -> str:
    """As the specification of Standard Webhooks computes it."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    parts = (delivery.headers["webhook-id"], delivery.headers["webhook-timestamp"], delivery.body.decode())
    return f"v1,{base64.b64encode(hmac.digest(key, '.'.join(parts).encode(), 'sha256')).decode()}"


async def test_a_delivery_waits_for_its_secret(system: RunningSystem, receiver: EventReceiver) -> None:
    await system.save(GREETING)
    await subscribe(system, receiver, "run.completed", secret="later")
    await system.start("greeting", {"team": "a"})
    found = await status_becomes(system, "failing")
    assert "'later'" in str(found["error"])
    await system.call("PUT", "/secrets/later", {"value": SECRET})
    await system.call("POST", "/subscriptions/outside/resume")
    await receiver.accepts(1)
    assert receiver.requests == 1


async def test_only_the_chosen_types_workflows_and_labels_are_reported(
    system: RunningSystem, receiver: EventReceiver
) -> None:
    await system.save(GREETING)
    await system.save({**GREETING, "name": "other"})
    await system.save(FAILING)
    await subscribe(system, receiver, "run.completed", workflow="greeting", label="team:a")
    await system.call(
        "POST",
        "/subscriptions",
        {"name": "failures", "url": receiver.url, "types": ["run.failed", "step.failed"]},
    )
    for workflow, team in (("other", "a"), ("greeting", "b"), ("failing", "a")):
        await system.wait_for(await system.start(workflow, {"team": team}))
    wanted = await system.start("greeting", {"team": "a"})
    events = await receiver.accepts(3)
    assert sorted((event["type"], event["workflow"]) for event in events) == [
        ("run.completed", "greeting"),
        ("run.failed", "failing"),
        ("step.failed", "failing"),
    ]
    assert {event["subject"] for event in events if event["type"] == "run.completed"} == {wanted}
    failed = next(event for event in events if event["type"] == "step.failed")
    assert (failed["data"]["step"], failed["data"]["error"]["code"]) == ("bad", "expression_failed")
    assert len(await deliveries(system)) == 1


async def test_a_question_is_reported_with_what_it_asks(
    system: RunningSystem, receiver: EventReceiver
) -> None:
    await subscribe(system, receiver, "question.asked", "run.waiting", "run.completed")
    run_id = await ask(system)
    asked, waiting = await receiver.accepts(2)
    assert (asked["type"], waiting["type"]) == ("question.asked", "run.waiting")
    data = asked["data"]
    assert (data["step"], data["kind"], data["title"]) == ("ok", "person", "Approve it")
    assert (data["assignees"], data["options"]) == (["ada"], ["approve", "reject"])
    item = await system.call("GET", f"/inbox/{data['item']}")
    assert item.json["run_id"] == run_id
    assert waiting["data"]["steps"] == ["ok"]
    await reply(system, run_id, {"answer": "approve", "data": {"amount": 1}})
    assert (await receiver.accepts(3))[2]["type"] == "run.completed"


async def test_everything_arrives_in_order_at_a_receiver_that_is_down_half_of_the_time(
    system: RunningSystem, receiver: EventReceiver
) -> None:
    await system.save(FAILING)
    tried: set[str] = set()

    def fail_once(delivery: ReceivedDelivery) -> int:
        webhook_id = delivery.headers["webhook-id"]
        if webhook_id in tried:
            return 200
        tried.add(webhook_id)
        return 503

    receiver.answer_delivery = fail_once
    await subscribe(system, receiver, "step.failed", "run.failed")
    runs = [await system.start("failing", {}) for _ in range(12)]
    events = await receiver.accepts(24)
    of_run: dict[str, list[str]] = {}
    for event in events:
        of_run.setdefault(event["subject"], []).append(event["type"])
    assert of_run == {run_id: ["step.failed", "run.failed"] for run_id in runs}
    assert len({event["id"] for event in events}) == 24
    assert receiver.requests == 48
    await status_becomes(system, "active")


async def test_a_paused_subscription_holds_its_deliveries(
    system: RunningSystem, receiver: EventReceiver
) -> None:
    await system.save(GREETING)
    await subscribe(system, receiver, "run.completed")
    paused = await system.call("POST", "/subscriptions/outside/pause")
    assert paused.json["status"] == "paused"
    run_id = await system.start("greeting", {"team": "a"})
    await delivery_with(system, run_id=run_id, status="pending")
    assert receiver.requests == 0
    resumed = await system.call("POST", "/subscriptions/outside/resume")
    assert resumed.json["status"] == "active"
    [event] = await receiver.accepts(1)
    assert event["subject"] == run_id


async def test_a_test_delivery_is_sent_once_and_shows_what_came_of_it(
    system: RunningSystem, receiver: EventReceiver
) -> None:
    await subscribe(system, receiver, "run.completed", enabled=False)
    receiver.answer = lambda _: 500
    failed = await system.call("POST", "/subscriptions/outside/test")
    assert (failed.json["status"], failed.json["error"]) == ("failed", "The receiver answered with HTTP 500.")
    receiver.answer = lambda _: 204
    sent = await system.call("POST", "/subscriptions/outside/test")
    assert (sent.json["status"], sent.json["error"], sent.json["type"]) == (
        "delivered", None, "subscription.test",
    )  # fmt: skip
    assert [event["type"] for event in receiver.events] == ["subscription.test"]
    assert receiver.requests == 2
    assert [each["status"] for each in await deliveries(system)] == ["delivered", "failed"]


async def test_a_delivery_can_be_sent_again(system: RunningSystem, receiver: EventReceiver) -> None:
    await system.save(GREETING)
    await subscribe(system, receiver, "run.completed")
    await system.start("greeting", {"team": "a"})
    found = await delivery_with(system, status="delivered")
    again = await system.call("POST", f"/subscriptions/outside/deliveries/{found['id']}/redeliver")
    assert (again.status, again.json["id"]) == (202, found["id"])
    first, second = await receiver.accepts(2)
    assert first == second
    unknown = await system.call("POST", "/subscriptions/outside/deliveries/nothing/redeliver")
    assert unknown.status == 404


async def test_a_pending_delivery_is_not_sent_twice(system: RunningSystem, receiver: EventReceiver) -> None:
    await system.save(GREETING)
    await subscribe(system, receiver, "run.completed", enabled=False)
    await system.start("greeting", {"team": "a"})
    found = await delivery_with(system, status="pending")
    again = await system.call("POST", f"/subscriptions/outside/deliveries/{found['id']}/redeliver")
    assert (again.status, again.json["title"]) == (409, "Conflict")


async def test_a_changed_address_gets_what_waits(system: RunningSystem, receiver: EventReceiver) -> None:
    await system.save(GREETING)
    receiver.answer = lambda _: 500
    await subscribe(system, receiver, "run.completed")
    await system.start("greeting", {"team": "a"})
    await status_becomes(system, "failing")
    async with event_receiver() as other:
        body: JsonObject = {"name": "outside", "url": other.url, "types": ["run.completed"]}
        saved = await system.call("PUT", "/subscriptions/outside", body)
        assert (saved.status, saved.json["status"]) == (200, "active")
        await other.accepts(1)
    assert receiver.accepted == []


async def test_a_deleted_subscription_sends_nothing_more(
    system: RunningSystem, receiver: EventReceiver
) -> None:
    await system.save(GREETING)
    await subscribe(system, receiver, "run.completed", enabled=False)
    await system.start("greeting", {"team": "a"})
    await delivery_with(system, status="pending")
    assert (await system.call("DELETE", "/subscriptions/outside")).status == 204
    assert (await system.call("GET", "/subscriptions/outside")).status == 404
    assert (await system.call("DELETE", "/subscriptions/outside")).status == 404
    # The same name again is another subscription, with a history of its own.
    await subscribe(system, receiver, "run.completed")
    assert await deliveries(system) == []


@pytest.mark.embedded_only
async def test_saving_without_a_change_changes_nothing(
    system: RunningSystem, receiver: EventReceiver
) -> None:
    first = await subscribe(system, receiver, "run.failed", "run.completed")
    body: JsonObject = {"name": "outside", "url": receiver.url, "types": ["run.completed", "run.failed"]}
    again = await system.call("PUT", "/subscriptions/outside", body)
    assert (again.status, again.json) == (200, first)
    taken = await system.call("POST", "/subscriptions", body)
    assert taken.status == 409


def findings(answer: Answer) -> list[tuple[str, str]]:
    assert answer.status == 422, answer.body
    errors: Any = answer.json["errors"]
    return [(error["path"], error["message"]) for error in errors]


@pytest.mark.embedded_only
@pytest.mark.parametrize(
    ("change", "path", "message"),
    [
        ({"types": []}, "types", "'types' is empty"),
        ({"types": ["run.complete"]}, "types[0]", "did you mean 'run.completed'?"),
        ({"url": "ftp://example.com"}, "url", "'url' cannot be called"),
        ({"name": "../x"}, "name", "not a valid name"),
        ({"label": "team"}, "label", "such as team:billing"),
        ({"label": ["a:1", "a:2"]}, "label", "twice"),
        ({"secret": ["a", "b", "c"]}, "secret", "1 to 2 strings"),
        ({"secret": "not a name"}, "secret", "not a valid secret name"),
        ({"types": ["breaker.open"], "workflow": "x"}, "workflow", "breaker.open is not about a run"),
        ({"filter": "x"}, "filter", "unknown key 'filter'"),
        ({"kind": "trigger"}, "kind", "must be subscription"),
    ],
)
async def test_a_wrong_definition_is_refused_with_its_place(
    system: RunningSystem, change: JsonObject, path: str, message: str
) -> None:
    body: JsonObject = {"name": "x", "url": "https://example.com/", "types": ["run.failed"], **change}
    found = findings(await system.call("POST", "/subscriptions", body))
    assert any(each[0] == path and message in each[1] for each in found), found


@pytest.mark.embedded_only
async def test_the_number_of_subscriptions_is_limited(
    system: RunningSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline.services.subscriptions.subscriptions.MAX_SUBSCRIPTIONS", 1)
    for name, status in (("a", 201), ("a", 409), ("b", 409)):
        body: JsonObject = {"name": name, "url": "https://example.com/", "types": ["run.failed"]}
        answer = await system.call("POST", "/subscriptions", body)
        assert answer.status == status
    assert "the limit is 1" in str(answer.json["detail"])


@pytest.mark.embedded_only
async def test_a_viewer_does_not_see_the_path_of_the_address(tmp_path: Path) -> None:
    admin = bearer(await create_key(tmp_path, "admin"))
    viewer = bearer(await create_key(tmp_path))
    async with guarded_system(tmp_path) as system:
        body: JsonObject = {
            "name": "x",
            "url": "https://example.com/hidden",
            "types": ["run.failed"],
        }
        assert (await system.call("POST", "/subscriptions", body, viewer)).status == 403
        assert (await system.call("POST", "/subscriptions", body, admin)).status == 201
        seen = await system.call("GET", "/subscriptions/x", headers=viewer)
        assert seen.json["url"] == "https://example.com/…"
        assert b"hidden" not in (await system.call("GET", "/subscriptions", headers=viewer)).body
