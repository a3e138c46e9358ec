"""What other websites make a browser do here changes nothing, and a foreign name that leads here sees nothing."""

from __future__ import annotations

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Message

from trunkline.api.middleware.correlation import CorrelationMiddleware
from trunkline.api.middleware.origin_check import OriginCheck

pytestmark = pytest.mark.anyio

KEYLESS: frozenset[str] = frozenset({"trunkline.example"})


async def status_of(
    names: frozenset[str] | None,
    *,
    method: str = "POST",
    host: str = "127.0.0.1:8000",
    path: str = "/api/v1/runs",
    **headers: str,
) -> int:
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    given = {"host": host, **{name.replace("_", "-"): value for name, value in headers.items()}}
    raw = [(name.encode(), value.encode("latin-1")) for name, value in given.items() if value]
    scope = {"type": "http", "method": method, "path": path, "headers": raw, "query_string": b""}
    await CorrelationMiddleware(OriginCheck(PlainTextResponse("in"), names))(scope, receive, send)
    return int(sent[0]["status"])


@pytest.mark.parametrize(
    "headers",
    [
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
        {"sec_fetch_site": "cross-site", "origin": "http://127.0.0.1:8000"},
        {"origin": "https://evil.example"},
        {"origin": "http://127.0.0.1:9000"},
        {"origin": "null"},
    ],
)
@pytest.mark.parametrize("names", [KEYLESS, None], ids=["without keys", "with keys"])
async def test_a_foreign_page_changes_nothing(names: frozenset[str] | None, headers: dict[str, str]) -> None:
    assert await status_of(names, **headers) == 403
    assert await status_of(names, method="DELETE", **headers) == 403
    # It does not get to see the answer: the browser keeps it.
    assert await status_of(names, method="GET", **headers) == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"sec_fetch_site": "same-origin", "origin": "https://trunkline.example"},
        {"sec_fetch_site": "none"},
        {"origin": "http://127.0.0.1:8000"},
        {"origin": "HTTP://127.0.0.1:8000"},
    ],
)
async def test_our_own_page_and_programs_may_change_things(headers: dict[str, str]) -> None:
    assert await status_of(KEYLESS, **headers) == 200
    assert await status_of(None, **headers) == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "10.0.0.1", "localhost.evil", "[::2]:80"],
)
async def test_without_keys_no_foreign_host_name_is_accepted(host: str) -> None:
    assert await status_of(KEYLESS, method="GET", host=host) == 403
    assert await status_of(None, method="GET", host=host) == 200


@pytest.mark.parametrize(
    "host",
    [
        "",
        "localhost",
        "LOCALHOST:8000",
        "a.localhost:1",
        "127.0.0.1",
        "127.8.8.8:80",
        "[::1]:8000",
    ],
)
async def test_without_keys_the_names_of_this_machine_open(host: str) -> None:
    assert await status_of(KEYLESS, host=host) == 200


@pytest.mark.parametrize("host", ["trunkline.example", "Trunkline.Example:443"])
async def test_without_keys_the_public_name_opens_what_agents_call_and_nothing_else(host: str) -> None:
    for path in ("/hooks/a2a/token", "/livez", "/health"):
        assert await status_of(KEYLESS, host=host, path=path) == 200, path
    for path in (
        "/",
        "/api/v1/runs",
        "/readyz",
        "/metrics",
        "/hooks",
        "/livez/x",
        "//hooks/a2a",
        "/openapi.json",
    ):
        assert await status_of(KEYLESS, host=host, path=path) == 403, path
        assert await status_of(KEYLESS, host=host, path=path, method="GET") == 403, path
        assert await status_of(None, host=host, path=path) == 200, path
