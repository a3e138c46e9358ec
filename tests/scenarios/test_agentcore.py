"""An agent in AgentCore, from the workflow to the zone behind it: the real boto3 client, and a stand-in for AWS."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from deploy.local.agentcore import DENIED, THROTTLED, StandIn

from trunkline.bridge.wire.exchanges import to_curl
from trunkline.jsontypes import Json, JsonObject
from trunkline.serving import base_url, listen, serving
from trunkline.testing import RunningSystem
from trunkline.testing.system import error_of
from trunkline.zones.serving.http_server import ZoneConnection
from trunkline.zones.zone import Zone

pytestmark = pytest.mark.anyio

ARN = "arn:aws:bedrock-agentcore:eu-central-1:123456789012:runtime/execution_zone-a1B2c3D4e5"
ZONE: JsonObject = {
    "transport": "aws-agentcore",
    "protocol": "jsonrpc-2.0",
    "protocol_config": {"profile": "any", "output_mode": "data"},
}
TASK: JsonObject = {
    "name": "task",
    "steps": {"execute": {"agent": "Zone", "retry": {"max_attempts": 1}}},
}


class GatedZone:
    """What a zone's method does, and how often."""

    def __init__(self) -> None:
        self.runs = 0
        self.done = asyncio.Event()
        self.done.set()

    async def execute_task(self, params: JsonObject) -> JsonObject:
        self.runs += 1
        await self.done.wait()
        return {"response_text": f"done: {params['text']}"}


@asynccontextmanager
async def zone_in_agentcore(
    gated: GatedZone, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, accept_after: float = 30.0
) -> AsyncGenerator[StandIn]:
    zone = Zone("execution", accept_after=accept_after)
    zone.method("execute_task")(gated.execute_task)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "nothing"))
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    with listen("127.0.0.1", 0) as listener:
        async with (
            zone.running(tmp_path / "zone"),
            serving(zone, listener, ZoneConnection),
            StandIn(base_url(listener)) as endpoint,
        ):
            for name, value in endpoint.env.items():
                monkeypatch.setenv(name, value)
            yield endpoint


async def test_a_step_is_done_by_a_zone_in_agentcore(
    system: RunningSystem, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gated = GatedZone()
    async with zone_in_agentcore(gated, monkeypatch, tmp_path) as endpoint:
        endpoint.plan.append(THROTTLED)
        await system.register("Zone", f"{ARN}?qualifier=blue", **ZONE)
        await system.save(TASK)
        run = await system.run("task", {"text": "hello"})
        [exchange] = await system.items(f"/runs/{run['id']}/wire")
        health = (await system.call("GET", "/agents/Zone/health")).json
        shown = (await system.call("GET", "/agents/Zone")).json
        har = await system.call("GET", f"/runs/{run['id']}/wire?format=har")
    assert run["output"] == {"status": "success", "response_text": "done: hello"}
    assert (gated.runs, len(endpoint.invocations), endpoint.complaints) == (1, 2, [])
    assert {one.qualifier for one in endpoint.invocations} == {"blue"}
    assert (shown["transport"], shown["url"]) == ("aws-agentcore", f"{ARN}?qualifier=blue")
    assert health["status"] == "unknown"
    assert "cannot be reached without giving it work" in str(health["detail"])
    assert har.status == 200
    assert ARN.encode() in har.body
    request = exchange["request"]
    assert isinstance(request, dict)
    assert request["url"] == f"{ARN}?qualifier=blue"
    assert request["body"] == endpoint.invocations[0].payload.decode()
    command = to_curl(exchange)
    assert "| aws bedrock-agentcore invoke-agent-runtime --region eu-central-1 " in command
    assert f"--runtime-session-id {endpoint.invocations[0].session} " in command
    assert endpoint.secret not in f"{run}{exchange}{command}"


async def test_work_that_takes_long_is_asked_for_in_the_session_that_has_it(
    system: RunningSystem, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gated = GatedZone()
    gated.done.clear()
    async with zone_in_agentcore(gated, monkeypatch, tmp_path, accept_after=0.01) as endpoint:
        await system.register("Zone", ARN, **ZONE)
        await system.save(TASK)
        run_id = await system.start("task", {"text": "hello"})
        while len(endpoint.invocations) < 2:
            await asyncio.sleep(0.01)
        gated.done.set()
        run = await system.wait_for(run_id)
    assert run["output"] == {"status": "success", "response_text": "done: hello"}
    assert gated.runs == 1
    assert len({one.session for one in endpoint.invocations}) == 1


async def test_what_aws_refuses_is_the_steps_error(
    system: RunningSystem, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async with zone_in_agentcore(GatedZone(), monkeypatch, tmp_path) as endpoint:
        endpoint.plan.append(DENIED)
        await system.register("Zone", ARN, **ZONE)
        await system.save(TASK)
        run = await system.run("task", {"text": "hello"})
    error = error_of(run)
    assert (error["code"], error["http_status"]) == ("agent_http_error", 403)
    assert "AccessDeniedException" in str(error["message"])
    assert len(endpoint.invocations) == 1


async def test_an_agent_in_agentcore_is_registered_only_as_it_can_be_called(system: RunningSystem) -> None:
    async def refused(**fields: Json) -> str:
        answer = await system.call("POST", "/agents", {"name": "Zone", "url": ARN, **ZONE, **fields})
        assert answer.status == 422
        return str(answer.json)

    assert "set transport to aws-agentcore" in await refused(transport=None)
    assert "auto is not supported over aws-agentcore" in await refused(protocol="auto", protocol_config=None)
    assert "auth_type" in await refused(auth_type="bearer", auth_config={"token": "t-123456"})
