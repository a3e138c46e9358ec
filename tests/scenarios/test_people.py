"""Whose the items of the inbox are: groups, filters, claims, comments, and rules for the questions of agents."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from datetime import timedelta
from pathlib import Path

import pytest
from tests.scenarios.api.test_keys import bearer, create_key
from tests.scenarios.test_human_tasks import APPROVAL, GOOD, ask, asking, reply

from trunkline.jsontypes import Json, JsonObject
from trunkline.testing import FakeClock, RunningSystem, ScriptedAgent, jsonrpc_task, running_system
from trunkline.testing.system import Answer, objects_in, step_of

pytestmark = pytest.mark.anyio

Headers = dict[str, str]
GROUPS = '{"support": ["ada", "bob"], "bosses": ["cleo"]}'
ASKING = jsonrpc_task("Which tone?", state="input-required")


class People:
    """A system with API keys, and what each person does with it."""

    def __init__(self, system: RunningSystem, headers: Mapping[str, Headers]) -> None:
        self.system = system
        self.headers = headers

    async def ask(self, name: str, **rules: Json) -> str:
        """The id of the new item."""
        run_id = await ask(self.system, asking(name, **rules), self.headers["ann"])
        return f"{run_id}.ok.1.0"

    async def post(self, who: str, item: str, action: str, body: JsonObject | None = None) -> Answer:
        return await self.system.call("POST", f"/inbox/{item}/{action}", body, self.headers[who])

    async def answer(self, who: str, item: str) -> Answer:
        return await reply(self.system, item.split(".", maxsplit=1)[0], {"answer": "yes"}, self.headers[who])

    async def items(self, who: str, query: str) -> list[str]:
        answer = await self.system.call("GET", f"/inbox?{query}", headers=self.headers[who])
        assert answer.status == 200, answer.json
        return [str(item["id"]) for item in objects_in(answer.json["items"])]


@pytest.fixture
async def people(backend_settings: Mapping[str, str], tmp_path: Path) -> AsyncGenerator[People]:
    data = tmp_path / "data"
    roles = {"ann": "admin", "ada": "operator", "bob": "operator", "cleo": "operator", "vic": "viewer"}
    headers = {name: bearer(await create_key(data, role, name)) for name, role in roles.items()}  # pyright: ignore[reportArgumentType] - roles
    async with running_system(data, require_keys=True, groups=GROUPS) as system:
        yield People(system, headers)


def detail(answer: Answer) -> str:
    return str(answer.json["detail"])


async def test_everyone_finds_their_own_items_and_those_of_their_groups(people: People) -> None:
    mine = await people.ask("one", assignees=["ada"])
    ours = await people.ask("two", assignees=["support"], due="1h")
    free = await people.ask("three")
    assert await people.items("ada", "mine=true") == [mine, ours]
    assert await people.items("bob", "mine=true") == [ours]
    assert await people.items("cleo", "mine=true") == []
    assert await people.items("ann", "assignee=support") == [ours]
    assert await people.items("ann", "assignee=ada&limit=1") == [mine]
    assert await people.items("ann", "assignee=ada&workflow=two&kind=person") == [ours]
    assert await people.items("vic", "unassigned=true") == [free]
    assert await people.items("vic", "overdue=true") == []
    both = await people.system.call("GET", "/inbox?mine=true&unassigned=true", headers=people.headers["ada"])
    assert (both.status, objects_in(both.json["errors"])[0]["path"]) == (422, "unassigned")


async def test_a_claimed_item_is_left_to_the_person_who_claimed_it(people: People) -> None:
    item = await people.ask("shared", assignees=["support"])
    claimed = await people.post("ada", item, "claim")
    assert (claimed.status, claimed.json["claimed_by"]) == (200, "ada")
    assert claimed.json["claimed_at"] is not None
    assert (await people.post("ada", item, "claim")).json == claimed.json
    assert await people.items("ada", "mine=true") == [item]
    assert await people.items("bob", "mine=true") == []
    for refused in (await people.post("bob", item, "claim"), await people.answer("bob", item)):
        assert (refused.status, "is claimed by ada since" in detail(refused)) == (409, True)
        assert f"trunkline inbox release {item}" in str(refused.json["fix"])
    refused = await people.post("bob", item, "release")
    assert (refused.status, "only ada or an admin" in detail(refused)) == (403, True)
    assert (await people.post("ada", item, "release")).json["claimed_by"] is None
    assert await people.items("bob", "mine=true") == [item]
    assert (await people.answer("bob", item)).status == 202


async def test_an_admin_releases_the_item_of_another_person(people: People) -> None:
    item = await people.ask("left")
    await people.post("ada", item, "claim")
    assert await people.items("ada", "unassigned=true") == []
    assert (await people.post("ann", item, "release")).status == 200
    assert await people.items("ada", "unassigned=true") == [item]
    again = await people.post("ann", item, "release")
    assert (again.status, "is not claimed" in detail(again)) == (409, True)
    entries = await people.system.call("GET", "/audit", headers=people.headers["ann"])
    done = [(entry["action"], entry["who"]) for entry in objects_in(entries.json["items"])]
    assert done[:2] == [("release", "ann"), ("claim", "ada")]


async def test_of_two_claims_at_once_one_counts(people: People) -> None:
    item = await people.ask("contested")
    claims = await asyncio.gather(*(people.post(who, item, "claim") for who in ("ada", "bob", "cleo", "ann")))
    (winner,) = [claim for claim in claims if claim.status == 200]
    assert {claim.status for claim in claims if claim is not winner} == {409}
    shown = await people.system.call("GET", f"/inbox/{item}", headers=people.headers["vic"])
    assert shown.json["claimed_by"] == winner.json["claimed_by"]


async def test_only_assignees_answer_and_claim_where_the_step_says_so(people: People) -> None:
    item = await people.ask("strict", assignees=["support"], only_assignees=True)
    for refused in (await people.answer("cleo", item), await people.post("cleo", item, "claim")):
        assert refused.status == 403
        assert "only its assignees can answer: support" in detail(refused)
    assert (await people.answer("vic", item)).status == 403
    assert (await people.post("vic", item, "claim")).status == 403
    assert (await people.answer("bob", item)).status == 202


async def test_a_link_is_for_a_person_and_not_for_a_group(people: People) -> None:
    item = await people.ask("linked", assignees=["support"])
    refused = await people.post("ann", item, "links", {"person": "support"})
    assert (refused.status, "'support' is a group" in detail(refused)) == (422, True)
    await people.post("ada", item, "claim")
    url = str((await people.post("ann", item, "links", {"person": "bob"})).json["url"])
    page = await people.system.call("POST", f"/{url}", b"answer=yes")
    assert (page.status, b"is claimed by ada" in page.body) == (409, True)


async def test_the_claim_of_an_agents_question_ends_with_its_answer(people: People) -> None:
    system, ann = people.system, people.headers["ann"]
    async with ScriptedAgent(ASKING, jsonrpc_task("Dear Sir")) as agent:
        await system.call(
            "POST", "/agents", {"name": "Writer", "url": agent.url, "protocol": "jsonrpc-2.0"}, ann
        )
        run_id = await ask(system, {"name": "letter", "steps": {"ok": {"agent": "Writer"}}}, ann)
        item = f"{run_id}.ok.1.0"
        assert (await people.post("ada", item, "claim")).status == 200
        refused = await reply(system, run_id, {"text": "Formal"}, people.headers["bob"])
        assert refused.status == 409
        assert "is claimed by ada" in detail(refused)
        assert (await reply(system, run_id, {"text": "Formal"}, people.headers["ada"])).status == 202
        while await people.items("ada", "mine=true"):
            await asyncio.sleep(0)


async def test_comments_are_kept_in_order_also_when_the_item_is_answered(people: People) -> None:
    item = await people.ask("discussed")
    for who, text in (("ada", "Why so much?"), ("bob", "It is a present.")):
        added = await people.post(who, item, "comments", {"text": text})
        assert (added.status, added.json["by"], added.json["text"]) == (201, who, text)
    assert (await people.post("vic", item, "comments", {"text": "x"})).status == 403
    assert (await people.post("ada", item, "comments", {"text": "  "})).status == 422
    await people.answer("ada", item)
    assert (await people.post("ada", item, "comments", {"text": "late"})).status == 404
    read = await people.system.call("GET", f"/inbox/{item}/comments", headers=people.headers["vic"])
    assert [(each["by"], each["text"]) for each in objects_in(read.json["items"])] == [
        ("ada", "Why so much?"),
        ("bob", "It is a present."),
    ]


@pytest.mark.embedded_only
async def test_an_item_has_a_limited_number_of_comments(system: RunningSystem) -> None:
    run_id = await ask(system)
    for number in range(101):
        added = await system.call("POST", f"/inbox/{run_id}.ok/comments", {"text": f"{number}"})
        assert added.status == (201 if number < 100 else 409)
    missing = await system.call("GET", "/inbox/018f0000-0000-7000-8000-000000000001.ok.1.0/comments")
    assert missing.status == 404


async def test_without_a_key_nobody_claims_or_has_items(system: RunningSystem) -> None:
    run_id = await ask(system)
    claimed = await system.call("POST", f"/inbox/{run_id}.ok/claim")
    mine = await system.call("GET", "/inbox?mine=true")
    assert (claimed.status, mine.status) == (403, 403)
    assert "assignee=NAME" in str(mine.json["fix"])
    assert [item["run_id"] for item in await system.items("/inbox?assignee=ada")] == [run_id]
    assert (await reply(system, run_id, GOOD)).status == 202


@pytest.mark.embedded_only
async def test_an_overdue_item_is_escalated_to_a_group_and_survives_a_restart(tmp_path: Path) -> None:
    clock = FakeClock()
    definition = asking("patient", assignees=["ada"], due="1h", escalate=[{"after": "2h", "to": ["bosses"]}])
    async with running_system(tmp_path, clock=clock, groups=GROUPS) as system:
        run_id = await ask(system, definition)
        other = await ask(system, APPROVAL)
    async with running_system(tmp_path, clock=clock, groups=GROUPS) as system:
        assert await system.items("/inbox?overdue=true") == []
        clock.advance(timedelta(hours=1, seconds=1))
        assert [item["run_id"] for item in await system.items("/inbox?overdue=true")] == [run_id]
        assert await system.items("/inbox?assignee=cleo") == []
        clock.advance(timedelta(hours=1))
        while not (items := await system.items("/inbox?assignee=cleo&overdue=true")):
            await asyncio.sleep(0)
        assert [item["assignees"] for item in items] == [["ada", "bosses"]]
        clock.advance(timedelta(days=1))
        # A page for each.
        overdue = [item["run_id"] for item in await system.items("/inbox?overdue=true&limit=1")]
        assert overdue == [run_id, other]


async def test_the_questions_of_an_agent_have_assignees_and_a_due_time(system: RunningSystem) -> None:
    definition: JsonObject = {
        "name": "booking",
        "steps": {
            "ok": {
                "agent": "Writer",
                "questions": {"assignees": ["${ input.what }", "travel"], "due": "1d"},
            }
        },
    }
    async with ScriptedAgent(ASKING, jsonrpc_task("Done")) as agent:
        await system.register("Writer", agent.url, protocol="jsonrpc-2.0")
        run_id = await ask(system, definition)
        (item,) = await system.items("/inbox?assignee=travel")
        waiting = step_of(await system.get(run_id), "ok")["waiting_for"]
        assert isinstance(waiting, dict)
        assert (item["kind"], item["assignees"], item["text"]) == ("input", ["it", "travel"], "Which tone?")
        assert (item["due"], "title" in item, "form" in item) == (waiting["due"], False, False)
        assert (await reply(system, run_id, {"text": "Formal", "item": item["id"]})).status == 202
        run = await system.wait_for(run_id)
    assert run["status"] == "COMPLETED"
    assert await system.items("/inbox?assignee=travel") == []
