"""
Protects the API from requests that another website makes through a user's browser.

Cross-site request forgery: requests that change something are rejected if `Sec-Fetch-Site` or `Origin` show that they
come from another site. Programs other than browsers send neither header and are not affected.

DNS rebinding: a foreign host name can resolve to this machine, so that a browser lets the foreign page read responses.
Without API keys, only this machine's names are accepted as `Host`. Under the name in `public_url`, only what agents,
probes and people with an answer link call responds.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from trunkline.api.correlation_ids import find_header
from trunkline.api.problems import KINDS, problem
from trunkline.errors import NotAllowed

_READING = frozenset({"GET", "HEAD", "OPTIONS"})
# The values for a page of this origin, and for an address that was typed in.
_OWN_SITES = frozenset({b"same-origin", b"none"})
# What anyone who reaches `public_url` may call without a key.
_HOOKS = ("/hooks/", "/answer/")
_PROBES = frozenset({"/livez", "/health"})
_LONGEST_NAME = 200


class OriginCheck:
    """Wraps an ASGI application. If `names` is None, any host name is accepted."""

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
        if self._names is not None and _name(host) in self._names and not is_own_name(_name(host)):
            if not is_for_agents(scope["path"]):
                return problem(
                    Request(scope),
                    KINDS[NotAllowed],
                    "Under the host name of public_url, only /hooks, /answer, /livez and /health respond, because API "
                    "keys are not required.",
                    "Use http://127.0.0.1 with the server's port. To use the whole API under this host name, set "
                    "require_keys, and send an API key.",
                )
        elif self._names is not None and not self._is_ours(_name(host)):
            shown = _name(host)[:_LONGEST_NAME]
            return problem(
                Request(scope),
                KINDS[NotAllowed],
                f"The host name {shown} of the request is not a name of this machine.",
                "Use http://127.0.0.1 with the server's port. To use the API under another host name, such as that "
                "of a proxy, set require_keys, and send an API key.",
            )
        if scope["method"] not in _READING and _is_foreign(scope, host):
            return problem(
                Request(scope),
                KINDS[NotAllowed],
                "The request was made by a page of another website, which must not change anything here.",
                "Use Trunkline's web UI, or call the API from a program.",
            )
        return None

    def _is_ours(self, name: str) -> bool:
        return not name or is_own_name(name)


def is_for_agents(path: str) -> bool:
    """What agents, people with a link and load balancers call: it needs no API key, but has a token of its own."""
    return path in _PROBES or path.startswith(_HOOKS)


def _is_foreign(scope: Scope, host: bytes) -> bool:
    fetch_site = find_header(scope["headers"], b"sec-fetch-site")
    if fetch_site is not None:
        return fetch_site not in _OWN_SITES
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
