"""The router finds the operation of a path, with its parameters, whatever else has the same shape."""

from __future__ import annotations

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Message, Scope

from trunkline.api.correlation_ids import SCOPE_KEY
from trunkline.api.parameters import ParameterReader, Parameters, routed_path
from trunkline.api.roles import role_for
from trunkline.api.routing import OperationRouter, operation

pytestmark = pytest.mark.anyio


class NameParameters(Parameters, frozen=True, kw_only=True):
    name: str


async def named(_request: Request, given: NameParameters) -> Response:
    return PlainTextResponse(f"named {given.name}")


async def changes(_request: Request) -> Response:
    return PlainTextResponse("changes")


async def document(_request: Request) -> Response:
    return PlainTextResponse("document")


ROUTER = OperationRouter(
    [
        operation("GET /runs/{name}", named, NameParameters, name="get", tag="runs", responses={}),
        operation("GET /runs/changes", changes, name="changes", tag="runs", responses={}),
        operation("GET /agents/last", changes, name="last", tag="agents", responses={}),
        operation("DELETE /runs/{name}", named, NameParameters, name="delete", tag="runs", responses={}),
        operation("GET /document.json", document, name="document", tag="system", responses={}),
    ]
)


async def call(method: str, path: str, raw: bytes | None = None) -> tuple[int, str, dict[bytes, bytes]]:
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    scope: Scope = {
        "type": "http", "method": method, "path": path, "query_string": b"", "headers": [],
        "scheme": "http", "server": ("127.0.0.1", 8000), "root_path": "", SCOPE_KEY: "c1",
        "raw_path": raw or path.encode(),
    }  # fmt: skip
    await ROUTER(scope, receive, send)
    return sent[0]["status"], sent[1]["body"].decode(), dict(sent[0]["headers"])


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/runs/r1", "named r1"),
        ("/runs/changes", "changes"),
        # Another operation ends like this.
        ("/runs/last", "named last"),
        ("/document.json", "document"),
    ],
)
async def test_a_path_finds_its_operation(path: str, text: str) -> None:
    assert (await call("GET", path))[:2] == (200, text)


async def test_an_encoded_slash_belongs_to_the_parameter() -> None:
    assert (await call("GET", "/runs/agents/tides", b"/runs/agents%2Ftides"))[:2] == (
        200,
        "named agents/tides",
    )
    assert (await call("GET", "/runs/agents/tides"))[0] == 404
    # It cannot hide a segment of another operation.
    assert (await call("GET", "/runs/changes", b"/runs%2fchanges"))[0] == 404


def test_a_call_with_an_encoded_slash_needs_the_same_role() -> None:
    scope = {"path": "/api/v1/workflows/agents/tides/execute"}
    raw = b"/api/v1/workflows/agents%2Ftides/execute"
    assert role_for("POST", routed_path({**scope, "raw_path": raw})) == "operator"


@pytest.mark.parametrize("path", ["/runs", "/runs/", "/runs/a/b", "/document-json", "/document.json/", "/"])
async def test_a_path_that_no_operation_has_is_unknown(path: str) -> None:
    status, body, _ = await call("GET", path)
    assert status == 404
    assert "urn:trunkline:problem:unknown-route" in body


async def test_a_wrong_method_gets_all_methods_of_the_path() -> None:
    status, _, headers = await call("PUT", "/runs/r1")
    assert (status, headers[b"allow"]) == (405, b"DELETE, GET")


def test_every_placeholder_needs_a_parameter() -> None:
    with pytest.raises(TypeError, match="NameParameters lacks a parameter"):
        ParameterReader(NameParameters, "/runs/{name}/steps/{step}")


async def test_a_path_of_its_own_allows_only_its_own_methods() -> None:
    status, _, headers = await call("POST", "/runs/changes")
    assert (status, headers[b"allow"]) == (405, b"GET")
