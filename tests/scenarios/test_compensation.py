"""Undoing the work of failed and cancelled runs, through REST and the command line."""

from __future__ import annotations

import asyncio

import pytest

from trunkline.jsontypes import Json, JsonObject
from trunkline.testing import Call, RunningSystem, ScriptedAgent, simple_error, simple_success
from trunkline.testing.system import step_of

pytestmark = pytest.mark.anyio

ONCE: JsonObject = {"max_attempts": 1}
TRAVEL: JsonObject = {
    "name": "travel",
    "steps": {
        "flight": {
            "agent": "Flights",
            "compensate": {
                "agent": "Flights",
                "input": {"cancel": "${ steps.flight.output.text }", "why": "${ failure.code }"},
                "retry": ONCE,
            },
        },
        "hotel": {"agent": "Hotels", "needs": ["flight"], "retry": ONCE},
    },
}


def booking(number: str, *, refuses: int = 0) -> ScriptedAgent:
    """Books, and cancels what it has booked; the first `refuses` cancellations fail."""
    left = [refuses]

    def answer(call: Call) -> Json:
        asked = call.body["input"]
        if isinstance(asked, dict) and "cancel" in asked and left[0]:
            left[0] -= 1
            return simple_error("Closed at present")(call)
        return simple_success(number)(call)

    return ScriptedAgent(answer)


def compensation_of(run: JsonObject) -> JsonObject:
    compensation = run["compensation"]
    assert isinstance(compensation, dict)
    return compensation


def undone(run: JsonObject) -> list[tuple[Json, Json]]:
    steps = compensation_of(run)["steps"]
    assert isinstance(steps, list)
    return [(step["name"], step["status"]) for step in steps if isinstance(step, dict)]


async def inbox_item(system: RunningSystem) -> JsonObject:
    """The failed compensation that waits for a person."""
    while not (items := await system.items("/inbox?kind=compensation")):
        await asyncio.sleep(0.02)
    return items[0]


async def event_types(system: RunningSystem, run: JsonObject) -> list[Json]:
    return [event["type"] for event in await system.items(f"/runs/{run['id']}/events")]


async def test_a_failed_run_is_undone_before_it_ends(system: RunningSystem) -> None:
    async with booking("F1") as flights, ScriptedAgent(simple_error("Full")) as hotels:
        await system.register("Flights", flights.url, protocol="simple-a2a")
        await system.register("Hotels", hotels.url, protocol="simple-a2a")
        await system.save(TRAVEL)
        run = await system.wait_for(await system.start("travel"))
    assert run["status"] == "FAILED"
    assert step_of(run, "flight")["status"] == "COMPLETED"
    assert compensation_of(run)["status"] == "COMPLETED"
    assert undone(run) == [("compensate:flight", "COMPLETED")]
    assert [call.body["input"] for call in flights.calls][1:] == [
        {"cancel": "F1", "why": "agent_reported_error"}
    ]
    assert (await event_types(system, run))[-2:] == ["RunCompensated", "RunFailed"]
    assert [listed["id"] for listed in await system.items("/runs?status=FAILED")] == [run["id"]]


async def test_a_cancelled_run_is_undone_if_the_workflow_says_so(system: RunningSystem) -> None:
    async def never(call: Call) -> Json:
        await asyncio.Event().wait()
        return None

    async with booking("F1") as flights, ScriptedAgent(never) as hotels:
        await system.register("Flights", flights.url, protocol="simple-a2a")
        await system.register("Hotels", hotels.url, protocol="simple-a2a")
        await system.save({**TRAVEL, "compensate_on": ["failed", "cancelled"]})
        run_id = await system.start("travel")
        await hotels.called()
        await system.call("POST", f"/runs/{run_id}/cancel")
        run = await system.wait_for(run_id)
    assert (run["status"], undone(run)) == ("CANCELLED", [("compensate:flight", "COMPLETED")])
    assert compensation_of(run)["failure"] == {
        "code": "cancelled",
        "message": "The run was cancelled.",
        "step": None,
    }


@pytest.mark.parametrize(
    ("outcome", "status", "step"),
    [
        ("retry", "COMPLETED", "COMPLETED"),
        ("skip", "COMPLETED", "SKIPPED"),
        ("give_up", "FAILED", "FAILED"),
    ],
)
async def test_a_person_decides_about_a_failed_compensation(
    system: RunningSystem, outcome: str, status: str, step: str
) -> None:
    async with booking("F1", refuses=1) as flights, ScriptedAgent(simple_error("Full")) as hotels:
        await system.register("Flights", flights.url, protocol="simple-a2a")
        await system.register("Hotels", hotels.url, protocol="simple-a2a")
        await system.save(TRAVEL)
        run_id = await system.start("travel")
        item = await inbox_item(system)
        waiting = await system.get(run_id)
        shown = await system.call("GET", f"/inbox/{item['id']}")
        refused = await system.call("POST", f"/runs/{run_id}/cancel")
        wrong = await system.call(
            "POST", f"/runs/{run_id}/steps/compensate:flight/resolve", {"outcome": "succeeded"}
        )
        also_wrong = await system.call("POST", f"/runs/{run_id}/steps/hotel/resolve", {"outcome": "retry"})
        answer = await system.call(
            "POST", f"/runs/{run_id}/steps/compensate:flight/resolve", {"outcome": outcome}
        )
        run = await system.wait_for(run_id)
    assert (waiting["status"], waiting["finished_at"]) == ("COMPENSATING", None)
    assert undone(waiting) == [("compensate:flight", "WAITING")]
    assert shown.json["text"] == "Closed at present"
    assert (refused.status, wrong.status, also_wrong.status, answer.status) == (409, 409, 409, 202)
    assert (run["status"], compensation_of(run)["status"]) == ("FAILED", status)
    assert undone(run) == [("compensate:flight", step)]
    assert await system.items("/inbox") == []


async def test_a_run_is_undone_later_by_hand(system: RunningSystem) -> None:
    async with booking("F1") as flights, ScriptedAgent(simple_error("Full")) as hotels:
        await system.register("Flights", flights.url, protocol="simple-a2a")
        await system.register("Hotels", hotels.url, protocol="simple-a2a")
        await system.save({**TRAVEL, "compensate_on": []})
        run_id = await system.start("travel")
        failed = await system.wait_for(run_id)
        assert "compensation" not in failed
        asked = await system.call("POST", f"/runs/{run_id}/compensate")
        while compensation_of(run := await system.get(run_id))["status"] == "RUNNING":
            await asyncio.sleep(0.02)
        again = await system.call("POST", f"/runs/{run_id}/compensate")
    assert (asked.status, again.status) == (202, 409)
    assert (run["status"], undone(run)) == ("FAILED", [("compensate:flight", "COMPLETED")])
    types = await event_types(system, run)
    assert (types.count("RunFailed"), types[-1]) == (1, "RunCompensated")


async def test_each_item_is_undone_with_its_own_output(system: RunningSystem) -> None:
    definition: JsonObject = {
        "name": "seats",
        "steps": {
            "seat": {
                "agent": "Seats",
                "for_each": {"items": "${ input.seats }", "mode": "sequential"},
                "compensate": {
                    "agent": "Seats",
                    "input": {"cancel": "${ item }", "of": "${ steps.seat.output.text }"},
                },
            },
            "hotel": {"agent": "Hotels", "needs": ["seat"], "retry": ONCE},
        },
    }
    async with booking("S") as seats, ScriptedAgent(simple_error("Full")) as hotels:
        await system.register("Seats", seats.url, protocol="simple-a2a")
        await system.register("Hotels", hotels.url, protocol="simple-a2a")
        await system.save(definition)
        run = await system.wait_for(await system.start("seats", {"seats": ["a", "b", "c"]}))
        item = await system.call("GET", f"/runs/{run['id']}/steps/compensate:seat[1]")
    assert undone(run) == [(f"compensate:seat[{index}]", "COMPLETED") for index in (2, 1, 0)]
    assert [call.body["input"] for call in seats.calls[3:]] == [
        {"cancel": name, "of": "S"} for name in ("c", "b", "a")
    ]
    assert item.json["status"] == "COMPLETED"
    assert step_of(run, "seat")["status"] == "COMPLETED"
