"""
The web UI: files that were built into the package, served at `/`.

Every address of the page is answered with the same document, which then reads the address by itself. The document
changes with each version and is never kept by a browser; what it loads has a digest in its name and may be kept for
ever. Nothing is loaded from another host, and nothing inline runs that does not carry the nonce of its answer.

An address that is none of the page's is not ours: the API answers it, unknown ones with a problem.
"""

from __future__ import annotations

import gzip
import secrets
from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

BUILT = Path(str(files("trunkline.api"))) / "static"
# The first part of every address that the page knows.
PLACES = frozenset(
    {"", "runs", "workflows", "new-workflow", "agents", "new-agent", "migration", "inbox", "system"}
)
_ASSETS = "/assets/"
_NONCE = "{{nonce}}"
_FOR_EVER = "public, max-age=31536000, immutable"
# Not as the machine's own table has them, which differ. What is text shrinks; images and fonts have shrunk already.
_TEXT = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".json": "application/json"}
_KINDS = _TEXT | {".png": "image/png", ".woff2": "font/woff2"}
_SAFE = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}

_MISSING = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Trunkline</title>
<h1>The page has not been built</h1>
<p>Trunkline is running, and its REST API answers at <code>/api/v1</code>. The page comes with the installed package;
in a checkout it is built by <code>make ui</code>, which needs Node.js.</p>
</html>
"""


class Pages:
    """Wraps an ASGI application; takes the page's own addresses from it."""

    def __init__(self, app: ASGIApp, folder: Path | None = None) -> None:
        self._app = app
        self._folder = folder or BUILT
        self._files = {f"{_ASSETS}{path.name}": path for path in _files(self._folder / "assets")} | {
            f"/{path.name}": path for path in _files(self._folder) if path.name != "index.html"
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._response(scope) if _is_reading(scope) else None
        if response is None:
            await self._app(scope, receive, send)
        else:
            await response(scope, receive, send)

    async def _response(self, scope: Scope) -> Response | None:
        path: str = scope["path"]
        file = self._files.get(path)
        if file is not None:
            return await _file(file, Headers(scope=scope), for_ever=path.startswith(_ASSETS))
        if is_page(path):
            return _document(self._folder)
        return None


def is_page(path: str) -> bool:
    return path[1:].partition("/")[0] in PLACES


def _is_reading(scope: Scope) -> bool:
    return scope["type"] == "http" and scope["method"] in {"GET", "HEAD"}


def _files(folder: Path) -> Iterable[Path]:
    return (path for path in folder.iterdir() if path.is_file()) if folder.is_dir() else ()


async def _file(path: Path, headers: Headers, *, for_ever: bool) -> Response:
    packed = path.suffix in _TEXT and "gzip" in headers.get("accept-encoding", "")
    content = await run_in_threadpool(_packed if packed else _plain, path)
    kind = _KINDS.get(path.suffix, "application/octet-stream")
    answer = Response(
        content, headers={"Cache-Control": _FOR_EVER if for_ever else "no-cache", **_SAFE}, media_type=kind
    )
    if path.suffix in _TEXT:
        answer.headers["Vary"] = "Accept-Encoding"
    if packed:
        answer.headers["Content-Encoding"] = "gzip"
    return answer


@lru_cache(256)
def _plain(path: Path) -> bytes:
    return path.read_bytes()


@lru_cache(256)
def _packed(path: Path) -> bytes:
    return gzip.compress(path.read_bytes(), mtime=0)


def _document(folder: Path) -> Response:
    nonce = secrets.token_urlsafe(16)
    text = _index(folder)
    return Response(
        (text or _MISSING).replace(_NONCE, nonce),
        200 if text else 503,
        headers={"Cache-Control": "no-store", "Content-Security-Policy": _policy(nonce), **_SAFE},
        media_type="text/html",
    )


@lru_cache(8)
def _index(folder: Path) -> str | None:
    path = folder / "index.html"
    return path.read_text("utf-8") if path.is_file() else None


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
