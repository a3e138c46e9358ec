"""A zone as an agent that wants a signed token with each request: the calls, the questions after them, no record."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from starlette.types import Receive, Scope, Send
from structlog.testing import capture_logs
from tests.certificates import signing_key
from tests.scenarios.zones.zone_server import PRIVATE, PUBLIC

from trunkline.jsontypes import Json, JsonObject
from trunkline.serving import base_url, listen, serving
from trunkline.testing import RunningSystem
from trunkline.testing.system import error_of, objects_in
from trunkline.zones import Zone
from trunkline.zones.access.audit import newest_refusals
from trunkline.zones.serving.http_server import ZoneConnection

pytestmark = pytest.mark.anyio

SIGNER: JsonObject = {"key": PRIVATE, "issuer": "verification", "audience": "execution"}


class RecordingAgent:
    """A zone, and every token that came to its door."""

    def __init__(self, policy: JsonObject, accept_after: float = 5.0) -> None:
        self.zone = Zone("execution", policy=policy, accept_after=accept_after)
        self.tokens: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "POST":
            self.tokens += [
                value.decode().removeprefix("Bearer ")
                for name, value in scope["headers"]
                if name == b"authorization"
            ]
        await self.zone(scope, receive, send)


async def prepare(system: RunningSystem, name: str, url: str, **signer: Json) -> str:
    await system.register(
        name,
        url,
        protocol="jsonrpc-2.0",
        protocol_config={"method": "execute_task", "profile": "any"},
        auth_type="signed",
        auth_config={**SIGNER, **signer},
    )
    step: JsonObject = {"agent": name, "input": {"text": "hello"}, "retry": {"max_attempts": 1}}
    await system.save({"name": name.lower(), "steps": {"only": step}})
    return name.lower()


async def test_each_request_to_a_zone_has_a_token_of_its_own_and_no_record_has_any(
    system: RunningSystem, tmp_path: Path
) -> None:
    watched = RecordingAgent({"callers": {"verification": {"keys": [PUBLIC]}}}, accept_after=0.001)

    @watched.zone.method("execute_task")
    async def execute_task(params: JsonObject) -> str:
        # Until somebody has asked twice.
        while len(watched.tokens) < 3:
            await asyncio.sleep(0.01)
        return f"You sent {watched.tokens[-1]}"

    with listen("127.0.0.1", 0) as listener, capture_logs() as lines:
        async with (
            watched.zone.running(tmp_path),
            serving(watched, listener, ZoneConnection),
        ):
            workflow = await prepare(system, "Signed", base_url(listener))
            run = await system.run(workflow)
            records = await system.items(f"/runs/{run['id']}/wire")
            shown = await system.call("GET", "/agents/Signed")
    assert run["status"] == "COMPLETED", run
    assert len(watched.tokens) >= 3
    assert len(set(watched.tokens)) == len(watched.tokens)
    assert newest_refusals(tmp_path, 10) == []
    sent = [str(record["request"]) for record in records]
    assert all("Bearer $TRUNKLINE_SECRET_SIGNED" in request for request in sent)
    everything = json.dumps([run, records, shown.json]) + str(lines)
    assert "You sent [redacted]" in everything
    for secret in (*watched.tokens, PRIVATE.splitlines()[1]):
        assert secret not in everything


async def test_a_zone_that_does_not_know_the_key_gets_one_request(
    system: RunningSystem, tmp_path: Path
) -> None:
    watched = RecordingAgent({"callers": {"verification": {"keys": [PUBLIC]}}})
    with listen("127.0.0.1", 0) as listener:
        async with watched.zone.running(tmp_path), serving(watched, listener, ZoneConnection):
            workflow = await prepare(system, "Unknown", base_url(listener), key=signing_key()[0])
            run = await system.run(workflow)
    assert run["status"] == "FAILED"
    assert error_of(run)["http_status"] == 401
    assert len(watched.tokens) == 1
    assert [refusal.reason for refusal in newest_refusals(tmp_path, 10)] == ["token_signature"]


async def test_a_mistake_in_a_signer_is_refused_when_the_agent_is_registered(system: RunningSystem) -> None:
    answer = await system.call(
        "POST",
        "/agents",
        {
            "name": "Mistaken",
            "url": "https://zone.example",
            "auth_type": "signed",
            "auth_config": {**SIGNER, "key": signing_key("rsa")[0], "lifetime_seconds": 3600},
        },
    )
    assert answer.status == 422
    assert [(error["path"], error["message"]) for error in objects_in(answer.json["errors"])] == [
        ("auth_config.key", "must be an Ed25519 or P-256 key"),
        ("auth_config.lifetime_seconds", "must be a whole number of seconds from 1 to 300"),
    ]
