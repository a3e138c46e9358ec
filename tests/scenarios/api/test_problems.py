"""Whatever goes wrong, the answer is a problem with a fix and a correlation id, and the server goes on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest

from trunkline.api.app import create_app
from trunkline.api.server import base_url, listen, serving
from trunkline.jsontypes import JsonObject
from trunkline.testing import Answer, RunningSystem, running_system

pytestmark = pytest.mark.anyio


@pytest.fixture
def system(shared_system: RunningSystem) -> RunningSystem:
    """Nothing here changes anything."""
    return shared_system


def assert_problem(answer: Answer, status: int) -> None:
    assert answer.status == status, answer.body
    assert answer.headers["Content-Type"] == "application/problem+json"
    problem = answer.json
    assert problem["status"] == status
    assert problem["title"]
    assert problem["detail"]
    assert problem["fix"]
    assert str(problem["type"]).startswith("urn:trunkline:problem:")
    assert problem["correlation_id"] == answer.headers["X-Correlation-ID"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "//api"),
        ("GET", "//api/v1/nothing"),
        ("GET", "//nothing"),
        ("GET", "//docs"),
        ("GET", "//openapi-json"),
        ("GET", "//openapi.json/"),
        ("GET", "/agents/"),
        ("POST", "/workflows/a/b/execute"),
        ("POST", "/workflows//execute"),
        ("GET", "/agents/nobody"),
        ("GET", "/agents/nobody/health"),
        ("DELETE", "/agents/nobody"),
        ("GET", "/workflows/none"),
        ("GET", "/workflows/none/versions"),
        ("GET", "/workflows/none/versions/1"),
        ("POST", "/workflows/none/execute"),
        ("GET", "/runs/none"),
        ("GET", "/runs/none/events"),
        ("GET", "/runs/none/wire"),
        ("POST", "/runs/none/cancel"),
        ("POST", "/runs/none/pause"),
        ("POST", "/runs/none/resume"),
        ("POST", "/runs/none/retry"),
        ("GET", "/runs/%00"),
    ],
)
async def test_what_does_not_exist_is_not_found(system: RunningSystem, method: str, path: str) -> None:
    assert_problem(await system.call(method, path), 404)


async def test_an_unknown_run_is_not_found_before_a_stream_of_it_begins(system: RunningSystem) -> None:
    answer = await system.call("GET", "/runs/none/events", headers={"Accept": "text/event-stream"})
    assert_problem(answer, 404)


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("DELETE", "/agents", "GET, POST"),
        ("POST", "/agents/a", "DELETE, GET, PATCH, PUT"),
        ("GET", "/workflows/w/execute", "POST"),
        ("PUT", "/runs", "GET"),
        ("POST", "//livez", "GET"),
        ("POST", "//openapi.json", "GET"),
        ("DELETE", "//asyncapi.json", "GET"),
    ],
)
async def test_a_wrong_method_gets_the_allowed_ones(
    system: RunningSystem, method: str, path: str, allowed: str
) -> None:
    answer = await system.call(method, path)
    assert_problem(answer, 405)
    assert answer.headers["Allow"] == allowed


@pytest.mark.parametrize("path", ["/agents", "/workflows/w/execute"])
@pytest.mark.parametrize("body", [b"{", b'{"a": NaN}', b'"\xff"', b'"\\ud800"', b"[" * 100_000])
async def test_broken_json_is_a_bad_request(system: RunningSystem, path: str, body: bytes) -> None:
    assert_problem(await system.call("POST", path, body), 400)


async def test_broken_json_is_not_read_as_yaml_when_it_says_that_it_is_json(system: RunningSystem) -> None:
    answer = await system.call("POST", "/workflows", b'{"name": ', {"Content-Type": "application/json"})
    assert_problem(answer, 400)


@pytest.mark.parametrize("path", ["/agents", "/workflows", "/workflows/w/execute"])
async def test_a_body_over_the_limit_is_refused(tmp_path: Path, path: str) -> None:
    async with running_system(tmp_path / "data", max_body_bytes=1000) as system:
        assert_problem(await system.call("POST", path, b'"' + b"x" * 1000 + b'"'), 413)


@pytest.mark.parametrize(
    ("path", "where"),
    [
        ("/runs?limit=0", "query.limit"),
        ("/runs?limit=1001", "query.limit"),
        ("/runs?limit=many", "query.limit"),
        ("/runs?status=DONE", "query.status.0"),
        ("/runs?cursor=!", "query.cursor"),
        ("/runs/r/events?after=-1", "query.after"),
        ("/runs/r/events?cursor=x", "query.cursor"),
        ("/workflows/w/versions/0", "path.version"),
        ("/workflows/w/versions/99999999999999999999", "path.version"),
    ],
)
async def test_a_wrong_parameter_is_named(system: RunningSystem, path: str, where: str) -> None:
    answer = await system.call("GET", path)
    assert_problem(answer, 422)
    errors = answer.json["errors"]
    assert isinstance(errors, list)
    assert [error["path"] for error in errors if isinstance(error, dict)] == [where]


async def test_the_callers_correlation_id_comes_back(system: RunningSystem) -> None:
    headers = {"X-Correlation-ID": "order-7"}
    assert (await system.call("GET", "//livez", headers=headers)).headers["X-Correlation-ID"] == "order-7"
    missing = await system.call("GET", "/runs/none", headers=headers)
    assert_problem(missing, 404)
    assert missing.json["correlation_id"] == "order-7"


async def test_what_is_missing_is_named_by_readyz(system: RunningSystem) -> None:
    async def readiness() -> dict[str, str]:
        return {"store": "the disk is full", "broker": "ok"}

    app = create_app(replace(system.embedded.api, readiness=readiness))
    with listen("127.0.0.1", 0) as listener:
        async with (
            serving(app, listener),
            aiohttp.ClientSession(base_url(listener)) as session,
            session.get("/readyz") as response,
        ):
            answer = Answer(response.status, response.headers.copy(), await response.read())
    assert_problem(answer, 503)
    assert answer.json["detail"] == "store: the disk is full"


async def test_the_system_says_that_it_lives_and_is_ready(system: RunningSystem, backend: str) -> None:
    assert (await system.call("GET", "//livez")).json == {"status": "ok"}
    dependencies: JsonObject = {"store": "ok"} if backend == "embedded" else {"store": "ok", "broker": "ok"}
    assert (await system.call("GET", "//health")).json == {"status": "ok"}
    ready = (await system.call("GET", "//readyz")).json
    assert (await system.call("GET", "//health/ready")).json == ready
    assert ready == {"status": "ok", "dependencies": dependencies, "warnings": []}
    metrics = await system.call("GET", "//metrics")
    assert metrics.headers["Content-Type"].startswith("text/plain")
    assert b"agent_protocol_requests_total" in metrics.body


async def test_no_answer_is_cached_or_taken_for_another_type(system: RunningSystem) -> None:
    paths = (
        "/runs",
        "/agents/none",
        "/nothing",
        "//livez",
        "//readyz",
        "//metrics",
        "//openapi.json",
        "/runs?limit=x",
    )
    for path in paths:
        answer = await system.call("GET", path)
        assert answer.headers["X-Content-Type-Options"] == "nosniff", path
        assert answer.headers["Cache-Control"] == "no-store", path
    async with aiohttp.ClientSession() as session, session.get(f"{system.url}/api/v1/runs/changes") as stream:
        assert stream.headers.getall("Cache-Control") == ["no-store"]
        assert stream.headers["X-Content-Type-Options"] == "nosniff"
