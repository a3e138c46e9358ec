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
from trunkline.clock import Clock, after, rfc3339
from trunkline.errors import NotAllowed
from trunkline.jsontypes import Json, JsonObject
from trunkline.services.security.api_keys import ApiKeys
from trunkline.settings import load_settings
from trunkline.stores.base import KeyRole
from trunkline.testing import Answer, FakeClock, RunningSystem, objects_in, running_system
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


async def create_over_rest(system: RunningSystem, admin: str, body: JsonObject) -> Answer:
    return await system.call("POST", "/keys", body, bearer(admin))


async def last_uses(system: RunningSystem, admin: str) -> dict[str, Json]:
    listed = await system.call("GET", "/keys", headers=bearer(admin))
    return {str(item["name"]): item["last_used_at"] for item in objects_in(listed.json["items"])}


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


async def test_what_is_no_key_opens_nothing(tmp_path: Path) -> None:
    key = await create_key(tmp_path, "admin")
    async with guarded_system(tmp_path) as system:
        for headers in (
            {"Authorization": "Bearer tl_unknown"},
            {"Authorization": "Bearer "},
            {"Authorization": f"Basic {key}"},
            {"Authorization": key},
            {"Authorization": f"Bearer {key}x"},
            {"X-API-Key": f"{key}x"},
            {"X-API-Key": ""},
            {"Cookie": f"key={key}"},
        ):
            assert (await system.call("GET", "/runs", headers=headers)).status == 401, headers
        assert (await system.call("GET", f"/runs?api_key={key}")).status == 401


async def test_a_key_comes_in_either_header(tmp_path: Path) -> None:
    key = await create_key(tmp_path)
    async with guarded_system(tmp_path) as system:
        for headers in (
            {"Authorization": f"bearer {key}"},
            {"X-API-Key": key},
            {"Authorization": f"Bearer  {key}"},
        ):
            assert (await system.call("GET", "/runs", headers=headers)).status == 200, headers


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


async def test_a_key_opens_nothing_once_it_has_expired(tmp_path: Path) -> None:
    clock = FakeClock()
    admin = await create_key(tmp_path, "admin")
    async with guarded_system(tmp_path, clock) as system, aiohttp.ClientSession() as session:
        end = rfc3339(after(clock.now(), timedelta(hours=1)))
        made = await create_over_rest(system, admin, {"name": "guest", "role": "viewer", "expires_at": end})
        key = str(made.json["key"])
        assert (made.status, made.json["expires_at"]) == (201, end)
        async with session.get(f"{system.url}/api/v1/runs/changes", headers=bearer(key)) as stream:
            assert await stream.content.readuntil(b"\n\n") == b": hello\n\n"
            clock.advance(timedelta(hours=1))
            refused = await system.call("GET", "/runs", headers=bearer(key))
            async with asyncio.timeout(AMPLE_SECONDS):
                await stream.content.read()
    assert refused.status == 401
    assert refused.json["detail"] == "The API key guest has expired."


async def test_an_admin_creates_lists_and_revokes_keys_over_rest(tmp_path: Path) -> None:
    clock = FakeClock()
    admin = await create_key(tmp_path, "admin")
    async with guarded_system(tmp_path, clock) as system:
        made = await create_over_rest(system, admin, {"name": "ci", "role": "operator"})
        key = str(made.json["key"])
        assert key.startswith("tl_")
        assert (await system.call("GET", "/runs", headers=bearer(key))).status == 200
        listed = await system.call("GET", "/keys?limit=1", headers=bearer(admin))
        rest = await system.call("GET", f"/keys?cursor={listed.json['next_cursor']}", headers=bearer(admin))
        pages = (objects_in(each.json["items"]) for each in (listed, rest))
        assert [item["name"] for items in pages for item in items] == ["admin", "ci"]
        assert key.encode() not in listed.body + rest.body
        again = await create_over_rest(system, admin, {"name": "ci", "role": "viewer"})
        assert again.status == 409
        assert (await system.call("DELETE", "/keys/ci", headers=bearer(admin))).status == 204
        assert (await system.call("DELETE", "/keys/ci", headers=bearer(admin))).status == 404
        clock.advance(timedelta(seconds=2))
        assert (await system.call("GET", "/runs", headers=bearer(key))).status == 401
        audit = await system.call("GET", "/audit?kind=key&who=admin", headers=bearer(admin))
    assert [(entry["action"], entry["subject"]) for entry in objects_in(audit.json["items"])] == [
        ("revoke", "ci"),
        ("create", "ci"),
    ]


async def test_a_key_with_too_many_requests_in_progress_is_refused_and_another_is_not(tmp_path: Path) -> None:
    key, other = await create_key(tmp_path, name="busy"), await create_key(tmp_path, name="other")
    async with (
        running_system(tmp_path, require_keys=True, max_requests_per_key=1) as system,
        aiohttp.ClientSession() as session,
    ):
        async with session.get(f"{system.url}/api/v1/runs/changes", headers=bearer(key)):
            refused = await system.call("GET", "/runs", headers=bearer(key))
            assert (refused.status, refused.headers["Retry-After"]) == (429, "2")
            assert "max_requests_per_key" in str(refused.json["detail"])
            assert (await system.call("GET", "/runs", headers=bearer(other))).status == 200
            assert (await system.call("GET", "//livez", headers=bearer(key))).status == 200
        # It ends when the server sees that its client is gone.
        async with asyncio.timeout(AMPLE_SECONDS):
            while (await system.call("GET", "/runs", headers=bearer(key))).status == 429:
                await asyncio.sleep(0.01)


async def test_a_key_does_not_revoke_itself(tmp_path: Path) -> None:
    key = await create_key(tmp_path, "admin")
    async with guarded_system(tmp_path) as system:
        refused = await system.call("DELETE", "/keys/admin", headers=bearer(key))
        assert (refused.status, (await system.call("GET", "/keys", headers=bearer(key))).status) == (409, 200)
    assert "trunkline keys revoke admin" in str(refused.json["fix"])


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": "a b", "role": "viewer"}, "not a valid name"),
        ({"name": "a", "role": "root"}, "role"),
        ({"name": "a", "role": "viewer", "expires_at": "2020-01-01T00:00:00Z"}, "expires_at"),
        ({"name": "a", "role": "viewer", "expires_at": "9999-12-31T23:59:59-23:00"}, "expires_at"),
        ({"name": "a", "role": "viewer", "expires_at": "2030-01-01T00:00:00"}, "expires_at"),
        ({"name": "a", "role": "viewer", "key": "tl_mine"}, "key"),
    ],
)
async def test_an_invalid_key_is_not_created(
    shared_system: RunningSystem, body: JsonObject, field: str
) -> None:
    refused = await shared_system.call("POST", "/keys", body)
    assert (await shared_system.call("GET", "/keys")).json["items"] == []
    assert refused.status == 422
    assert field in str(refused.json["detail"])


async def test_the_last_use_of_a_key_is_kept(tmp_path: Path) -> None:
    clock = FakeClock()
    admin, idle = await create_key(tmp_path, "admin"), await create_key(tmp_path, name="idle")
    async with guarded_system(tmp_path, clock) as system:
        await system.call("GET", "/runs", headers=bearer(admin))
        used_at = rfc3339(clock.now())
        async with asyncio.timeout(AMPLE_SECONDS):
            while (await last_uses(system, admin))["admin"] is None:
                await asyncio.sleep(0.01)
        clock.advance(timedelta(minutes=3))
        refused = await system.call("DELETE", "/agents/a", headers=bearer(idle))
        assert refused.status == 403
    async with keys_of(tmp_path) as keys:
        found = {key.name: key.last_used_at for key in await keys.list()}
    # The rest is written at the stop. A refused request does not count.
    assert found["admin"] is not None
    assert rfc3339(found["admin"]) >= used_at
    assert found["idle"] is None


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
            ended, _ = await asyncio.wait(
                [asyncio.ensure_future(stream.content.read())], timeout=AMPLE_SECONDS
            )
            assert ended, "the stream of the revoked key continues"
            assert not kept.content.at_eof()
