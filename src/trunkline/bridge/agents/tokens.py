"""
Tokens for agents: fetched for those that want OAuth 2 (client credentials, RFC 6749 section 4.4), or signed.

    POST token_url                       grant_type=client_credentials&scope=…&audience=…
    {"access_token", "token_type": "Bearer", "expires_in"?}   or   4xx {"error", "error_description"?}

A fetched token is kept in memory until shortly before it runs out, and fetched by one request however many calls wait
for it. A signed one is made for one request and its body. The redaction of the call that gets a token hides it from
then on.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Mapping
from datetime import timedelta
from time import perf_counter
from urllib.parse import quote_plus, urlencode
from uuid import uuid4

import msgspec
import structlog

from trunkline.agents.authentication.credentials import Credentials, OAuthClient, RequestSigner
from trunkline.bridge.wire.exchanges import AuxiliaryRecorder, AuxiliaryRequest, SentRequest
from trunkline.clock import Clock, Instant, after
from trunkline.protocols import AgentAnswer
from trunkline.telemetry import log_events
from trunkline.telemetry.redaction import Redaction
from trunkline.transports.base import OUT_OF_RESOURCES, Transport, TransportError

log = structlog.stdlib.get_logger()

_FORM = "application/x-www-form-urlencoded"
REFUSED = "agent_token_refused"
UNAVAILABLE = "agent_token_unavailable"

_SECONDS = 10.0
# Where the endpoint does not say how long a token lives.
_USUAL_SECONDS = 300.0
_MAX_SECONDS = 86_400.0
# A token that expires in transit is refused: it is renewed so much sooner, or after nine tenths of a short life.
_MARGIN = timedelta(seconds=30)
_MAX_CACHED = 10_000
# Of one client: answers to earlier calls may still repeat the tokens before the last.
_MAX_REMEMBERED = 4
_MAX_CHARACTERS = 16 * 1024
# Not the agent's fault and not a refusal: the endpoint may say otherwise in a moment.
_BUSY = (408, 425, 429)


class _AccessToken(msgspec.Struct, frozen=True):
    text: str
    until: Instant


class _TokenResponse(msgspec.Struct):
    """What a token endpoint answers; how it spells numbers and types differs."""

    access_token: str
    token_type: str = "Bearer"  # noqa: S105 - no password
    expires_in: float | str | None = None


class _TokenErrorResponse(msgspec.Struct):
    error: str
    error_description: str = ""


class TokenProvider:
    def __init__(self, transport: Transport, clock: Clock) -> None:
        self._transport = transport
        self._clock = clock
        self._cache: dict[OAuthClient, _AccessToken] = {}
        self._remembered: dict[OAuthClient, tuple[str, ...]] = {}
        # One request at a time for each client: a hundred calls that find no token wait for the same one.
        self._fetching: dict[OAuthClient, asyncio.Task[_AccessToken | TransportError]] = {}

    async def headers(
        self,
        credentials: Credentials,
        redaction: Redaction,
        seconds: float = _SECONDS,
        note: AuxiliaryRecorder | None = None,
        body: bytes = b"",
    ) -> Mapping[str, str]:
        """
        The header with the agent's token, or none; raises `TransportError` when no token can be had.

        Asked for once for each request, also for one that is sent again: a signed token is for this `body` and good
        once. `note` gets the request for it, if this call is the one that makes it.
        """
        if credentials.signer is not None:
            return self._sign(credentials.signer, redaction, body)
        client = credentials.oauth
        if client is None:
            return {}
        token = self._cache.get(client)
        if token is None or token.until <= self._clock.now():
            token = await self._wait_for(client, seconds, note)
        redaction.learn(self._remembered.get(client, (token.text,)))
        return {"Authorization": f"Bearer {token.text}"}

    def _sign(self, signer: RequestSigner, redaction: Redaction, body: bytes) -> Mapping[str, str]:
        # Here, since a process whose agents want no such token need not load what signs.
        from trunkline.agents.authentication.signed_tokens import signed_token  # noqa: PLC0415

        token = signed_token(signer, body, self._clock.now(), str(uuid4()))
        redaction.hide(token)
        return {"Authorization": f"Bearer {token}"}

    def redaction(self, credentials: Credentials) -> Redaction:
        """One that knows the tokens which the agent has been given so far."""
        made = Redaction(credentials)
        if credentials.oauth is not None:
            made.learn(self._remembered.get(credentials.oauth, ()))
        return made

    def discard(self, credentials: Credentials, used: Mapping[str, str]) -> bool:
        """The agent refuses the token in these headers. True: it had one, and the next call gets another."""
        client = credentials.oauth
        if client is None:
            return False
        token = self._cache.get(client)
        # Others may have been refused with the same token, and have got a new one by now.
        if token is not None and used.get("Authorization") == f"Bearer {token.text}":
            del self._cache[client]
        return True

    async def _wait_for(
        self, client: OAuthClient, seconds: float, note: AuxiliaryRecorder | None
    ) -> _AccessToken:
        fetching = self._fetching.get(client)
        if fetching is None:
            fetching = asyncio.get_running_loop().create_task(self._fetch(client, note))
            self._fetching[client] = fetching
            fetching.add_done_callback(lambda _: self._fetching.pop(client, None))
        try:
            async with asyncio.timeout(seconds):
                # A call that stops waiting does not take the token from the others.
                found = await asyncio.shield(fetching)
        except TimeoutError as exc:
            raise TransportError(UNAVAILABLE, "The token endpoint did not answer in time.") from exc
        if isinstance(found, TransportError):
            # A new one: the others raise theirs.
            raise TransportError(found.code, found.message) from found
        return found

    async def _fetch(
        self, client: OAuthClient, note: AuxiliaryRecorder | None
    ) -> _AccessToken | TransportError:
        body, headers = _request(client)
        started_at, started = self._clock.now(), perf_counter()
        answer, failure = None, None
        try:
            answer = await self._transport.post(client.token_url, body, headers, _SECONDS, client.tls)
        except TransportError as exc:
            message = f"Cannot get a token for the agent: {exc.message}"
            # Ours, not the token endpoint's.
            code = exc.code if exc.code == OUT_OF_RESOURCES else UNAVAILABLE
            failure = TransportError(code, Redaction.of(client.client_secret).text(message))
        if note is not None:
            note(
                _auxiliary_request(
                    client, answer, failure, started_at, round((perf_counter() - started) * 1000, 3)
                )
            )
        if answer is None:
            return failure or TransportError(UNAVAILABLE, "The token endpoint did not answer.")
        token = self._read(client, answer)
        if isinstance(token, _AccessToken):
            self._cache_token(client, token)
            log.info(log_events.TOKEN_FETCHED, token_url=client.token_url.partition("?")[0])
        return token

    def _read(self, client: OAuthClient, answer: AgentAnswer) -> _AccessToken | TransportError:
        if answer.status != 200:
            return _refusal(client, answer)
        try:
            grant = msgspec.json.decode(answer.body, type=_TokenResponse)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return TransportError(REFUSED, "The token endpoint's answer is not JSON with an access_token.")
        if grant.token_type.lower() != "bearer":
            return TransportError(REFUSED, "The token endpoint returned a token whose type is not Bearer.")
        if not _fits_in_header(grant.access_token):
            return TransportError(
                REFUSED, "The token endpoint's access_token contains characters that a header cannot contain."
            )
        return _AccessToken(grant.access_token, after(self._clock.now(), _use_for(grant.expires_in)))

    def _cache_token(self, client: OAuthClient, token: _AccessToken) -> None:
        if len(self._cache) >= _MAX_CACHED:
            self._cache.clear()
            self._remembered.clear()
        self._cache[client] = token
        earlier = [text for text in self._remembered.get(client, ()) if text != token.text]
        self._remembered[client] = (*earlier, token.text)[-_MAX_REMEMBERED:]


def _request(client: OAuthClient) -> tuple[bytes, dict[str, str]]:
    form = {"grant_type": "client_credentials"}
    if client.scope is not None:
        form["scope"] = client.scope
    if client.audience is not None:
        form["audience"] = client.audience
    headers = {"Content-Type": _FORM, "Accept": "application/json"}
    if client.client_auth == "post":
        form |= {"client_id": client.client_id, "client_secret": client.client_secret}
    else:
        pair = f"{quote_plus(client.client_id)}:{quote_plus(client.client_secret)}"
        headers["Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
    return urlencode(form).encode(), headers


def _auxiliary_request(
    client: OAuthClient,
    answer: AgentAnswer | None,
    failure: TransportError | None,
    started_at: Instant,
    duration_ms: float,
) -> AuxiliaryRequest:
    """For the record: neither body, nor what says who we are."""
    sent = SentRequest("POST", client.token_url.partition("?")[0], {"Content-Type": _FORM})
    return AuxiliaryRequest(
        kind="token",
        redaction=Redaction.of(client.client_secret),
        sent=sent,
        answer=None if answer is None else AgentAnswer(answer.status, {}, b""),
        started_at=started_at,
        duration_ms=duration_ms,
        error=None if failure is None else failure.message,
        notes=("Token requests and their responses are not recorded.",),
    )


def _refusal(client: OAuthClient, answer: AgentAnswer) -> TransportError:
    status = answer.status
    if status >= 500 or status in _BUSY:
        return TransportError(UNAVAILABLE, f"The token endpoint answered HTTP {status}.")
    said = f"The token endpoint answered HTTP {status}"
    try:
        refusal = msgspec.json.decode(answer.body, type=_TokenErrorResponse)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return TransportError(REFUSED, f"{said}.")
    reason = ": ".join(filter(None, (refusal.error, refusal.error_description)))[:200]
    return TransportError(REFUSED, Redaction.of(client.client_secret).text(f"{said}: {reason}."))


def _fits_in_header(token: str) -> bool:
    return 0 < len(token) <= _MAX_CHARACTERS and token.isascii() and token.isprintable() and " " not in token


def _use_for(expires_in: float | str | None) -> timedelta:
    """How long a token is good for us; the margin is taken off."""
    try:
        seconds = _USUAL_SECONDS if expires_in is None else float(expires_in)
    except ValueError:
        seconds = _USUAL_SECONDS
    # Not a number compares as false: it lives no time at all.
    life = timedelta(seconds=min(seconds, _MAX_SECONDS) if seconds > 0 else 0)
    return life - min(_MARGIN, life / 10)
