"""Checks of agents in the registry: over REST and by name, with their credentials, kept, and compared."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from tests.checker.broken_agents import AgentServer, broken_agents

from trunkline.cli.app import run_command_line
from trunkline.cli.exit_codes import Exit
from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.telemetry import log_events
from trunkline.testing import Call, RunningSystem, ScriptedAgent, running_system
from trunkline.testing.agents import Reply
from trunkline.testing.system import objects_in

pytestmark = pytest.mark.anyio

SECRET = "s3cret-of-the-agent"


@pytest.fixture(scope="module")
async def server() -> AsyncGenerator[AgentServer]:
    async with broken_agents() as running:
        yield running


@pytest.fixture(scope="module")
async def system(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[RunningSystem]:
    async with running_system(tmp_path_factory.mktemp("checks") / "data") as running:
        yield running


async def check(system: RunningSystem, name: str, body: Json = None) -> JsonObject:
    answer = await system.call("POST", f"/agents/{name}/check", body)
    assert answer.status == 200, answer.body
    return answer.json


def failed(report: JsonObject) -> list[Json]:
    return [found["id"] for found in objects_in(report["findings"]) if found["verdict"] == "failed"]


async def test_a_check_is_answered_and_kept(system: RunningSystem, server: AgentServer) -> None:
    await system.register("Kept", server.agent("state-success"), protocol="jsonrpc-2.0")
    passive = await check(system, "Kept")
    assert (passive["passed"], passive["grade"], passive["active"]) == (True, "A", False)
    active = await check(system, "Kept", {"active": True})
    assert (active["passed"], active["agent"], failed(active)) == (
        False,
        "Kept",
        ["result-state", "works-in-workflow"],
    )
    newest, oldest = await system.items("/agents/Kept/checks?limit=1")
    assert (newest["grade"], newest["failed"]) == ("D", ["result-state", "works-in-workflow"])
    assert oldest["id"] == passive["id"]
    assert (await system.call("GET", f"/agents/Kept/checks/{active['id']}")).json == active


async def test_the_protocol_can_be_another_than_the_registered_one(
    system: RunningSystem, server: AgentServer
) -> None:
    await system.register("Moving", server.agent("good-jsonrpc-2.0"), protocol="simple-a2a")
    assert failed(await check(system, "Moving")) == ["speaks-protocol"]
    assert (await check(system, "Moving", {"protocol": "jsonrpc-2.0"}))["grade"] == "A"


async def test_the_messages_of_a_check_can_be_ones_own(system: RunningSystem, server: AgentServer) -> None:
    await system.register("Own", server.agent("good-jsonrpc-2.0"), protocol="jsonrpc-2.0")
    await check(system, "Own", {"active": True, "input": {"city": "Rome"}, "text": "Oslo"})
    texts = [asked.text for asked in server.asked["good-jsonrpc-2.0"]]
    assert '{"city":"Rome"}' in texts
    assert "Oslo" in texts


async def test_an_agent_is_asked_with_its_own_credentials_and_they_are_not_shown(
    system: RunningSystem,
) -> None:
    def wants_a_key(call: Call) -> Json | Reply:
        # It repeats what it was told, as some do.
        given = call.headers.get("Authorization")
        error: JsonObject = {"code": -32601, "message": f"Method not found; you said {given}"}
        body = encode({"jsonrpc": "2.0", "id": call.id, "error": error})
        return Reply(200 if given == f"Bearer {SECRET}" else 401, body)

    async with ScriptedAgent(wants_a_key) as agent:
        fields: JsonObject = {"auth_type": "bearer", "auth_config": {"token": SECRET}}
        await system.register("Guarded", agent.url, protocol="jsonrpc-2.0", **fields)
        answer = await system.call("POST", "/agents/Guarded/check")
    assert agent.calls
    assert "allowed" not in failed(answer.json)
    assert b"[redacted]" in answer.body
    assert SECRET.encode() not in answer.body


async def test_a_grade_that_changes_is_an_event_and_counted(
    system: RunningSystem, server: AgentServer
) -> None:
    server.played["Drifting"] = "good-jsonrpc-2.0"
    await system.register("Drifting", server.agent("Drifting"), protocol="jsonrpc-2.0")
    assert (await check(system, "Drifting"))["grade"] == "A"
    assert (await check(system, "Drifting"))["grade"] == "A"
    assert await system.metric("agent_check_grade", agent_name="Drifting") == 4
    assert await system.metric("agent_drift_total", agent_name="Drifting", kind="grade") is None

    server.played["Drifting"] = "ids-are-cut"
    with capture_logs() as logs:
        assert (await check(system, "Drifting"))["grade"] == "D"
    assert await system.metric("agent_check_grade", agent_name="Drifting") == 1
    assert await system.metric("agent_drift_total", agent_name="Drifting", kind="grade") == 1
    (line,) = [line for line in logs if line["event"] == log_events.GRADE_CHANGED]
    assert "changed from A to D; regressions: error-id" in line["reason"]


async def test_a_check_of_another_protocol_says_nothing_of_the_agent_as_it_is(
    system: RunningSystem, server: AgentServer
) -> None:
    await system.register("TwoSided", server.agent("good-jsonrpc-2.0"), protocol="jsonrpc-2.0")
    await check(system, "TwoSided")
    assert (await check(system, "TwoSided", {"protocol": "simple-a2a"}))["grade"] == "F"
    assert await system.metric("agent_check_grade", agent_name="TwoSided") == 4
    assert await system.metric("agent_drift_total", agent_name="TwoSided", kind="grade") is None


async def test_what_cannot_be_checked_is_refused(system: RunningSystem, server: AgentServer) -> None:
    await system.register("There", server.agent("good-jsonrpc-2.0"), protocol="jsonrpc-2.0")
    assert (await system.call("POST", "/agents/Nobody/check")).status == 404
    assert (await system.call("GET", "/agents/Nobody/checks")).status == 404
    assert (await system.call("GET", "/agents/There/checks/none")).status == 404
    bodies: list[JsonObject] = [
        {"active": "yes"},
        {"protocol": 7},
        {"protocol": "pigeon"},
        {"url": "http://a/"},
    ]
    for body in bodies:
        answer = await system.call("POST", "/agents/There/check", body)
        assert answer.status == 422, body


async def test_the_command_checks_an_agent_by_its_name(
    system: RunningSystem, server: AgentServer, capsys: pytest.CaptureFixture[str]
) -> None:
    await system.register("ByName", server.agent("errors-without-id"), protocol="jsonrpc-2.0")
    words = ["agents", "check", "ByName", "--url", system.url]
    assert await asyncio.to_thread(run_command_line, words) == Exit.INVALID
    printed = capsys.readouterr().out
    assert "failed: Errors echo the request's id (error-id)" in printed
    assert "ByName" in printed


def test_a_server_that_is_away_is_no_failed_check(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["agents", "check", "Anybody", "--url", "http://127.0.0.1:1"]
    assert run_command_line(words) == Exit.UNREACHABLE


@pytest.mark.parametrize(
    "options",
    [
        ("--auth-type", "bearer", "--auth-file", "key"),
        ("--config", "method=message/send"),
        ("--timeout", "3s"),
    ],
    ids=["credentials", "settings", "timeout"],
)
def test_what_is_registered_has_its_own(
    options: tuple[str, ...],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "key").write_text("x")
    assert run_command_line(["agents", "check", "Anybody", *options]) == Exit.USAGE
    assert "need a URL" in capsys.readouterr().err
