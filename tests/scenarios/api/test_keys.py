"""Where the API asks for keys: nobody comes in without one, each role does what it may, and refusals are seen."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import aiohttp
import pytest
from structlog.testing import capture_logs

from trunkline.api.roles import ROLES, allows
from trunkline.clock import Clock
from trunkline.errors import NotAllowed
from trunkline.services.security.api_keys import ApiKeys
from trunkline.settings import load_settings
from trunkline.stores.base import KeyRole
from trunkline.testing import FakeClock, RunningSystem, running_system
from trunkline.wiring import open_store

pytestmark = pytest.mark.anyio

# Only a stream that does not end at all takes as long.
AMPLE_SECONDS = 60.0
# Streams that go on for as long as somebody listens; every role may.
ENDLESS = {"GET /api/v1/runs/changes"}
EVERY_ROLE: tuple[KeyRole, ...] = ("viewer", "operator", "admin")
# Not in the table, and answered all the same.
ELSEWHERE = ("GET /nothing", "POST /nothing", "HEAD /livez", "OPTIONS /api/v1/runs", "PUT /api/v1/runs")


@asynccontextmanager
async def keys_of(data: Path) -> AsyncGenerator[ApiKeys]:
    async with open_store(load_settings({"data": data}), allow_in_use=True, upgrade=True) as store:
        yield ApiKeys(store)


async def create_key(data: Path, role: KeyRole = "viewer", name: str | None = None) -> str:
    async with keys_of(data) as keys:
        return (await keys.create(name or role, role))[1]


@asynccontextmanager
async def guarded_system(data: Path, clock: Clock | None = None) -> AsyncGenerator[RunningSystem]:
    async with running_system(data, clock=clock, require_keys=True) as system:
        yield system


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def address(call: str) -> tuple[str, str]:
    """A method and a path in which every placeholder names something that does not exist."""
    method, _, path = call.partition(" ")
    return method, "/" + re.sub(r"\{\w+\}", "1", path)


async def test_only_livez_and_the_hooks_of_agents_answer_without_a_key(tmp_path: Path) -> None:
    await create_key(tmp_path)
    async with guarded_system(tmp_path) as system:
        assert (await system.call("GET", "//livez")).status == 200
        for call in (*ROLES, *ELSEWHERE):
            if ROLES.get(call, "viewer") is None:
                continue
            answer = await system.call(*address(call))
            assert answer.status == 401, call
            assert answer.headers["WWW-Authenticate"].startswith("Bearer")
            if not call.startswith("HEAD"):
                assert answer.headers["Content-Type"] == "application/problem+json"
                assert answer.json["type"] == "urn:trunkline:problem:key-needed"
                assert "trunkline keys create" in str(answer.json["fix"])


async def test_without_keys_no_foreign_host_name_is_accepted(tmp_path: Path) -> None:
    """As a website does whose name suddenly leads to this machine."""
    async with running_system(tmp_path, public_url="https://trunkline.example") as system:
        refused = await system.call("GET", "/runs", headers={"Host": "evil.example"})
        assert refused.status == 403
        assert "require_keys" in str(refused.json["fix"])
        assert (await system.call("GET", "/runs", headers={"Host": "trunkline.example"})).status == 403
        assert (await system.call("GET", "//livez", headers={"Host": "trunkline.example"})).status == 200
        assert (await system.call("GET", "/runs")).status == 200


@pytest.mark.parametrize("role", EVERY_ROLE)
async def test_a_key_opens_what_its_role_may_do_and_nothing_else(tmp_path: Path, role: KeyRole) -> None:
    key = await create_key(tmp_path, role)
    async with guarded_system(tmp_path) as system, aiohttp.ClientSession() as session:
        for call, needed in ROLES.items():
            if call in ENDLESS:
                async with session.get(
                    f"{system.url}{call.removeprefix('GET ')}", headers=bearer(key)
                ) as stream:
                    assert stream.status == 200, call
                continue
            method, path = address(call)
            answer = await system.call(method, path, {} if method != "GET" else None, bearer(key))
            if needed is None or allows(role, needed):
                assert answer.status not in {401, 403}, call
            else:
                assert answer.status == 403, call
                assert needed in str(answer.json["detail"])


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": "Bearer tl_unknown"},
        {"Authorization": "Bearer "},
        {"Authorization": "Basic KEY"},
        {"Authorization": "KEY"},
        {"Authorization": "Bearer KEYx"},
        {"X-API-Key": "KEYx"},
        {"X-API-Key": ""},
        {"Cookie": "key=KEY"},
    ],
)
async def test_what_is_no_key_opens_nothing(tmp_path: Path, headers: dict[str, str]) -> None:
    key = await create_key(tmp_path, "admin")
    sent = {name: value.replace("KEY", key) for name, value in headers.items()}
    async with guarded_system(tmp_path) as system:
        assert (await system.call("GET", "/runs", headers=sent)).status == 401
        assert (await system.call("GET", f"/runs?api_key={key}")).status == 401


@pytest.mark.parametrize(
    "headers", [{"Authorization": "bearer KEY"}, {"X-API-Key": "KEY"}, {"Authorization": "Bearer  KEY"}]
)
async def test_a_key_comes_in_either_header(tmp_path: Path, headers: dict[str, str]) -> None:
    key = await create_key(tmp_path)
    sent = {name: value.replace("KEY", key) for name, value in headers.items()}
    async with guarded_system(tmp_path) as system:
        assert (await system.call("GET", "/runs", headers=sent)).status == 200


async def test_a_revoked_key_opens_nothing_after_two_seconds(tmp_path: Path) -> None:
    clock = FakeClock()
    key, other = await create_key(tmp_path, name="leaked"), await create_key(tmp_path, name="other")
    async with guarded_system(tmp_path, clock) as system:
        assert (await system.call("GET", "/runs", headers=bearer(key))).status == 200
        async with keys_of(tmp_path) as keys:
            await keys.revoke("leaked")
        clock.advance(timedelta(seconds=2))
        refused = await system.call("GET", "/runs", headers=bearer(key))
        assert (refused.status, refused.json["detail"]) == (401, "The API key leaked was revoked.")
        assert (await system.call("GET", "/runs", headers=bearer(other))).status == 200


async def test_a_key_created_while_the_server_runs_is_accepted(tmp_path: Path) -> None:
    await create_key(tmp_path, name="first")
    async with guarded_system(tmp_path) as system:
        key = await create_key(tmp_path, "operator", "second")
        answer = await system.call("POST", "/workflows/none/execute", headers=bearer(key))
        assert answer.status == 404


async def test_without_an_active_key_no_request_is_accepted(tmp_path: Path) -> None:
    with pytest.raises(NotAllowed, match="without an API key"):
        async with running_system(tmp_path, host="0.0.0.0"):
            pass
    await create_key(tmp_path, name="gone")
    async with keys_of(tmp_path) as keys:
        await keys.revoke("gone")
    with pytest.raises(NotAllowed) as caught:
        async with guarded_system(tmp_path):
            pass
    assert "trunkline keys create NAME --role admin" in caught.value.fix


async def test_a_refusal_is_logged_and_counted_but_never_the_key(tmp_path: Path) -> None:
    key, clock = await create_key(tmp_path), FakeClock()
    async with guarded_system(tmp_path, clock) as system:
        with capture_logs() as logs:
            await system.call("GET", "/runs?secret=in-the-query", headers={"X-Correlation-ID": "c-1"})
            clock.advance(timedelta(seconds=1))
            await system.call("DELETE", "/agents/a", headers=bearer(key))
            clock.advance(timedelta(seconds=1))
            await system.call("GET", "/runs", headers=bearer("tl_someones-own-secret"))
        metrics = await system.call("GET", "//metrics", headers=bearer(key))
        async with keys_of(tmp_path) as keys:
            (record,) = await keys.list()
    refusals = [line for line in logs if line["event"] == "access_refused"]
    assert [line["reason"] for line in refusals] == ["no_key", "role", "unknown_key"]
    assert [line["key_id"] for line in refusals] == [None, record.id, None]
    assert {line["client"] for line in refusals} == {"127.0.0.1"}
    assert {line["log_level"] for line in refusals} == {"warning"}
    first = refusals[0]
    assert (first["method"], first["path"], first["correlation_id"]) == ("GET", "/api/v1/runs", "c-1")
    for secret in (key, "someones-own-secret", "in-the-query"):
        assert secret not in str(logs)
    assert b'trunkline_access_refused_total{reason="role"} 1.0' in metrics.body


async def test_refusals_of_one_client_are_logged_once_a_second_and_all_are_counted(tmp_path: Path) -> None:
    key, clock = await create_key(tmp_path), FakeClock()
    async with guarded_system(tmp_path, clock) as system:
        with capture_logs() as logs:
            for _ in range(5):
                await system.call("GET", "/runs")
            clock.advance(timedelta(seconds=1))
            await system.call("GET", "/runs")
        metrics = await system.call("GET", "//metrics", headers=bearer(key))
    refusals = [line for line in logs if line["event"] == "access_refused"]
    assert [line["not_logged"] for line in refusals] == [0, 4]
    assert b'trunkline_access_refused_total{reason="no_key"} 6.0' in metrics.body


async def test_a_stream_ends_when_its_key_is_revoked(tmp_path: Path) -> None:
    key, other = await create_key(tmp_path, name="leaked"), await create_key(tmp_path, name="other")
    async with guarded_system(tmp_path) as system, aiohttp.ClientSession() as session:
        url = f"{system.url}/api/v1/runs/changes"
        async with (
            session.get(url, headers=bearer(key)) as stream,
            session.get(url, headers=bearer(other)) as kept,
        ):
            assert await stream.content.readuntil(b"\n\n") == b": hello\n\n"
            async with keys_of(tmp_path) as keys:
                await keys.revoke("leaked")
            async with asyncio.timeout(AMPLE_SECONDS):
                await stream.content.read()
            assert stream.content.at_eof()
            assert not kept.content.at_eof()
