"""
The client of a zone.

    async with open_zone_client("https://zone.example/", auth_type="signed", auth_config={…}, profile="slack") as zone:
        result = await zone.execute_task({"channel": "C1", "text": "…", "bot_token": "…"})

A caller only has to keep the id of a call: the same id with the same params gets the same work again, also after a
crash. So the client sends a request again if its answer was lost, and polls accepted work with a growing delay until it
ends or the deadline passes. It logs no params, and redacts their secrets from errors.

`Link` and `open_link` are aliases of `ZoneClient` and `open_zone_client`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from time import monotonic
from uuid import UUID, uuid4

import msgspec
import structlog
from msgspec.structs import replace

from trunkline.agents.authentication.auth_config import NO_CREDENTIALS, Credentials, credentials
from trunkline.agents.authentication.credentials import RequestSigner
from trunkline.agents.authentication.signed_tokens import signed_token
from trunkline.agents.model import AuthType
from trunkline.agents.transport_urls import check_transport_url, transport_of
from trunkline.durations import seconds_of
from trunkline.errors import Invalid, TrunklineError
from trunkline.jsontypes import Json, JsonObject
from trunkline.messages import ERROR_CODES, StepError
from trunkline.protocols import AgentRequest, ProtocolTranslationError, failure_of, find_profile
from trunkline.protocols.outcomes import step_error
from trunkline.protocols.zone.adapter import (
    METHOD,
    POLL_METHOD,
    execute_request,
    params_problem,
    poll_request,
    with_correlation_id,
)
from trunkline.protocols.zone.answers import (
    ZoneAccepted,
    ZoneAnswer,
    ZoneFailed,
    ZoneSucceeded,
    is_unknown_task,
    read_http_answer,
)
from trunkline.system_clock import SystemClock
from trunkline.telemetry import log_events
from trunkline.telemetry.redaction import Redaction, is_secret_name
from trunkline.transports.address_policy import AddressPolicy
from trunkline.transports.base import Transport, TransportError
from trunkline.transports.https import HttpTransport

log = structlog.stdlib.get_logger()

# Of a call, unless its caller says otherwise: what a zone gives its work by default.
_DEADLINE = timedelta(minutes=10)
# A zone answers much earlier, at least that it accepted the work; after this the connection counts as lost.
_ANSWER_TIMEOUT = timedelta(minutes=1)
# For the last poll, which starts at the deadline.
_LAST_SECONDS = 1.0
_COME_AGAIN = "Repeat the call later with the same id, or call get_task_result with the task_id."
_HEADERS = {"Content-Type": "application/json", "Accept": "application/json"}
# Errors after which the same request may succeed a moment later.
_TRANSIENT_CODES = frozenset(
    {
        "agent_connection_lost",
        "agent_dns_failed",
        "agent_timeout",
        "agent_unavailable",
        "agent_unreachable",
    }
)
_TRANSIENT_STATUSES = frozenset({408, 425, 429})

_results: msgspec.json.Decoder[JsonObject] = msgspec.json.Decoder(JsonObject)


class ClientBackoff(msgspec.Struct, frozen=True, kw_only=True):
    """A growing delay with jitter, so that clients spread."""

    first: timedelta
    growth: float
    longest: timedelta

    def delay(self, times: int) -> float:
        """In seconds."""
        first, longest = self.first.total_seconds(), self.longest.total_seconds()
        seconds = min(first * self.growth ** min(times, 99), longest)
        return seconds * random.uniform(0.5, 1.0)  # noqa: S311 - no secret


POLL_BACKOFF = ClientBackoff(first=timedelta(milliseconds=200), growth=1.5, longest=timedelta(seconds=5))
RETRY_BACKOFF = ClientBackoff(first=timedelta(milliseconds=200), growth=2.0, longest=timedelta(seconds=10))


class ZoneCallFailed(TrunklineError):
    """
    The zone did not do the work, or its outcome is unknown.

    `error` has the codes that a workflow step has for it; `id` and `task_id` are those of the call.
    """

    def __init__(self, error: StepError, *, id: str, task_id: str | None = None) -> None:  # noqa: A002 - JSON-RPC's name
        super().__init__(error.message, fix=error.fix)
        self.error = error
        self.id = id
        self.task_id = task_id


class ZoneCallUnfinished(ZoneCallFailed):
    """The deadline has passed and the work may still run: ask later, with the same `id` or the `task_id`."""


class ZoneClient:
    def __init__(
        self,
        transport: Transport,
        url: str,
        *,
        credentials: Credentials = NO_CREDENTIALS,
        profile: str | JsonObject = "any",
        method: str = METHOD,
        poll_method: str = POLL_METHOD,
        answer_timeout: timedelta | float = _ANSWER_TIMEOUT,
        poll_backoff: ClientBackoff = POLL_BACKOFF,
        retry_backoff: ClientBackoff = RETRY_BACKOFF,
    ) -> None:
        """
        `credentials` authenticate us to the zone. Raises `Invalid`.

        `answer_timeout`: how long one request waits for its answer before it is sent again.
        """
        if credentials.oauth is not None:
            raise Invalid(
                "A zone client does not support auth_type oauth2.",
                fix="Use signed, mtls or bearer, or register the zone as an agent.",
            )
        self._transport = transport
        self._url = credentials.add_to(url)
        self._credentials = credentials
        self._headers: Mapping[str, str] = {**_HEADERS, **credentials.headers}
        self._profile = find_profile(profile)
        self._method = method
        self._poll_method = poll_method
        self._answer_seconds = seconds_of(answer_timeout)
        self._poll_backoff = poll_backoff
        self._retry_backoff = retry_backoff
        self._clock = SystemClock()

    async def execute_task(
        self,
        params: JsonObject,
        *,
        id: str | None = None,  # noqa: A002 - JSON-RPC's name
        deadline: timedelta | float = _DEADLINE,
        correlation_id: str | None = None,
    ) -> JsonObject:
        """
        The result of the work, which may take as long as `deadline`; a number is in seconds.

        A caller that stores its own `id` (a UUID) before the call can repeat the call after a crash and gets the same
        work. Raises `ZoneCallFailed`, and at the deadline `ZoneCallUnfinished`.
        """
        call_id = str(uuid4()) if id is None else _checked_id(id)
        correlation_id = correlation_id or _text_in(params, "correlation_id") or call_id
        sent = with_correlation_id(params, correlation_id, self._profile)
        wrong = params_problem(sent, self._profile)
        if wrong is not None:
            raise ZoneCallFailed(step_error("request_not_encodable", wrong), id=call_id)
        call = _PendingCall(call_id, correlation_id, seconds_of(deadline), session=call_id, params=sent)
        request = execute_request(call_id, self._method, sent)
        answer = await self._send_until_answered(call, lambda: (call_id, request))
        return await self._wait_for_result(call, answer)

    async def get_task_result(
        self,
        task_id: str,
        *,
        session: str | None = None,
        deadline: timedelta | float = _DEADLINE,
        correlation_id: str | None = None,
    ) -> JsonObject:
        """
        The result of accepted work; `session` is the id of the call that started it.

        With a deadline of 0 it polls once. Raises like `execute_task`.
        """
        id_ = str(uuid4()) if session is None else session
        call = _PendingCall(
            id_, correlation_id or id_, seconds_of(deadline), session=session, task_id=task_id
        )
        return await self._wait_for_result(call, await self._poll(call, task_id))

    async def _wait_for_result(self, call: _PendingCall, answer: ZoneSucceeded | ZoneAccepted) -> JsonObject:
        times = 0
        while isinstance(answer, ZoneAccepted):
            task_id = call.task_id = answer.task_id
            left = call.left()
            if left <= 0:
                error = step_error(
                    "agent_task_unfinished", "The zone had not finished at the deadline.", fix=_COME_AGAIN
                )
                raise ZoneCallUnfinished(error, id=call.id, task_id=task_id)
            await asyncio.sleep(min(self._poll_backoff.delay(times), left))
            answer = await self._poll(call, task_id)
            times += 1
        try:
            return _results.decode(answer.result)
        except msgspec.DecodeError as exc:
            # A number that cannot be held, deep in a long result: it is looked for only here.
            error = step_error("agent_answer_malformed", f"malformed JSON-RPC response: {exc}")
            raise ZoneCallFailed(error, id=call.id, task_id=call.task_id) from exc

    async def _poll(self, call: _PendingCall, task_id: str) -> ZoneSucceeded | ZoneAccepted:
        def question() -> tuple[str, AgentRequest]:
            id_ = str(uuid4())
            return id_, poll_request(id_, self._poll_method, task_id, call.session)

        try:
            answer = await self._send_until_answered(call, question)
        except ZoneCallFailed as exc:
            if not is_unknown_task(exc.error):
                raise
            lost = f"The zone does not have the task {task_id}: {exc.error.message}"
            raise ZoneCallFailed(step_error("agent_task_lost", lost), id=exc.id, task_id=task_id) from exc
        if isinstance(answer, ZoneAccepted) and answer.task_id != task_id:
            message = f"Response ID mismatch: asked for the task {task_id}, got {answer.task_id}"
            raise ZoneCallFailed(
                step_error("agent_response_id_mismatch", message), id=call.id, task_id=task_id
            )
        return answer

    async def _send_until_answered(
        self, call: _PendingCall, write: Callable[[], tuple[str, AgentRequest]]
    ) -> ZoneSucceeded | ZoneAccepted:
        """The zone's answer; sends the request again after transient errors."""
        times = 0
        while True:
            id_, request = write()
            answer = await self._exchange(call, id_, request)
            if not isinstance(answer, ZoneFailed):
                return answer
            error = self._redacted(answer.error, call)
            call.is_in_doubt |= _leaves_doubt(error)
            if not _is_transient(error):
                raise ZoneCallFailed(error, id=call.id, task_id=call.task_id)
            pause = max(self._retry_backoff.delay(times), (error.retry_after_ms or 0) / 1000)
            if call.left() <= pause:
                error = replace(error, doubtful=call.is_in_doubt)
                raise ZoneCallUnfinished(error, id=call.id, task_id=call.task_id)
            log.warning(
                log_events.ZONE_CALL_SENT_AGAIN,
                id=call.id,
                task_id=call.task_id,
                correlation_id=call.correlation_id,
                code=error.code,
                error=error.message,
                after_seconds=round(pause, 3),
            )
            await asyncio.sleep(pause)
            times += 1

    async def _exchange(self, call: _PendingCall, id_: str, request: AgentRequest) -> ZoneAnswer:
        headers = {**self._headers, "X-Correlation-ID": call.correlation_id, **request.headers}
        if self._credentials.signer is not None:
            headers["Authorization"] = self._signed(self._credentials.signer, request.body)
        seconds = min(self._answer_seconds, max(call.left(), _LAST_SECONDS))
        try:
            answer = await self._transport.post(
                self._url, request.body, headers, seconds, self._credentials.tls
            )
            return read_http_answer(answer, (id_,), request_size=len(request.body))
        except TransportError as exc:
            return ZoneFailed(error=step_error(exc.code, exc.message), id=None)
        except ProtocolTranslationError as exc:
            return ZoneFailed(error=failure_of(exc).error, id=None)

    def _signed(self, signer: RequestSigner, body: bytes) -> str:
        return f"Bearer {signed_token(signer, body, self._clock.now(), str(uuid4()))}"

    def _redacted(self, error: StepError, call: _PendingCall) -> StepError:
        """The error without the secrets that it repeats."""
        redaction = Redaction(self._credentials).with_secrets(_secrets_in(call.params))
        return replace(error, message=redaction.text(error.message), detail=redaction.value(error.detail))


class _PendingCall:
    """One call until its result or its deadline."""

    def __init__(
        self,
        id_: str,
        correlation_id: str,
        seconds: float,
        *,
        session: str | None,
        task_id: str | None = None,
        params: Json = None,
    ) -> None:
        self.id = id_
        self.correlation_id = correlation_id
        # Selects the machine that has the task, if the zone runs on many.
        self.session = session
        self.task_id = task_id
        # For redaction: no error may repeat their secrets.
        self.params = params
        # A request was sent and its outcome is unknown.
        self.is_in_doubt = False
        self._until = monotonic() + seconds

    def left(self) -> float:
        return max(0.0, self._until - monotonic())


@asynccontextmanager
async def open_zone_client(
    url: str,
    *,
    auth_type: AuthType = "none",
    auth_config: JsonObject | None = None,
    transport: Transport | None = None,
    addresses: AddressPolicy | None = None,
    profile: str | JsonObject = "any",
    method: str = METHOD,
    poll_method: str = POLL_METHOD,
    answer_timeout: timedelta | float = _ANSWER_TIMEOUT,
) -> AsyncGenerator[ZoneClient]:
    """
    A client of the zone at this URL, open while the block runs; raises `Invalid`.

    `auth_type` and `auth_config` as an agent has them. Without a `transport` the url's form chooses one; over HTTP
    `addresses` says where it may lead, and by default that is everywhere but to link-local and metadata addresses.
    `profile`, a name or a JSON Schema: what the params are checked by before they are sent.
    """
    wrong = check_transport_url(transport_of(url), url)
    if wrong is not None:
        raise Invalid(f"The zone's url cannot be called: {wrong}.")
    own = credentials("zone", auth_type, auth_config)
    async with AsyncExitStack() as stack:
        if transport is None:
            transport = await _open_transport(url, addresses, stack)
        yield ZoneClient(
            transport,
            url,
            credentials=own,
            profile=profile,
            method=method,
            poll_method=poll_method,
            answer_timeout=answer_timeout,
        )


async def _open_transport(url: str, addresses: AddressPolicy | None, stack: AsyncExitStack) -> Transport:
    match transport_of(url):
        case "https":
            policy = addresses or AddressPolicy(allow_loopback=True, allow_private=True)
            return await stack.enter_async_context(HttpTransport(policy))
        case "aws-agentcore":
            # Here, since it needs boto3, which is an extra.
            from trunkline.transports.aws_agentcore import AgentCoreTransport  # noqa: PLC0415

            return await stack.enter_async_context(AgentCoreTransport())
        case "stdio":
            raise Invalid(
                "The command of the program is known only to a transport.",
                fix="Pass open_zone_client a StdioTransport that has the program: transport=….",
            )


def _checked_id(id_: str) -> str:
    try:
        UUID(id_)
    except ValueError:
        raise Invalid("The id of a call must be a UUID.", fix="Make one with uuid.uuid4().") from None
    return id_


def _text_in(params: Json, name: str) -> str | None:
    value = params.get(name) if isinstance(params, dict) else None
    return value if isinstance(value, str) and value else None


def _secrets_in(value: Json, *, is_secret: bool = False) -> Iterator[str]:
    """The texts under a name that tells of a secret, at any depth."""
    match value:
        case str() if is_secret:
            yield value
        case dict():
            for name, inner in value.items():
                yield from _secrets_in(inner, is_secret=is_secret or is_secret_name(name))
        case list():
            for inner in value:
                yield from _secrets_in(inner, is_secret=is_secret)
        case _:
            pass


def _leaves_doubt(error: StepError) -> bool:
    code = ERROR_CODES[error.code]
    return code.sent and not code.answered


def _is_transient(error: StepError) -> bool:
    """Whether the same request may get another answer if it is sent again."""
    status = error.http_status or 0
    return error.code in _TRANSIENT_CODES or status in _TRANSIENT_STATUSES or status >= 500


# The names that these had first; both stay importable.
Link = ZoneClient
open_link = open_zone_client
