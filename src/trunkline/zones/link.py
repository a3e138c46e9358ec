"""
A zone as its caller sees it.

    async with open_link("https://zone.example/", auth_type="signed", auth_config={…}, profile="slack") as link:
        result = await link.execute_task({"channel": "C1", "text": "…", "bot_token": "…"})

The id of a call is the whole of what has to be kept for later: whoever comes again with the same id and the same
params, after a crash as well, gets the same work, not another. So a request whose answer was lost is sent again, and
work that was accepted is asked for, ever more rarely, until it ends or the deadline has passed. Nothing of the params
is logged, and an error that repeats a secret of theirs does not say it.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from time import monotonic
from uuid import UUID, uuid4

import msgspec
import structlog
from msgspec.structs import replace

from trunkline.agents.authentication.auth_config import NO_CREDENTIALS, Credentials, credentials
from trunkline.agents.authentication.credentials import Signer
from trunkline.agents.model import AuthType
from trunkline.agents.transport_urls import check_carried, transport_of
from trunkline.errors import Invalid, TrunklineError
from trunkline.jsontypes import Json, JsonObject
from trunkline.messages import ERROR_CODES, StepError
from trunkline.protocols import AgentRequest, ProtocolTranslationError, failure_of, find_profile
from trunkline.protocols.outcomes import step_error
from trunkline.protocols.zone_answers import (
    ZoneAccepted,
    ZoneAnswer,
    ZoneFailed,
    ZoneSucceeded,
    is_unknown_task,
    read_http_answer,
)
from trunkline.protocols.zone_call import (
    METHOD,
    POLL_METHOD,
    execute_request,
    params_problem,
    poll_request,
    with_correlation_id,
)
from trunkline.system_clock import SystemClock
from trunkline.telemetry import names
from trunkline.telemetry.redaction import Redaction
from trunkline.telemetry.telling import is_telling
from trunkline.transports.address_policy import AddressPolicy
from trunkline.transports.base import Transport, TransportError
from trunkline.transports.https import HttpTransport

log = structlog.stdlib.get_logger()

# Of a call, unless its caller says otherwise: what a zone gives its work by default.
_DEADLINE_SECONDS = 600.0
# A zone answers long before, if only that it has accepted the work; a line that is silent for longer is dead.
_ANSWER_SECONDS = 60.0
# For the last question, which begins when the deadline is reached.
_LAST_SECONDS = 1.0
_COME_AGAIN = "Come again later with the same id, or with get_task_result and the task_id."
_HEADERS = {"Content-Type": "application/json", "Accept": "application/json"}
# What a moment later may be otherwise: nothing has come through, or the zone said that it cannot tell.
_PASSING = frozenset(
    {
        "agent_connection_lost",
        "agent_dns_failed",
        "agent_timeout",
        "agent_unavailable",
        "agent_unreachable",
    }
)
_PASSING_STATUSES = frozenset({408, 425, 429})

_results: msgspec.json.Decoder[JsonObject] = msgspec.json.Decoder(JsonObject)


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """How long to wait before the next time: ever longer, and by chance a little less, so that callers spread."""

    first: float
    growth: float
    longest: float

    def pause(self, times: int) -> float:
        seconds = min(self.first * self.growth ** min(times, 99), self.longest)
        return seconds * random.uniform(0.5, 1.0)  # noqa: S311 - no secret


ASKING = Pace(first=0.2, growth=1.5, longest=5.0)
SENDING_AGAIN = Pace(first=0.2, growth=2.0, longest=10.0)


class ZoneCallFailed(TrunklineError):
    """
    The zone did not do what it was asked, or nobody knows.

    `error` says why, in the words that a step of a workflow has for it; `id` and `task_id` are those of the call.
    """

    def __init__(self, error: StepError, *, id: str, task_id: str | None = None) -> None:  # noqa: A002 - JSON-RPC's name
        super().__init__(error.message, fix=error.fix)
        self.error = error
        self.id = id
        self.task_id = task_id


class ZoneCallUnfinished(ZoneCallFailed):
    """The deadline has passed and the work may go on: ask later, with the same `id` or the `task_id`."""


class Link:
    def __init__(
        self,
        transport: Transport,
        url: str,
        *,
        proof: Credentials = NO_CREDENTIALS,
        profile: str | JsonObject = "any",
        method: str = METHOD,
        poll_method: str = POLL_METHOD,
        answer_seconds: float = _ANSWER_SECONDS,
        asking: Pace = ASKING,
        sending_again: Pace = SENDING_AGAIN,
    ) -> None:
        """
        `proof` is what tells the zone who calls. Raises `Invalid`.

        `answer_seconds`: how long one request waits for its answer, before it is sent again.
        """
        if proof.oauth is not None:
            raise Invalid(
                "A link fetches no token: its auth_type cannot be oauth2.",
                fix="Use signed, mtls or bearer, or register the zone as an agent.",
            )
        self._transport = transport
        self._url = proof.add_to(url)
        self._proof = proof
        self._headers: Mapping[str, str] = {**_HEADERS, **proof.headers}
        self._profile = find_profile(profile)
        self._method = method
        self._poll_method = poll_method
        self._answer_seconds = answer_seconds
        self._asking = asking
        self._sending_again = sending_again
        self._clock = SystemClock()

    async def execute_task(
        self,
        params: JsonObject,
        *,
        id: str | None = None,  # noqa: A002 - JSON-RPC's name
        deadline: float = _DEADLINE_SECONDS,
        correlation_id: str | None = None,
    ) -> JsonObject:
        """
        The result of the work, which may take up to `deadline` seconds.

        With an `id` (a UUID) of its own, kept before the call, a caller that has crashed can come again and gets the
        same work. Raises `ZoneCallFailed`, and at the deadline `ZoneCallUnfinished`.
        """
        call_id = str(uuid4()) if id is None else _checked_id(id)
        correlation_id = correlation_id or _text_in(params, "correlation_id") or call_id
        sent = with_correlation_id(params, correlation_id, self._profile)
        wrong = params_problem(sent, self._profile)
        if wrong is not None:
            raise ZoneCallFailed(step_error("request_not_encodable", wrong), id=call_id)
        errand = _Errand(call_id, correlation_id, deadline, session=call_id, params=sent)
        request = execute_request(call_id, self._method, sent)
        answer = await self._answer(errand, lambda: (call_id, request))
        return await self._end(errand, answer)

    async def get_task_result(
        self,
        task_id: str,
        *,
        session: str | None = None,
        deadline: float = _DEADLINE_SECONDS,
        correlation_id: str | None = None,
    ) -> JsonObject:
        """
        The result of work that was accepted; `session` is the id of the call that began it.

        With a deadline of 0 seconds it is asked for once. Raises as `execute_task` does.
        """
        id_ = str(uuid4()) if session is None else session
        errand = _Errand(id_, correlation_id or id_, deadline, session=session, task_id=task_id)
        return await self._end(errand, await self._ask(errand, task_id))

    async def _end(self, errand: _Errand, answer: ZoneSucceeded | ZoneAccepted) -> JsonObject:
        times = 0
        while isinstance(answer, ZoneAccepted):
            task_id = errand.task_id = answer.task_id
            left = errand.left()
            if left <= 0:
                error = step_error(
                    "agent_task_unfinished", "The zone was still at work at the deadline.", fix=_COME_AGAIN
                )
                raise ZoneCallUnfinished(error, id=errand.id, task_id=task_id)
            await asyncio.sleep(min(self._asking.pause(times), left))
            answer = await self._ask(errand, task_id)
            times += 1
        try:
            return _results.decode(answer.result)
        except msgspec.DecodeError as exc:
            # A number that cannot be held, deep in a long result: it is looked for only here.
            error = step_error("agent_answer_malformed", f"malformed JSON-RPC response: {exc}")
            raise ZoneCallFailed(error, id=errand.id, task_id=errand.task_id) from exc

    async def _ask(self, errand: _Errand, task_id: str) -> ZoneSucceeded | ZoneAccepted:
        def question() -> tuple[str, AgentRequest]:
            id_ = str(uuid4())
            return id_, poll_request(id_, self._poll_method, task_id, errand.session)

        try:
            answer = await self._answer(errand, question)
        except ZoneCallFailed as exc:
            if not is_unknown_task(exc.error):
                raise
            lost = f"The zone does not know the task {task_id}: {exc.error.message}"
            raise ZoneCallFailed(step_error("agent_task_lost", lost), id=exc.id, task_id=task_id) from exc
        if isinstance(answer, ZoneAccepted) and answer.task_id != task_id:
            message = f"Response ID mismatch: asked for the task {task_id}, got {answer.task_id}"
            raise ZoneCallFailed(
                step_error("agent_response_id_mismatch", message), id=errand.id, task_id=task_id
            )
        return answer

    async def _answer(
        self, errand: _Errand, write: Callable[[], tuple[str, AgentRequest]]
    ) -> ZoneSucceeded | ZoneAccepted:
        """What the zone answers, however often it has to be sent until it does."""
        times = 0
        while True:
            id_, request = write()
            answer = await self._exchange(errand, id_, request)
            if not isinstance(answer, ZoneFailed):
                return answer
            error = self._hidden(answer.error, errand)
            errand.is_in_doubt |= _leaves_doubt(error)
            if not _may_pass(error):
                raise ZoneCallFailed(error, id=errand.id, task_id=errand.task_id)
            pause = max(self._sending_again.pause(times), (error.retry_after_ms or 0) / 1000)
            if errand.left() <= pause:
                error = replace(error, doubtful=errand.is_in_doubt)
                raise ZoneCallUnfinished(error, id=errand.id, task_id=errand.task_id)
            log.warning(
                names.ZONE_CALL_SENT_AGAIN,
                id=errand.id,
                task_id=errand.task_id,
                correlation_id=errand.correlation_id,
                code=error.code,
                error=error.message,
                after_seconds=round(pause, 3),
            )
            await asyncio.sleep(pause)
            times += 1

    async def _exchange(self, errand: _Errand, id_: str, request: AgentRequest) -> ZoneAnswer:
        headers = {**self._headers, "X-Correlation-ID": errand.correlation_id, **request.headers}
        if self._proof.signer is not None:
            headers["Authorization"] = self._signed(self._proof.signer, request.body)
        seconds = min(self._answer_seconds, max(errand.left(), _LAST_SECONDS))
        try:
            answer = await self._transport.post(self._url, request.body, headers, seconds, self._proof.tls)
            return read_http_answer(answer, (id_,), request_size=len(request.body))
        except TransportError as exc:
            return ZoneFailed(error=step_error(exc.code, exc.message), id=None)
        except ProtocolTranslationError as exc:
            return ZoneFailed(error=failure_of(exc).error, id=None)

    def _signed(self, signer: Signer, body: bytes) -> str:
        # Here, since most callers sign nothing and need not load what signs.
        from trunkline.agents.authentication.signed_tokens import signed_token  # noqa: PLC0415

        return f"Bearer {signed_token(signer, body, self._clock.now(), str(uuid4()))}"

    def _hidden(self, error: StepError, errand: _Errand) -> StepError:
        """The error without any secret that it repeats."""
        redaction = Redaction(self._proof).beside(_secrets_in(errand.params))
        return replace(error, message=redaction.text(error.message), detail=redaction.value(error.detail))


class _Errand:
    """One call while it lasts."""

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
        # Where the zone has the task, if it is one of many machines.
        self.session = session
        self.task_id = task_id
        # No error may repeat the secrets in them.
        self.params = params
        # Something was sent, and what became of it is not known.
        self.is_in_doubt = False
        self._until = monotonic() + seconds

    def left(self) -> float:
        return max(0.0, self._until - monotonic())


@asynccontextmanager
async def open_link(
    url: str,
    *,
    auth_type: AuthType = "none",
    auth_config: JsonObject | None = None,
    transport: Transport | None = None,
    addresses: AddressPolicy | None = None,
    profile: str | JsonObject = "any",
    method: str = METHOD,
    poll_method: str = POLL_METHOD,
    answer_seconds: float = _ANSWER_SECONDS,
) -> AsyncGenerator[Link]:
    """
    A link to the zone at this url, for as long as the block runs; raises `Invalid`.

    `auth_type` and `auth_config` as an agent has them. Without a `transport` the url's form chooses one; over HTTP
    `addresses` says where it may lead, and by default that is everywhere but to link-local and metadata addresses.
    `profile`, a name or a JSON Schema: what the params are checked by before they are sent.
    """
    wrong = check_carried(transport_of(url), url)
    if wrong is not None:
        raise Invalid(f"The zone's url cannot be called: {wrong}.")
    proof = credentials("zone", auth_type, auth_config)
    async with AsyncExitStack() as stack:
        if transport is None:
            transport = await _opened(url, addresses, stack)
        yield Link(
            transport,
            url,
            proof=proof,
            profile=profile,
            method=method,
            poll_method=poll_method,
            answer_seconds=answer_seconds,
        )


async def _opened(url: str, addresses: AddressPolicy | None, stack: AsyncExitStack) -> Transport:
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
                "Which program that is, only a transport knows.",
                fix="Give open_link a StdioTransport that has the program: transport=….",
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
                yield from _secrets_in(inner, is_secret=is_secret or is_telling(name))
        case list():
            for inner in value:
                yield from _secrets_in(inner, is_secret=is_secret)
        case _:
            pass


def _leaves_doubt(error: StepError) -> bool:
    code = ERROR_CODES[error.code]
    return code.sent and not code.answered


def _may_pass(error: StepError) -> bool:
    """Whether the same request, sent again, may be answered otherwise."""
    status = error.http_status or 0
    return error.code in _PASSING or status in _PASSING_STATUSES or status >= 500
