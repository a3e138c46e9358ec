"""Zones, and agents of A2A 0.1: of what they take only the caller knows, so JSON-RPC itself is what is asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.checker.good_agents import AgentRequest, refusal
from tests.scenarios.zones.zone_server import zone_server

from trunkline.agents.check_reports import DEFAULT_SAMPLE, AgentCheckReport, CheckSample
from trunkline.checker import CheckedAgent, Checker, CheckLimits
from trunkline.errors import Invalid
from trunkline.jsontypes import Json, JsonObject
from trunkline.system_clock import SystemClock
from trunkline.testing import Call, ScriptedAgent
from trunkline.transports.address_policy import AddressPolicy
from trunkline.transports.https import HttpTransport
from trunkline.zones import Zone

pytestmark = pytest.mark.anyio


async def check(
    url: str, protocol: str, config: JsonObject | None = None, sample: CheckSample = DEFAULT_SAMPLE
) -> AgentCheckReport:
    subject = CheckedAgent(url=url, protocol=protocol, protocol_config=config or {}, sample=sample)
    async with HttpTransport(AddressPolicy(allow_loopback=True)) as transport:
        return await Checker(transport, SystemClock(), CheckLimits(request_seconds=30.0)).check(
            subject, active=True
        )


def verdict_of(report: AgentCheckReport, check_id: str) -> str:
    return next(found.verdict for found in report.findings if found.id == check_id)


async def test_a_zone_passes_and_gets_no_work_until_its_input_is_given(tmp_path: Path) -> None:
    zone, done = Zone("execution"), list[JsonObject]()

    @zone.method("execute_task")
    def execute_task(params: JsonObject) -> JsonObject:  # pyright: ignore[reportUnusedFunction] - the zone calls it
        done.append(params)
        return {"posted": True}

    async with zone_server(zone, tmp_path) as url:
        report = await check(url, "jsonrpc-2.0", {"profile": "any"})
        assert report.failures() == []
        assert (verdict_of(report, "works-in-workflow"), done) == ("skipped", [])
        own = CheckSample(input={"channel": "C1"}, text="")
        report = await check(url, "jsonrpc-2.0", {"profile": "any"}, own)
    assert report.failures() == []
    assert (verdict_of(report, "works-in-workflow"), done) == ("passed", [{"channel": "C1"}])


async def test_what_does_not_fit_a_zones_profile_is_not_sent(tmp_path: Path) -> None:
    async with zone_server(Zone("execution"), tmp_path) as url:
        own = CheckSample(input={"channel": 7}, text="")
        report = await check(url, "jsonrpc-2.0", {"profile": "slack"}, own)
    assert verdict_of(report, "works-in-workflow") == "skipped"


async def test_an_agent_of_the_first_a2a_is_asked_for_a_task() -> None:
    def answer(call: Call) -> Json:
        if call.method == "tasks/send":
            status: JsonObject = {"state": "completed"}
            artifacts: list[Json] = [{"parts": [{"type": "text", "text": "Done"}]}]
            result: JsonObject = {"id": call.id, "status": status, "artifacts": artifacts}
            return {"jsonrpc": "2.0", "id": call.id, "result": result}
        asked = AgentRequest("POST", "", "", b"", call.body)
        code = -32001 if call.method == "tasks/get" else -32601
        return refusal(asked, code, "No").value

    async with ScriptedAgent(answer, card={"name": "First", "protocolVersion": "0.1"}) as agent:
        report = await check(agent.url, "a2a-0.1")
    assert report.failures() == []
    assert verdict_of(report, "works-in-workflow") == "passed"
    assert verdict_of(report, "unknown-task") == "passed"


@pytest.mark.parametrize("url", ["stdio:worker", "ftp://agent.example/", "nowhere"])
async def test_what_is_no_address_of_http_cannot_be_checked(url: str) -> None:
    with pytest.raises(Invalid):
        await check(url, "auto")
