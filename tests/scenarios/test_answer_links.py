"""Answer links: one person answers one question, without an API key, once, and not too late."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlencode

import pytest
from aiohttp import ClientSession
from tests.scenarios.api.test_keys import bearer, create_key, guarded_system
from tests.scenarios.event_receiver import event_receiver
from tests.scenarios.test_human_tasks import APPROVAL, ask, asking, reply

from trunkline.jsontypes import JsonObject
from trunkline.testing import FakeClock, RunningSystem, running_system
from trunkline.testing.system import Answer, objects_in, step_of

pytestmark = pytest.mark.anyio

GOOD = {"f1": "7", "comment": "fine", "answer": "approve"}


async def link(system: RunningSystem, run_id: str, person: str = "ada", **fields: str) -> str:
    """Its path, for `call`."""
    body: JsonObject = {"person": person, **fields}
    answer = await system.call("POST", f"/inbox/{run_id}.ok/links", body)
    assert answer.status == 201, answer.body
    assert answer.json["person"] == person
    return "/" + str(answer.json["url"])


async def send(system: RunningSystem, path: str, fields: dict[str, str]) -> Answer:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    return await system.call("POST", path, urlencode(fields).encode(), headers)


async def output(system: RunningSystem, run_id: str) -> JsonObject:
    found = step_of(await system.wait_for(run_id), "ok")["output"]
    assert isinstance(found, dict)
    return found


async def test_a_person_answers_by_link(system: RunningSystem) -> None:
    run_id = await ask(system)
    path = await link(system, run_id)
    page = await system.call("GET", path)
    assert page.status == 200
    assert page.headers["Content-Type"].startswith("text/html")
    for text in (
        b"Approve it",
        b"Please look at it.",
        b"you answer as ada",
        b'value="approve"',
        b'name="f1"',
    ):
        assert text in page.body
    sent = await send(system, path, GOOD)
    # The client follows the redirect to the page that says so.
    assert sent.status == 200
    assert b"Your answer was recorded" in sent.body
    given = await output(system, run_id)
    assert (given["answer"], given["data"], given["by"], given["comment"]) == (
        "approve", {"amount": 7}, "ada", "fine",
    )  # fmt: skip


async def test_after_an_answer_the_page_is_found_below_any_path_of_a_proxy(system: RunningSystem) -> None:
    path = await link(system, await ask(system))
    async with (
        ClientSession() as session,
        session.post(system.url + path[1:], data=GOOD, allow_redirects=False) as answer,
    ):
        assert (answer.status, answer.headers["Location"]) == (303, path.rpartition("/")[2])


async def test_the_audit_log_says_that_an_answer_came_by_link(system: RunningSystem) -> None:
    run_id, other = await ask(system), await ask(system)
    await send(system, await link(system, run_id), GOOD)
    await output(system, run_id)
    assert (await reply(system, other, {"answer": "approve", "data": {"amount": 7}})).status in {200, 202}
    await output(system, other)
    found: dict[str, JsonObject] = {}
    for each in (run_id, other):
        entries = (await system.call("GET", f"/audit?kind=run&subject={each}")).json["items"]
        (entry,) = [entry for entry in objects_in(entries) if entry["action"] == "answer"]
        found[each] = entry
    assert (found[run_id]["who"], found[run_id]["detail"]) == (
        "ada", {"step": "ok", "answer": "approve", "via": "link"},
    )  # fmt: skip
    assert "via" not in str(found[other]["detail"])


async def test_the_page_is_locked_down(system: RunningSystem) -> None:
    headers = (await system.call("GET", await link(system, await ask(system)))).headers
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "script-src" not in headers["Content-Security-Policy"]
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "same-origin"
    assert headers["X-Content-Type-Options"] == "nosniff"


async def test_of_two_people_the_first_one_counts_and_the_second_sees_who(system: RunningSystem) -> None:
    run_id = await ask(system)
    first, second = await link(system, run_id, "ada"), await link(system, run_id, "bob")
    answers = await asyncio.gather(
        send(system, first, GOOD), send(system, second, {**GOOD, "answer": "reject"})
    )
    winner = str((await output(system, run_id))["by"])
    loser = answers[1] if winner == "ada" else answers[0]
    assert sorted(answer.status for answer in answers) == [200, 409]
    assert winner.encode() in loser.body
    late = await system.call("GET", second if winner == "ada" else first)
    assert f"{winner} has answered".encode() in late.body


async def test_a_link_works_once(system: RunningSystem) -> None:
    run_id = await ask(system)
    path = await link(system, run_id)
    await send(system, path, GOOD)
    await system.wait_for(run_id)
    again = await send(system, path, {**GOOD, "answer": "reject"})
    assert b"Your answer was recorded" in again.body
    assert (await output(system, run_id))["answer"] == "approve"


async def test_a_wrong_answer_is_shown_again_with_its_problems(system: RunningSystem) -> None:
    run_id = await ask(system)
    path = await link(system, run_id)
    for fields, problem in (
        ({**GOOD, "f1": "700"}, b"700"),
        ({**GOOD, "f1": "many"}, b"must be a number"),
        ({"f1": "7"}, b"the options are"),
        ({"answer": "approve"}, b"amount"),
    ):
        refused = await send(system, path, {**fields, "f2": "<kept>"})
        assert refused.status == 422
        assert problem in refused.body
        assert b"&lt;kept&gt;" in refused.body
    assert (await system.get(run_id))["status"] == "WAITING"


async def test_two_people_approve_by_link(system: RunningSystem) -> None:
    run_id = await ask(system, asking("both", options=["yes", "no"], required=2))
    for person, status in (("ada", "WAITING"), ("bob", "COMPLETED")):
        path = await link(system, run_id, person)
        assert b"recorded" in (await send(system, path, {"answer": "yes"})).body
        if status == "WAITING":
            assert b"The task needs 1 more" in (await system.call("GET", path)).body
            twice = await send(system, path, {"answer": "no"})
            assert twice.status == 409
        else:
            await system.wait_for(run_id)
        assert (await system.get(run_id))["status"] == status


@pytest.mark.embedded_only
async def test_an_expired_link_and_an_altered_one_are_refused(tmp_path: Path) -> None:
    clock = FakeClock()
    async with running_system(tmp_path, clock=clock) as system:
        run_id = await ask(system)
        path = await link(system, run_id, expires_in="1h")
        altered = await system.call("GET", path[:-3] + "AAA")
        assert (altered.status, b"not valid" in altered.body) == (404, True)
        assert (await send(system, path + "A", GOOD)).status == 404
        clock.advance(timedelta(hours=1))
        for answer in (await system.call("GET", path), await send(system, path, GOOD)):
            assert answer.status in {404, 409}
            assert b"expired" in answer.body
        assert (await system.get(run_id))["status"] == "WAITING"


@pytest.mark.embedded_only
async def test_a_link_is_not_used_too_often(tmp_path: Path) -> None:
    async with running_system(tmp_path, clock=FakeClock()) as system:
        path = await link(system, await ask(system))
        statuses = [(await system.call("GET", path)).status for _ in range(31)]
        assert statuses == [200] * 30 + [429]


@pytest.mark.embedded_only
async def test_wrong_requests_for_links_are_refused(system: RunningSystem) -> None:
    run_id = await ask(system)
    for body, path in (
        ({"person": ""}, "person"),
        ({"person": "a\nb"}, "person"),
        ({"person": "a", "expires_in": "31d"}, "expires_in"),
        ({"person": "a", "expires_in": "soon"}, "expires_in"),
    ):
        refused = await system.call("POST", f"/inbox/{run_id}.ok/links", {**body})
        assert refused.status == 422
        errors = refused.json["errors"]
        assert isinstance(errors, list)
        assert [error["path"] for error in errors if isinstance(error, dict)] == [path]
    await reply(system, run_id, {"answer": "approve", "data": {"amount": 1}})
    gone = await system.call("POST", f"/inbox/{run_id}.ok/links", {"person": "a"})
    assert gone.status == 404


@pytest.mark.embedded_only
async def test_a_link_works_under_the_public_name_without_keys(tmp_path: Path) -> None:
    async with running_system(tmp_path, public_url="https://trunkline.example") as system:
        run_id = await ask(system)
        made = await system.call("POST", f"/inbox/{run_id}.ok/links", {"person": "ada"})
        url = str(made.json["url"])
        assert url.startswith("https://trunkline.example/answer/")
        path = "/" + url.removeprefix("https://trunkline.example")
        host = {"Host": "trunkline.example"}
        assert (await system.call("GET", path, headers=host)).status == 200
        assert (await system.call("GET", "/inbox", headers=host)).status == 403


@pytest.mark.embedded_only
async def test_only_an_admin_creates_links_and_a_link_needs_no_key(tmp_path: Path) -> None:
    admin, operator = (
        bearer(await create_key(tmp_path, "admin")),
        bearer(await create_key(tmp_path, "operator")),
    )
    async with guarded_system(tmp_path) as system:
        run_id = await ask(system, APPROVAL, admin)
        refused = await system.call("POST", f"/inbox/{run_id}.ok/links", {"person": "ada"}, operator)
        assert refused.status == 403
        made = await system.call("POST", f"/inbox/{run_id}.ok/links", {"person": "ada"}, admin)
        path = "/" + str(made.json["url"])
        assert (await system.call("GET", path)).status == 200
        foreign = await system.call("POST", path, b"answer=approve", {"Origin": "https://evil.example"})
        assert foreign.status == 403


@pytest.mark.embedded_only
async def test_a_delivery_has_a_link_for_each_assignee(tmp_path: Path) -> None:
    async with (
        running_system(tmp_path, public_url="https://trunkline.example") as system,
        event_receiver() as receiver,
    ):
        for name, links in (("with", True), ("without", False)):
            body: JsonObject = {"name": name, "url": receiver.url, "types": ["question.asked"]}
            await system.call("POST", "/subscriptions", {**body, "answer_links": links})
        run_id = await ask(system, asking("both", assignees=["ada", "bob"], options=["yes"]))
        data = [event["data"] for event in await receiver.accepts(2)]
        [links] = [each["links"] for each in data if "links" in each]
        assert list(links) == ["ada", "bob"]
        path = "/" + links["bob"].removeprefix("https://trunkline.example")
        await send(system, path, {"answer": "yes"})
        assert (await output(system, run_id))["by"] == "bob"
        history = await system.call("GET", "/subscriptions/with/deliveries")
        assert b"/answer/" not in history.body
