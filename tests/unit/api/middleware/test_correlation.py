"""What nobody has foreseen is answered as a problem and logged once."""

from __future__ import annotations

import pytest
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.testing import capture_logs

from trunkline.api.middleware.correlation import CorrelationMiddleware
from trunkline.api.routing import OperationRouter, operation
from trunkline.errors import NotFound, Unavailable
from trunkline.jsontypes import decode
from trunkline.telemetry import log_events

pytestmark = pytest.mark.anyio


async def fail(request: Request) -> Response:
    raise RuntimeError("the database password is hunter2")


async def disconnect(request: Request) -> Response:
    raise ClientDisconnect


async def not_found(request: Request) -> Response:
    raise NotFound("There is no such run.")


async def unavailable(request: Request) -> Response:
    raise Unavailable("The disk is full.")


ENDPOINTS = {"fail": fail, "disconnect": disconnect, "not_found": not_found, "unavailable": unavailable}


def routed(name: str) -> ASGIApp:
    execute = operation(
        "POST /api/v1/workflows/w/execute", ENDPOINTS[name], name="x", tag="runs", responses={}
    )
    return CorrelationMiddleware(OperationRouter([execute]))


async def answer(app: ASGIApp) -> tuple[int, bytes]:
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    path = "/api/v1/workflows/w/execute"
    scope: Scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "query_string": b"",
        "headers": [],
        "root_path": "",
    }
    await app(scope, receive, send)
    return sent[0]["status"], sent[1]["body"]


@pytest.mark.parametrize(("name", "status"), [("fail", 500), ("unavailable", 503)])
async def test_a_failure_is_a_problem_that_the_log_explains(name: str, status: int) -> None:
    with capture_logs() as logs:
        code, body = await answer(routed(name))
    problem = decode(body)
    assert isinstance(problem, dict)
    assert (code, problem["status"]) == (status, status)
    assert b"hunter2" not in body
    failures = [line for line in logs if line["event"] == log_events.REQUEST_FAILED]
    assert [line["correlation_id"] for line in failures] == [problem["correlation_id"]]


@pytest.mark.parametrize("name", ["disconnect", "not_found"])
async def test_what_is_no_failure_of_ours_is_not_logged_as_one(name: str) -> None:
    with capture_logs() as logs:
        code, _ = await answer(routed(name))
    assert code in {400, 404}
    assert not [line for line in logs if line["log_level"] == "error"]


async def test_what_no_layer_within_has_logged_is_logged_at_the_edge() -> None:
    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"half", "more_body": True})
        raise RuntimeError("cut through")

    with capture_logs() as logs:
        await answer(CorrelationMiddleware(broken))
    failures = [line for line in logs if line["event"] == log_events.REQUEST_FAILED]
    assert [line["error"] for line in failures] == ["cut through"]
