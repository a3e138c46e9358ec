"""
Refuses what another website makes a browser do here.

A browser sends requests wherever a page tells it to. Two of its habits keep a foreign page out: it says where a request
comes from (`Sec-Fetch-Site`, `Origin`), and it keeps to itself what was not meant for that page. The first is checked
for everything that changes something. The second is lost where a foreign name leads to this machine's own address:
where no keys are in use, the door opens only under the names of this machine, and that of `public_url`.

Programs say none of this, and are not asked.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from trunkline.api.headers import find_header
from trunkline.api.problems import KINDS, problem
from trunkline.errors import NotAllowed

_READING = frozenset({"GET", "HEAD", "OPTIONS"})
# As a browser says it of a page of ours, and of an address that somebody has typed.
_OURS = frozenset({b"same-origin", b"none"})
_LONGEST_NAME = 200


class OriginCheck:
    """Wraps an ASGI application; with `names` None it may be called by any name."""

    def __init__(self, app: ASGIApp, names: Iterable[str] | None) -> None:
        self._app = app
        self._names = None if names is None else frozenset(name.lower() for name in names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = self._refusal(scope) if scope["type"] == "http" else None
        if refused is None:
            await self._app(scope, receive, send)
        else:
            await refused(scope, receive, send)

    def _refusal(self, scope: Scope) -> Response | None:
        host = find_header(scope["headers"], b"host") or b""
        if self._names is not None and not self._is_ours(_name(host)):
            shown = _name(host)[:_LONGEST_NAME]
            return problem(
                Request(scope),
                KINDS[NotAllowed],
                f"This server was called by the name {shown}, which is not one of this machine's own.",
                "Use its address (http://127.0.0.1 with its port). Behind a proxy set public_url to the name that is "
                "used; without one, require_keys opens it under every name, for those with a key.",
            )
        if scope["method"] not in _READING and _is_foreign(scope, host):
            return problem(
                Request(scope),
                KINDS[NotAllowed],
                "The request was made by the page of another website, and would change something here.",
                "Open Trunkline's own page, or call the API from a program.",
            )
        return None

    def _is_ours(self, name: str) -> bool:
        return not name or is_own_name(name) or name in (self._names or ())


def _is_foreign(scope: Scope, host: bytes) -> bool:
    told = find_header(scope["headers"], b"sec-fetch-site")
    if told is not None:
        return told not in _OURS
    origin = find_header(scope["headers"], b"origin")
    return origin is not None and urlsplit(origin).netloc.lower() != host.lower()


def _name(host: bytes) -> str:
    """Without the port."""
    text = host.decode("latin-1").strip().lower()
    return text[1:].partition("]")[0] if text.startswith("[") else text.partition(":")[0]


# Most requests name the same few hosts. A small cache: a name can be as long as a request's head.
@lru_cache(maxsize=32)
def is_own_name(name: str) -> bool:
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False
