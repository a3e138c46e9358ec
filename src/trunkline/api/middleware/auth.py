"""
The API key check: every request needs a key whose role allows the operation.

Plain ASGI, around the whole application, including unknown paths. Rejected requests are logged and counted, but the key
is never logged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from datetime import timedelta

import structlog
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from trunkline.api.correlation_ids import correlation_id_of, find_header
from trunkline.api.middleware.key_limits import KeyLimits
from trunkline.api.parameters import routed_path
from trunkline.api.problems import KINDS, Kind, problem, problem_of, redacted_path, unexpected
from trunkline.api.roles import allows, may_omit_key, role_for
from trunkline.api.services import RequestLimits
from trunkline.clock import Clock, Instant, after
from trunkline.errors import NotAllowed, TooManyRequests, TrunklineError, Unavailable
from trunkline.services.operations.audit_log import acting
from trunkline.services.security.api_keys import ApiKeyLookup
from trunkline.stores.base import ApiKey, KeyRole
from trunkline.telemetry import log_events

log = structlog.stdlib.get_logger(__name__)

KEY_NEEDED = Kind(401, "key-needed", "Key needed")
_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="trunkline"'}
_BEARER = b"bearer "
# The key in a request's scope for its API key.
_CALLER = "trunkline.key"
# And where it keeps how to read that key again.
_CURRENT_KEY = "trunkline.current_key"
# And where it keeps how to refuse a request whose publication needs a key.
_REFUSE = "trunkline.refuse_without_key"
# A response that does not end looks as often whether its key is still valid.
_REVOCATION_CHECK_SECONDS = 1.0
# Refusals that are logged in a second at most, whatever the number of addresses.
MAX_LOGGED_ADDRESSES = 1_000
_LOG_INTERVAL = timedelta(seconds=1)
# Limits the logged path, because the caller controls it.
_LOGGED_PATH = 200


class RefusalLog:
    """
    How often refused requests are logged: at most once per client address and second.

    Without a limit, anyone who reaches the API could fill the disk. The metric counts every refusal.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # When each address was last logged, and how many of its refusals were not since then; oldest first.
        self._logged: dict[str, tuple[Instant, int]] = {}

    def admit(self, address: str) -> int | None:
        """How many refusals of the address were not logged since its last line; None: this one is not logged, too."""
        now = self._clock.now()
        logged_at, left_out = self._logged.get(address, (None, 0))
        if logged_at is not None and _is_recent(logged_at, now):
            self._logged[address] = (logged_at, left_out + 1)
            return None
        if logged_at is None and len(self._logged) >= MAX_LOGGED_ADDRESSES and not self._make_room(now):
            return None
        # To the end: the order is that of the last lines.
        self._logged.pop(address, None)
        self._logged[address] = (now, 0)
        return left_out

    def _make_room(self, now: Instant) -> bool:
        oldest = next(iter(self._logged))
        if _is_recent(self._logged[oldest][0], now):
            return False
        del self._logged[oldest]
        return True


def _is_recent(logged_at: Instant, now: Instant) -> bool:
    # A clock that was set back makes nothing last longer.
    return logged_at <= now < after(logged_at, _LOG_INTERVAL)


class ApiKeyCheck:
    """Wraps an ASGI application. Only requests with a sufficient API key reach it."""

    def __init__(self, app: ASGIApp, keys: ApiKeyLookup, limits: RequestLimits) -> None:
        self._app = app
        self._keys = keys
        self._limits = KeyLimits(limits, keys.clock)
        self._refusal_log = RefusalLog(keys.clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        needed = role_for(scope["method"], routed_path(scope)) if scope["type"] == "http" else None
        is_without_key = needed is not None and may_omit_key(scope["path"]) and _shown_key(scope) is None
        if is_without_key:
            scope[_REFUSE] = lambda: self._without_key(Request(scope))
            needed = None
        refused = None if needed is None else await self._refusal(Request(scope), needed)
        if refused is not None:
            await refused(scope, receive, send)
            return
        with ExitStack() as admitted:
            key = key_of(scope)
            try:
                if key is not None:
                    admitted.enter_context(self._limits.request(key))
                elif is_without_key:
                    admitted.enter_context(self._limits.without_key(_address_of(scope)))
            except TooManyRequests as error:
                self._keys.count_refusal("limit")
                await problem_of(Request(scope), error)(scope, receive, send)
                return
            with acting(caller_of(scope)):
                await self._app(scope, receive, send)

    async def _refusal(self, request: Request, needed: KeyRole) -> Response | None:
        text = _shown_key(request.scope)
        try:
            key = None if text is None else await self._keys.find(text)
        except TrunklineError as error:
            return problem_of(request, error)
        except Exception as error:  # noqa: BLE001 - no outer layer would answer; it is logged
            return unexpected(request, error)
        if text is None:
            return self._without_key(request)
        if key is None:
            return self._unknown(request, "unknown_key", "The API key is unknown.")
        if key.revoked_at is not None:
            return self._unknown(request, "revoked_key", f"The API key {key.name} was revoked.", key)
        if key.is_expired(self._keys.clock.now()):
            return self._unknown(request, "expired_key", f"The API key {key.name} has expired.", key)
        if not allows(key.role, needed):
            self._record(request, "role", key)
            return problem(
                request,
                KINDS[NotAllowed],
                f"The API key {key.name} has the role {key.role}, but this request requires {needed}.",
                f"Use a key with this role. To create one: trunkline keys create NAME --role {needed}.",
            )
        request.scope[_CALLER] = key
        request.scope[_CURRENT_KEY] = lambda: self._current_key(text)
        self._keys.note_use(key)
        return None

    def _without_key(self, request: Request) -> Response:
        return self._unknown(request, "no_key", "This request needs an API key, but none was sent.")

    async def _current_key(self, text: str) -> ApiKey | None:
        """The key as it is now; None if it does not give access any more."""
        key = await self._keys.find(text)
        return None if key is None or key.is_expired(self._keys.clock.now()) else key

    def _unknown(self, request: Request, reason: str, detail: str, key: ApiKey | None = None) -> Response:
        self._record(request, reason, key)
        return problem(
            request,
            KEY_NEEDED,
            detail,
            "Send the header Authorization: Bearer KEY, or set TRUNKLINE_API_KEY for the command "
            "line. To create a key: trunkline keys create NAME --role caller|viewer|operator|admin.",
            headers=_CHALLENGE,
        )

    def _record(self, request: Request, reason: str, key: ApiKey | None) -> None:
        self._keys.count_refusal(reason)
        client = None if request.client is None else request.client.host
        left_out = self._refusal_log.admit(client or "")
        if left_out is None:
            return
        log.warning(
            log_events.ACCESS_REFUSED,
            reason=reason,
            method=request.method,
            path=redacted_path(request.scope["path"])[:_LOGGED_PATH],
            client=client,
            # Refusals of this client since the last line about it.
            not_logged=left_out,
            key_id=None if key is None else key.id,
            correlation_id=correlation_id_of(request.scope),
        )


def key_of(scope: Scope) -> ApiKey | None:
    """The request's API key; None without API keys."""
    key: ApiKey | None = scope.get(_CALLER)
    return key


def refusal_without_key(scope: Scope) -> Response | None:
    """The response to a request without a key that needs one; None if it has a key, or if no keys are in use."""
    refuse: Callable[[], Response] | None = scope.get(_REFUSE)
    return None if refuse is None else refuse()


def caller_of(scope: Scope) -> str | None:
    """The name of the request's API key; None without API keys."""
    key = key_of(scope)
    return None if key is None else key.name


def key_id_of(scope: Scope) -> str:
    """The id of the request's API key; empty without API keys."""
    key: ApiKey | None = scope.get(_CALLER)
    return "" if key is None else key.id


async def wait_until_revoked(scope: Scope) -> None:
    """Returns when the key of a request has expired, or is revoked or changed; never where no keys are in use."""
    key = key_of(scope)
    current: Callable[[], Awaitable[ApiKey | None]] | None = scope.get(_CURRENT_KEY)
    if key is None or current is None:
        await asyncio.Event().wait()
        return
    while True:
        await asyncio.sleep(_REVOCATION_CHECK_SECONDS)
        try:
            found = await current()
        except Unavailable:
            # Nothing can be read meanwhile either.
            continue
        if found is None or found.revoked_at is not None or found.role != key.role:
            return


def role_of(scope: Scope) -> KeyRole:
    """The role of the caller. Without API keys, every caller is an admin."""
    key = key_of(scope)
    return "admin" if key is None else key.role


def _address_of(scope: Scope) -> str:
    client = scope.get("client")
    return "" if client is None else str(client[0])


def _shown_key(scope: Scope) -> str | None:
    given = find_header(scope["headers"], b"authorization")
    if given is not None and given[: len(_BEARER)].lower() == _BEARER:
        return given[len(_BEARER) :].strip().decode("latin-1")
    given = find_header(scope["headers"], b"x-api-key")
    return None if given is None else given.strip().decode("latin-1")
