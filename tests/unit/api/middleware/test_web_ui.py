"""The files of the web UI: which addresses are the page's, how long they are kept, and what may run in them."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import NamedTuple

import pytest
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import Message

from trunkline.api.middleware.web_ui import WebUi

pytestmark = pytest.mark.anyio

INDEX = '<!doctype html><meta name="csp-nonce" content="{{nonce}}"><script src="/assets/a-1.js"></script>'
SCRIPT = b"console.info('a script that is long enough to be worth packing');" * 20


class Answer(NamedTuple):
    status: int
    headers: Headers
    body: bytes


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text(INDEX)
    (tmp_path / "favicon.svg").write_text("<svg/>")
    (tmp_path / "assets" / "a-1.js").write_bytes(SCRIPT)
    return tmp_path


async def ask(
    folder: Path, path: str, *, method: str = "GET", accepts: str = "", kind: str = "*/*"
) -> Answer:
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    pages = WebUi(PlainTextResponse("the API", 404), folder)
    headers = [(b"accept-encoding", accepts.encode()), (b"accept", kind.encode())]
    scope = {"type": "http", "method": method, "path": path, "headers": headers, "query_string": b""}
    await pages(scope, receive, send)
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return Answer(sent[0]["status"], Headers(raw=sent[0]["headers"]), body)


@pytest.mark.parametrize(
    "path", ["/", "/runs", "/runs/one", "/workflows/a/edit", "/agents", "/inbox", "/system"]
)
async def test_every_address_of_the_page_is_the_same_uncached_document(folder: Path, path: str) -> None:
    answer = await ask(folder, path)
    assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert answer.headers["cache-control"] == "no-store"


async def test_a_document_may_load_from_its_own_host_only_and_run_nothing_inline(folder: Path) -> None:
    first, second = await ask(folder, "/runs"), await ask(folder, "/runs")
    policy = first.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert not re.search(r"unsafe-|\*|https?:", policy)
    nonce = re.search(r"'nonce-([\w-]{16,})'", policy)
    assert nonce is not None
    assert f'content="{nonce[1]}"'.encode() in first.body
    assert first.body != second.body


@pytest.mark.parametrize(
    "path", ["/api/v1/nothing", "/openapi.json", "/hooks/a2a/x", "/runsx", "/assets/b.js", "/../x"]
)
async def test_what_is_not_the_pages_is_left_to_the_api(folder: Path, path: str) -> None:
    assert (await ask(folder, path)).body == b"the API"


BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


async def test_a_mistyped_address_in_a_browser_shows_the_page(folder: Path) -> None:
    answer = await ask(folder, "/nope", kind=BROWSER)
    assert (answer.status, answer.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert (await ask(folder, "/nope", kind="application/json")).body == b"the API"
    assert (await ask(folder, "/nope", method="POST", kind=BROWSER)).body == b"the API"


@pytest.mark.parametrize("path", ["/api/nope", "/api", "/metrics", "/openapi.json", "/hooks/a2a/x"])
async def test_the_apis_own_addresses_stay_its_own_in_a_browser_too(folder: Path, path: str) -> None:
    assert (await ask(folder, path, kind=BROWSER)).body == b"the API"


async def test_only_reading_is_the_pages(folder: Path) -> None:
    assert (await ask(folder, "/runs", method="POST")).body == b"the API"
    assert (await ask(folder, "/runs", method="HEAD")).status == 200


async def test_what_has_a_digest_in_its_name_is_kept_for_ever_and_nothing_else(folder: Path) -> None:
    script, icon = await ask(folder, "/assets/a-1.js"), await ask(folder, "/favicon.svg")
    assert "immutable" in script.headers["cache-control"]
    assert script.headers["content-type"].startswith("text/javascript")
    assert icon.headers["cache-control"] == "no-cache"
    assert icon.headers["x-content-type-options"] == "nosniff"


async def test_text_is_packed_for_who_can_unpack_it(folder: Path) -> None:
    plain, packed = (
        await ask(folder, "/assets/a-1.js"),
        await ask(folder, "/assets/a-1.js", accepts="gzip, br"),
    )
    assert plain.body == SCRIPT
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.headers["vary"] == "Accept-Encoding"
    assert gzip.decompress(packed.body) == SCRIPT


async def test_without_a_build_the_page_says_how_to_get_one(tmp_path: Path) -> None:
    answer = await ask(tmp_path, "/runs")
    assert answer.status == 503
    assert b"make ui" in answer.body
