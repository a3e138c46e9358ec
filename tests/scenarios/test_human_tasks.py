"""Steps that ask people, in the whole system: who may answer what, and which answer counts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from datetime import timedelta
from pathlib import Path

import pytest
from tests.scenarios.api.test_keys import bearer, create_key, guarded_system

from trunkline.jsontypes import Json, JsonObject
from trunkline.testing import FakeClock, RunningSystem, running_system
from trunkline.testing.system import Answer, error_of, objects_in, step_of

pytestmark = pytest.mark.anyio

FORM: JsonObject = {
    "type": "object",
    "properties": {"amount": {"type": "number", "maximum": 100}, "note": {"type": "string"}},
    "required": ["amount"],
}
APPROVAL: JsonObject = {
    "name": "approval",
    "steps": {
        "ok": {
            "ask": {
                "title": "Approve ${ input.what }",
                "text": "Please look at it.",
                "form": FORM,
                "options": ["approve", "reject"],
                "assignees": ["ada"],
                "due": "1d",
                "timeout": "3d",
            }
        },
        "after": {"set": {"said": "${ steps.ok.output.answer }"}, "needs": ["ok"]},
    },
}
GOOD: JsonObject = {"answer": "approve", "data": {"amount": 7}, "comment": "fine"}


async def ask(
    system: RunningSystem, definition: JsonObject = APPROVAL, headers: dict[str, str] | None = None
) -> str:
    saved = await system.call("POST", "/workflows", definition, headers)
    assert saved.status in {200, 201}
    run_id = await system.start(str(definition["name"]), {"what": "it"}, headers)
    while (await system.call("GET", f"/runs/{run_id}", headers=headers)).json["status"] != "WAITING":
        await asyncio.sleep(0)
    return run_id


async def reply(
    system: RunningSystem,
    run_id: str,
    body: JsonObject,
    headers: dict[str, str] | None = None,
    step: str = "ok",
) -> Answer:
    return await system.call("POST", f"/runs/{run_id}/steps/{step}/reply", body, headers)


def asking(name: str, **ask: Json) -> JsonObject:
    return {"name": name, "steps": {"ok": {"ask": {"title": "T", **ask}}}}


async def test_a_person_answers_and_the_run_goes_on(system: RunningSystem) -> None:
    run_id = await ask(system)
    waiting = step_of(await system.get(run_id), "ok")["waiting_for"]
    assert isinstance(waiting, dict)
    assert {name: waiting[name] for name in ("kind", "title", "text", "options", "assignees", "form")} == {
        "kind": "person",
        "title": "Approve it",
        "text": "Please look at it.",
        "options": ["approve", "reject"],
        "assignees": ["ada"],
        "form": FORM,
    }
    (item,) = await system.items("/inbox?kind=person")
    assert (item["run_id"], item["title"], item["form"], item["agent"]) == (run_id, "Approve it", FORM, "")
    assert (item["due"], item["until"]) == (waiting["due"], waiting["until"])
    answered = await system.call("POST", "/" + str(item["reply_url"]), {**GOOD, "item": item["id"]})
    assert answered.status == 202
    run = await system.wait_for(run_id)
    output = step_of(run, "ok")["output"]
    assert isinstance(output, dict)
    assert (run["status"], run["output"]) == ("COMPLETED", {"said": "approve"})
    assert {name: output[name] for name in ("answer", "data", "by", "comment")} == {**GOOD, "by": None}
    assert await system.items("/inbox") == []


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"answer": "maybe", "data": {"amount": 7}}, "answer"),
        ({"data": {"amount": 7}}, "answer"),
        ({"answer": "approve"}, "data"),
        ({"answer": "approve", "data": {"amount": "much"}}, "data.amount"),
        ({"answer": "approve", "data": {"amount": 101}}, "data.amount"),
        ({"answer": "approve", "data": [7]}, "data"),
    ],
)
async def test_what_the_options_or_the_form_do_not_allow_is_refused(
    system: RunningSystem, body: JsonObject, path: str
) -> None:
    run_id = await ask(system)
    refused = await reply(system, run_id, body)
    assert refused.status == 422
    assert [error["path"] for error in objects_in(refused.json["errors"])] == [path]
    assert step_of(await system.get(run_id), "ok")["status"] == "WAITING"


async def test_a_form_without_required_values_need_not_be_filled_in(system: RunningSystem) -> None:
    run_id = await ask(system, asking("optional", form={"type": "object"}, options=["yes"]))
    assert (await reply(system, run_id, {"answer": "yes"})).status == 202
    run = await system.wait_for(run_id)
    assert isinstance(run["output"], dict)
    assert run["output"]["data"] == {}


async def test_without_options_and_form_any_text_is_an_answer_but_none_is_not(system: RunningSystem) -> None:
    run_id = await ask(system, asking("open"))
    refused_bodies: list[JsonObject] = [{"text": "hello"}, {"parts": [{"text": "hello"}]}, {"item": "x"}]
    for body in refused_bodies:
        refused = await reply(system, run_id, body)
        assert refused.status in {409, 422}
    assert (await reply(system, run_id, {"answer": "hello"})).status == 202
    run = await system.wait_for(run_id)
    assert isinstance(run["output"], dict)
    assert run["output"]["answer"] == "hello"


async def test_of_two_answers_at_once_one_counts_and_the_other_is_refused(system: RunningSystem) -> None:
    run_id = await ask(system, asking("race", options=["approve", "reject"]))
    both = await asyncio.gather(
        *(reply(system, run_id, {"answer": answer, "comment": f"{n}"})
          for n, answer in enumerate(["approve", "reject"] * 4))
    )  # fmt: skip
    run = await system.wait_for(run_id)
    assert isinstance(run["output"], dict)
    winners = [n for n, answer in enumerate(both) if answer.status == 202]
    assert [f"{n}" for n in winners] == [run["output"]["comment"]]
    losers = [answer for answer in both if answer.status != 202]
    assert {answer.status for answer in losers} == {409}
    assert all(f"was answered with '{run['output']['answer']}'" in str(a.json["detail"]) for a in losers)


async def test_a_late_answer_is_refused(system: RunningSystem) -> None:
    # Its time can be over before anything sees it wait.
    await system.save(asking("brief", timeout="1ms"))
    run_id = await system.start("brief", {"what": "it"})
    run = await system.wait_for(run_id)
    assert error_of(run)["code"] == "ask_timeout"
    assert (await reply(system, run_id, {"answer": "x"})).status == 409


@pytest.mark.embedded_only
async def test_a_question_survives_a_restart_and_times_out_at_its_time(tmp_path: Path) -> None:
    clock = FakeClock()
    definition = asking("patient", timeout="2h", escalate=[{"after": "1h", "to": ["boss"]}])
    async with running_system(tmp_path, clock=clock) as system:
        run_id = await ask(system, definition)
    async with running_system(tmp_path, clock=clock) as system:
        clock.advance(timedelta(hours=1))
        while "boss" not in str((await system.get(run_id))["steps"]):
            await asyncio.sleep(0)
        clock.advance(timedelta(hours=1))
        run = await system.wait_for(run_id)
    assert (error_of(run)["code"], run["finished_at"]) == ("ask_timeout", "2026-01-01T02:00:00.000000Z")


async def test_a_waiting_run_is_paused_answered_resumed_and_others_cancelled(system: RunningSystem) -> None:
    await system.save(APPROVAL)
    await system.save({"name": "outer", "steps": {"inner": {"workflow": "approval", "input": {"what": "x"}}}})
    runs: list[tuple[str, str]] = []
    for _ in range(2):
        outer = await system.start("outer")
        child = (await system.wait_for_step(outer, "inner", {"RUNNING"}))["child"]
        assert isinstance(child, dict)
        await system.wait_for(str(child["run_id"]), {"WAITING"})
        runs.append((outer, str(child["run_id"])))
    (answered, inner), (cancelled, lost) = runs
    await system.call("POST", f"/runs/{answered}/pause")
    await system.wait_for(inner, {"PAUSED"})
    assert (await reply(system, inner, GOOD)).status == 202
    assert step_of(await system.get(inner), "after")["status"] == "PENDING"
    await system.call("POST", f"/runs/{answered}/resume")
    assert (await system.wait_for(answered))["output"] == {"said": "approve"}
    await system.call("POST", f"/runs/{cancelled}/cancel")
    assert (await system.wait_for(cancelled))["status"] == "CANCELLED"
    refused = await reply(system, lost, GOOD)
    assert (refused.status, "CANCELLED" in str(refused.json["detail"])) == (409, True)


async def test_a_retried_run_keeps_the_answer(system: RunningSystem) -> None:
    await system.save(
        {
            "name": "broken",
            "steps": {
                "ok": {"ask": {"title": "T"}},
                "after": {"set": {"x": "${ steps.ok.output.data.missing }"}, "needs": ["ok"]},
            },
        }
    )
    run_id = await system.start("broken")
    await system.wait_for(run_id, {"WAITING"})
    assert (await reply(system, run_id, {"answer": "yes"})).status == 202
    assert (await system.wait_for(run_id))["status"] == "FAILED"
    retried = str((await system.call("POST", f"/runs/{run_id}/retry")).json["id"])
    run = await system.wait_for(retried)
    output = step_of(run, "ok")["output"]
    assert isinstance(output, dict)
    assert output["answer"] == "yes"


async def test_an_answer_for_an_agent_and_a_text_for_a_person_are_refused(system: RunningSystem) -> None:
    run_id = await ask(system)
    refused = await reply(system, run_id, {"text": "approve"})
    assert (refused.status, "human task" in str(refused.json["detail"])) == (422, True)
    await system.save({"name": "agent", "steps": {"ok": {"agent": "nobody"}}})
    other = await system.start("agent")
    await system.wait_for(other)
    refused = await reply(system, other, {"answer": "approve"})
    assert (refused.status, "calls an agent" in str(refused.json["detail"])) == (422, True)


async def test_the_history_says_who_was_asked_and_who_answered(system: RunningSystem) -> None:
    run_id = await ask(system)
    await reply(system, run_id, GOOD)
    await system.wait_for(run_id)
    events = {str(event["type"]): event["data"] for event in await system.items(f"/runs/{run_id}/events")}
    waiting, answered = events["StepWaiting"], events["StepAnswered"]
    assert isinstance(waiting, dict)
    assert isinstance(answered, dict)
    assert isinstance(waiting["waiting_for"], dict)
    assert waiting["waiting_for"]["title"] == "Approve it"
    assert answered["answer"] == "approve"
    entries = await system.items("/audit")
    assert ("answer", run_id) in [(entry["action"], entry["subject"]) for entry in entries]


@pytest.fixture
async def keys(tmp_path: Path) -> AsyncGenerator[tuple[RunningSystem, dict[str, dict[str, str]]]]:
    """A system with API keys, and the header of each person."""
    headers = {name: bearer(await create_key(tmp_path, "admin", name)) for name in ("ann", "ben", "cleo")}
    async with guarded_system(tmp_path) as system:
        yield system, headers


async def test_two_people_must_approve(keys: tuple[RunningSystem, dict[str, dict[str, str]]]) -> None:
    system, people = keys
    two = asking("two", options=["approve", "reject"], required=2)
    run_id = await ask(system, two, people["ann"])
    assert (await reply(system, run_id, {"answer": "approve"}, people["ben"])).status == 202
    again = await reply(system, run_id, {"answer": "approve"}, people["ben"])
    assert (again.status, "by ben before" in str(again.json["detail"])) == (409, True)
    assert (await reply(system, run_id, {"answer": "approve"}, people["cleo"])).status == 202
    run = (await system.call("GET", f"/runs/{run_id}", headers=people["ann"])).json
    assert isinstance(run["output"], dict)
    assert [answer["by"] for answer in objects_in(run["output"]["answers"])] == ["ben", "cleo"]
    late = await reply(system, run_id, {"answer": "reject"}, people["ann"])
    assert (late.status, "was answered by cleo with 'approve'" in str(late.json["detail"])) == (409, True)


async def test_the_starter_can_be_excluded(keys: tuple[RunningSystem, dict[str, dict[str, str]]]) -> None:
    system, people = keys
    run_id = await ask(system, asking("other", exclude_starter=True), people["ann"])
    refused = await reply(system, run_id, {"answer": "yes"}, people["ann"])
    assert refused.status == 403
    assert "who started the run" in str(refused.json["detail"])
    assert (await reply(system, run_id, {"answer": "yes"}, people["ben"])).status == 202


async def test_a_caller_without_a_key_cannot_answer_a_task_that_depends_on_who_answers(
    system: RunningSystem,
) -> None:
    for definition in (asking("alone", exclude_starter=True), asking("pair", required=2)):
        run_id = await ask(system, definition)
        assert (await reply(system, run_id, {"answer": "yes"})).status == 403
