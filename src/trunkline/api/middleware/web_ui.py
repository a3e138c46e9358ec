"""
The web UI: files that were built into the package, served at `/`.

All addresses of the UI return the same document, whose script then reads the address. The document changes with each
version and is never cached. The files that it loads have a digest in their names and may be cached forever. Nothing is
loaded from another host, and inline code runs only with the nonce of its response.

All other addresses go to the API, which answers unknown ones with a problem. If a browser requests an unknown address
outside of the API, the UI shows a page instead, because a problem is for programs.
"""

from __future__ import annotations

import gzip
import secrets
from functools import lru_cache
from pathlib import Path, PurePosixPath

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from trunkline.api.middleware.web_ui_files import INDEX, read_files
from trunkline.api.roles import ROLES

# The first segment of every address of the UI.
PLACES = frozenset(
    {
        "",
        "runs",
        "workflows",
        "new-workflow",
        "agents",
        "new-agent",
        "migration",
        "inbox",
        "system",
        "triggers",
        "new-trigger",
        "events",
        "subscriptions",
        "new-subscription",
    }
)
# The first segments of the API's addresses.
_PROGRAMS = frozenset(operation.split("/")[1] for operation in ROLES)
_ASSETS = "/assets/"
_NONCE = "{{nonce}}"
_FOR_EVER = "public, max-age=31536000, immutable"
# Fixed, because the tables of machines differ. Text is compressed; images and fonts are compressed already.
_TEXT = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".json": "application/json"}
_KINDS = _TEXT | {".png": "image/png", ".woff2": "font/woff2"}
_SAFE = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}

_MISSING = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Trunkline</title>
<h1>The web UI has not been built</h1>
<p>Trunkline is running, and its REST API is available at <code>/api/v1</code>. The installed package contains the web
UI. In a checkout, build it with <code>make ui</code>, which needs Node.js.</p>
</html>
"""


class WebUi:
    """Wraps an ASGI application, and answers the addresses of the web UI."""

    def __init__(self, app: ASGIApp, folder: Path | None = None) -> None:
        self._app = app
        # None: those of this package.
        self._folder = folder

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._response(scope) if _is_reading(scope) else None
        if response is None:
            await self._app(scope, receive, send)
        else:
            await response(scope, receive, send)

    async def _response(self, scope: Scope) -> Response | None:
        path: str = scope["path"]
        headers = Headers(scope=scope)
        if is_page(path):
            return _document(await self._read(INDEX))
        if _may_be_file(path) and (content := await self._read(path[1:])) is not None:
            return await _file(path, content, headers)
        if _first(path) not in _PROGRAMS and "text/html" in headers.get("accept", ""):
            return _document(await self._read(INDEX), 404)
        return None

    async def _read(self, name: str) -> bytes | None:
        return (await run_in_threadpool(read_files, self._folder)).get(name)


def is_page(path: str) -> bool:
    return _first(path) in PLACES


def _first(path: str) -> str:
    return path[1:].partition("/")[0]


def _is_reading(scope: Scope) -> bool:
    return scope["type"] == "http" and scope["method"] in {"GET", "HEAD"}


def _may_be_file(path: str) -> bool:
    """False for requests to the API, so that most requests need no lookup."""
    return path.startswith(_ASSETS) or (path.count("/") == 1 and PurePosixPath(path).suffix in _KINDS)


async def _file(path: str, content: bytes, headers: Headers) -> Response:
    suffix = PurePosixPath(path).suffix
    packed = suffix in _TEXT and "gzip" in headers.get("accept-encoding", "")
    answer = Response(
        await run_in_threadpool(_packed, content) if packed else content,
        headers={"Cache-Control": _FOR_EVER if path.startswith(_ASSETS) else "no-cache", **_SAFE},
        media_type=_KINDS.get(suffix, "application/octet-stream"),
    )
    if suffix in _TEXT:
        answer.headers["Vary"] = "Accept-Encoding"
    if packed:
        answer.headers["Content-Encoding"] = "gzip"
    return answer


@lru_cache(256)
def _packed(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


def _document(index: bytes | None, status: int = 200) -> Response:
    nonce = secrets.token_urlsafe(16)
    return Response(
        (index.decode() if index else _MISSING).replace(_NONCE, nonce),
        status if index else 503,
        headers={"Cache-Control": "no-store", "Content-Security-Policy": _policy(nonce), **_SAFE},
        media_type="text/html",
    )


def _policy(nonce: str) -> str:
    return "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            f"style-src 'self' 'nonce-{nonce}'",
            "img-src 'self' data: blob:",
            "font-src 'self'",
            "connect-src 'self'",
            "worker-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )
