"""The system over REST: its state, the audit log, and the identity of the caller."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import aiohttp
import pytest
from tests.resources import read_resource
from tests.scenarios.api.test_dead_letters import put
from tests.scenarios.api.test_keys import EVERY_ROLE, bearer, create_key, guarded_system, keys_of

from trunkline import __version__
from trunkline.api.resources.system import AuditEntryResource, AuditPage, CallerResource, SystemState
from trunkline.brokers.base import ConsumerGroup, Lag
from trunkline.clock import Instant
from trunkline.errors import Unavailable
from trunkline.jsontypes import Json, JsonObject
from trunkline.services.operations.system_status import Deployment, SystemMonitor
from trunkline.stores.base import KeyRole, Store
from trunkline.stores.port.operations import Process
from trunkline.testing import (
    FakeClock,
    RunningSystem,
    ScriptedAgent,
    jsonrpc_task,
    simple_success,
)
from trunkline.testing.agents import Call

pytestmark = pytest.mark.anyio

ONE = "{name: one, steps: {a: {agent: A}}}"


async def look(system: RunningSystem) -> SystemState:
    return read_resource(SystemState, (await system.call("GET", "/system")).body)


async def changes(system: RunningSystem, query: str = "") -> list[tuple[str, str, str]]:
    """Oldest first: what was done to what."""
    answer = await system.call("GET", f"/audit?limit=1000{query}")
    found = read_resource(AuditPage, answer.body)["items"]
    return [(entry["kind"], entry["action"], entry["subject"]) for entry in reversed(found)]


async def test_it_says_what_it_is_and_that_all_is_well(system: RunningSystem, backend: str) -> None:
    found = await look(system)
    assert (found["version"], found["ready"], found["warnings"]) == (__version__, True, [])
    assert found["mode"] == ("embedded" if backend == "embedded" else "distributed")
    assert all(each["ok"] and each["detail"] is None for each in found["dependencies"])
    if backend == "embedded":
        assert found["consumers"] is None
    else:
        consumers = [(each["role"], each["pool"]) for each in found["consumers"] or []]
        assert consumers == [("bridge", None), ("executor", None)]
    (process,) = found["processes"] or []
    assert (process["roles"], process["alive"], process["this"]) == (
        ["api", "bridge", "executor"],
        True,
        True,
    )


async def test_it_counts_runs_and_what_waits(system: RunningSystem, tmp_path: Path) -> None:
    async with ScriptedAgent(simple_success({})) as agent:
        await system.register("A", agent.url, protocol="simple-a2a")
        await system.save(ONE)
        await system.run("one")
    await put(tmp_path / "data", b"a", b"b")
    found = await look(system)
    assert {each["name"]: each["count"] for each in found["runs"] or []}["COMPLETED"] == 1
    queues = {each["name"]: (each["count"], each["exact"]) for each in found["queues"] or []}
    assert queues["dead_letters"] == (2, True)
    assert queues["inbox"] == queues["timers_due"] == queues["tasks_queued"] == (0, True)
    assert any("2 messages" in warning for warning in found["warnings"])


class _UnavailableStore:
    """A store that cannot be reached."""

    @property
    def backlog(self) -> _UnavailableStore:
        return self

    async def queues(self, most: int) -> object:
        raise Unavailable(f"It is away, whatever {most} is.")


@pytest.mark.embedded_only
async def test_while_the_store_is_away_it_still_says_what_it_is() -> None:
    process = Process(id="p", name="host:1", roles=("api",), version="1", started_at=Instant(0))
    setup = Deployment(mode="embedded", store="sqlite", broker="memory")
    asked: list[Sequence[str]] = []

    async def lags_of(pools: Sequence[str]) -> Sequence[Lag] | None:
        asked.append(pools)
        return [lag]

    lag = Lag(ConsumerGroup("g", "t", "bridge"), 3, 4)
    sight = await SystemMonitor(
        cast("Store", _UnavailableStore()), FakeClock(), process, setup, lags_of
    ).snapshot()
    assert (sight.processes, sight.queues, sight.this.name) == (None, None, "host:1")
    assert (sight.lags, asked) == ([lag], [()])


async def test_every_change_of_a_run_is_noted(system: RunningSystem) -> None:
    async with ScriptedAgent(jsonrpc_task("Really?", state="input-required"), jsonrpc_task("Yes.")) as agent:
        await system.register("A", agent.url, protocol="jsonrpc-2.0")
        await system.save(ONE)
        run = await system.start("one")
        await system.wait_for(run, {"WAITING"})
        for action in ("pause", "resume"):
            assert (await system.call("POST", f"/runs/{run}/{action}")).status == 202
        await system.wait_for(run, {"WAITING"})
        answer = await system.call("POST", f"/runs/{run}/steps/a/reply", {"text": "a-secret-answer"})
        assert answer.status == 202
        await system.wait_for(run)
        assert (await system.call("POST", f"/runs/{run}/retry", {"from_step": "a"})).status == 202
        assert (await system.call("POST", f"/runs/{run}/cancel")).status == 409
    audit = await system.call("GET", f"/audit?subject={run}")
    found = [(entry["action"], entry["detail"]) for entry in read_resource(AuditPage, audit.body)["items"]]
    assert found == [
        ("retry", {"from_step": "a", "other_input": False}),
        ("reply", {"step": "a"}),
        ("resume", {}),
        ("pause", {}),
    ]
    assert b"a-secret-answer" not in audit.body


async def test_every_change_of_an_agent_a_workflow_and_a_secret_is_noted(system: RunningSystem) -> None:
    await system.register("A", "http://127.0.0.1:9/", auth_type="bearer", auth_config={"token": "tok-4711"})
    await system.call("PATCH", "/agents/A", {"auth_config": {"token": "tok-4712"}, "timeout_ms": 5_000})
    await system.call("PATCH", "/agents/A", {"timeout_ms": 5_000})
    await system.call("POST", "/agents/A/reset")
    await system.save(ONE)
    await system.save(ONE)
    await system.call("PUT", "/secrets/bot", {"value": "val-4711"})
    await system.call("DELETE", "/secrets/bot")
    await system.call("DELETE", "/secrets/bot")
    await system.call("DELETE", "/agents/A")
    assert await changes(system) == [
        ("agent", "create", "A"),
        ("agent", "change", "A"),
        ("agent", "reset", "A"),
        ("workflow", "save", "one"),
        ("secret", "set", "bot"),
        ("secret", "remove", "bot"),
        ("agent", "delete", "A"),
    ]
    audit = await system.call("GET", "/audit")
    changed = read_resource(AuditPage, audit.body)["items"][5]
    assert sorted(cast("list[str]", changed["detail"]["changed"])) == ["auth_config", "timeout_ms"]
    assert b"4711" not in audit.body
    assert b"4712" not in audit.body


async def test_dead_letters_and_moves_of_agents_are_noted(system: RunningSystem, tmp_path: Path) -> None:
    (letter,) = await put(tmp_path / "data", b"a")
    await system.call("DELETE", f"/dead-letters/{letter}")
    await system.register("A", "http://127.0.0.1:9/", protocol="simple-a2a")
    attested: JsonObject = {"note": "It was tried.", "who": "me", "target": {"protocol": "a2a-1.0"}}
    assert (await system.call("POST", "/migration/agents/A/ready", attested)).status == 200
    assert await changes(system, "&kind=dead_letter") == [("dead_letter", "discard", letter)]
    assert await changes(system, "&kind=migration") == [("migration", "attest", "A")]
    assert await changes(system, "&who=me") == [("migration", "attest", "A")]


async def test_messages_that_people_send_to_agents_are_noted(system: RunningSystem) -> None:
    """They can make an agent act, though they change nothing here."""
    async with ScriptedAgent(simple_success({"text": "hi"})) as agent:
        await system.register("A", agent.url, protocol="simple-a2a")
        assert (await system.call("POST", "/agents/A/try", {"text": "a-secret-message"})).status == 200
        assert (await system.call("POST", "/agents/A/check", {"active": True})).status == 200
        # Sends nothing that an agent takes for work.
        assert (await system.call("POST", "/agents/A/check")).status == 200
    assert await changes(system, "&kind=agent") == [
        ("agent", "create", "A"),
        ("agent", "try", "A"),
        ("agent", "check", "A"),
    ]
    audit = await system.call("GET", "/audit")
    assert b"a-secret-message" not in audit.body


async def test_a_message_is_noted_even_if_its_sender_dies_before_the_answer(system: RunningSystem) -> None:
    gate = asyncio.Event()

    async def answer_later(call: Call) -> Json:
        await gate.wait()
        return simple_success({})(call)

    async with ScriptedAgent(answer_later) as agent, asyncio.TaskGroup() as group:
        await system.register("A", agent.url, protocol="simple-a2a")
        group.create_task(system.call("POST", "/agents/A/try", {"text": "hello"}))
        await agent.called()
        noted = await changes(system)
        gate.set()
    assert noted[-1] == ("agent", "try", "A")


async def test_the_audit_log_is_exported_as_json_lines_oldest_first(system: RunningSystem) -> None:
    for name in ("A", "B", "C"):
        await system.register(name, "http://127.0.0.1:9/")
    answer = await system.call("GET", "/audit/export")
    assert answer.headers["Content-Type"].startswith("application/x-ndjson")
    entries = [read_resource(AuditEntryResource, line) for line in answer.body.splitlines()]
    assert [entry["subject"] for entry in entries] == ["A", "B", "C"]
    only = await system.call("GET", f"/audit/export?subject=B&since={entries[1]['at']}")
    assert [read_resource(AuditEntryResource, line) for line in only.body.splitlines()] == [entries[1]]
    assert (await system.call("GET", "/audit/export?since=2100-01-01T00:00:00Z")).body == b""
    assert (await system.call("GET", "/audit/export?since=yesterday")).status == 422


async def test_the_audit_log_can_be_followed(system: RunningSystem) -> None:
    await system.register("A", "http://127.0.0.1:9/")
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{system.url}/api/v1/audit/export?follow=true") as stream,
    ):
        assert read_resource(AuditEntryResource, await stream.content.readline())["subject"] == "A"
        await system.register("B", "http://127.0.0.1:9/")
        assert read_resource(AuditEntryResource, await stream.content.readline())["subject"] == "B"


async def test_changes_are_listed_page_by_page(system: RunningSystem) -> None:
    for name in ("A", "B", "C"):
        await system.register(name, "http://127.0.0.1:9/")
    found = await system.items("/audit?limit=1")
    assert [entry["subject"] for entry in found] == ["C", "B", "A"]
    assert all(entry["who"] is None for entry in found)


async def test_the_key_says_who_it_was(tmp_path: Path) -> None:
    key, other = await create_key(tmp_path, "admin", "ann"), await create_key(tmp_path, "operator", "bob")
    async with guarded_system(tmp_path) as system:
        agent: JsonObject = {"name": "A", "url": "http://127.0.0.1:9/"}
        assert (await system.call("POST", "/agents", agent, bearer(key))).status == 201
        assert (await system.call("POST", "/agents/A/reset", headers=bearer(other))).status == 200
        assert (await system.call("DELETE", "/agents/A", headers=bearer(other))).status == 403
        async with keys_of(tmp_path) as keys:
            await keys.revoke("bob")
        audit = await system.call("GET", "/audit", headers=bearer(key))
    found = [
        (entry["who"], entry["kind"], entry["action"])
        for entry in read_resource(AuditPage, audit.body)["items"]
    ]
    assert found == [
        (None, "key", "revoke"),
        ("bob", "agent", "reset"),
        ("ann", "agent", "create"),
        (None, "key", "create"),
        (None, "key", "create"),
    ]
    assert key.encode() not in audit.body


@pytest.mark.parametrize("role", EVERY_ROLE)
async def test_a_key_can_read_its_own_name_and_role(tmp_path: Path, role: KeyRole) -> None:
    key = await create_key(tmp_path, role, "ann")
    async with guarded_system(tmp_path) as system:
        answer = await system.call("GET", "/me", headers=bearer(key))
    assert read_resource(CallerResource, answer.body) == CallerResource(name="ann", role=role)


async def test_without_keys_everybody_may_do_everything(system: RunningSystem) -> None:
    answer = await system.call("GET", "/me")
    assert read_resource(CallerResource, answer.body) == CallerResource(name=None, role="admin")
