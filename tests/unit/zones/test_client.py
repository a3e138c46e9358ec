"""The zone client: what it sends, when it sends it again, how it asks for accepted work, and what its errors carry."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from importlib import import_module
from uuid import UUID, uuid4

import msgspec
import pytest
from structlog.testing import capture_logs

from trunkline import zones
from trunkline.agents.authentication.auth_config import NO_CREDENTIALS, Credentials
from trunkline.agents.authentication.credentials import TlsConfig
from trunkline.errors import Invalid
from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.protocols import AgentAnswer
from trunkline.transports.base import StreamedAnswer, StreamLimits, TransportError
from trunkline.zones import (
    Zone,
    ZoneCallFailed,
    ZoneCallUnfinished,
    ZoneClient,
    ZoneFault,
    open_zone_client,
)
from trunkline.zones.client import POLL_BACKOFF, RETRY_BACKOFF, ClientBackoff

pytestmark = pytest.mark.anyio

URL = "http://127.0.0.1:9/"
SECRET = "xoxb-very-secret"
PARAMS: JsonObject = {"channel": "C1", "text": "hello", "bot_token": SECRET}
# Only a call that hangs takes so long.
TIMEOUT_SECONDS = 20.0
AT_ONCE = ClientBackoff(first=timedelta(0), growth=1.0, longest=timedelta(0))

Answer = Json | TransportError | AgentAnswer


class Sent(msgspec.Struct):
    body: JsonObject
    headers: Mapping[str, str]
    seconds: float

    @property
    def id(self) -> str:
        return str(self.body["id"])


class FakeTransport:
    """A transport that keeps what it is given; who answers says a function."""

    def __init__(self, answer: Callable[[Sent], Answer]) -> None:
        self.sent: list[Sent] = []
        self._answer = answer

    async def post(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        timeout: float,
        tls: TlsConfig | None = None,
    ) -> AgentAnswer:
        del tls
        assert url.startswith(URL)
        sent = Sent(msgspec.json.decode(body, type=JsonObject), dict(headers), timeout)
        self.sent.append(sent)
        answer = self._answer(sent)
        if isinstance(answer, TransportError):
            raise answer
        return answer if isinstance(answer, AgentAnswer) else AgentAnswer(200, {}, encode(answer))

    async def get(
        self, url: str, headers: Mapping[str, str], timeout: float, tls: TlsConfig | None = None
    ) -> AgentAnswer:
        raise NotImplementedError

    def stream(
        self,
        url: str,
        body: bytes | None,
        headers: Mapping[str, str],
        limits: StreamLimits,
        tls: TlsConfig | None = None,
    ) -> AbstractAsyncContextManager[StreamedAnswer]:
        raise NotImplementedError


def saying(*answers: Answer | Callable[[Sent], Answer]) -> FakeTransport:
    """Answers one after the other; the last one forever."""
    left = list(answers)

    def answer(sent: Sent) -> Answer:
        said = left.pop(0) if len(left) > 1 else left[0]
        return said(sent) if callable(said) else said

    return FakeTransport(answer)


def result(**fields: Json) -> Callable[[Sent], Answer]:
    return lambda sent: {"jsonrpc": "2.0", "id": sent.id, "result": fields}


def error(code: int, message: str = "m", status: int = 200, **data: Json) -> Callable[[Sent], Answer]:
    def answer(sent: Sent) -> Answer:
        said: JsonObject = {"code": code, "message": message, "data": data}
        return AgentAnswer(status, {}, encode({"jsonrpc": "2.0", "id": sent.id, "error": said}))

    return answer


SUCCESS = result(status="success", response_text="done")
ACCEPTED = result(status="accepted", task_id="z-1")
LOST = TransportError("agent_connection_lost", "The connection was lost.")


def client_over(
    transport: FakeTransport, *, proof: Credentials = NO_CREDENTIALS, profile: str = "slack"
) -> ZoneClient:
    return ZoneClient(
        transport, URL, credentials=proof, profile=profile, poll_backoff=AT_ONCE, retry_backoff=AT_ONCE
    )


async def executed(transport: FakeTransport, **more: Json | timedelta) -> JsonObject:
    async with asyncio.timeout(TIMEOUT_SECONDS):
        return await client_over(transport).execute_task(PARAMS, **more)  # pyright: ignore[reportArgumentType] - each test knows


async def failure(transport: FakeTransport, **more: Json | timedelta) -> ZoneCallFailed:
    with pytest.raises(ZoneCallFailed) as raised:
        await executed(transport, **more)
    return raised.value


async def test_the_result_of_the_work_comes_back() -> None:
    transport = saying(SUCCESS)
    assert await executed(transport) == {"status": "success", "response_text": "done"}
    (sent,) = transport.sent
    assert sent.body == {
        "jsonrpc": "2.0",
        "id": sent.id,
        "method": "execute_task",
        "params": {**PARAMS, "correlation_id": sent.id},
    }
    assert UUID(sent.id).version == 4
    assert sent.headers == {
        "Content-Type": "application/json",
        "Accept": "application/json",
        "X-Correlation-ID": sent.id,
        "X-Zone-Session": sent.id,
    }


async def test_accepted_work_is_asked_for_until_it_ends() -> None:
    transport = saying(ACCEPTED, ACCEPTED, ACCEPTED, SUCCESS)
    assert await executed(transport) == {"status": "success", "response_text": "done"}
    first, *questions = transport.sent
    assert [sent.body["method"] for sent in questions] == ["get_task_result"] * 3
    assert all(sent.body["params"] == {"task_id": "z-1"} for sent in questions)
    assert len({sent.id for sent in transport.sent}) == 4
    assert {sent.headers["X-Zone-Session"] for sent in transport.sent} == {first.id}
    assert {sent.headers["X-Correlation-ID"] for sent in transport.sent} == {first.id}


async def test_a_caller_may_bring_the_id_and_the_correlation_id() -> None:
    transport, id_ = saying(SUCCESS), str(uuid4())
    await executed(transport, id=id_, correlation_id="c-81")
    assert transport.sent[0].id == id_
    assert transport.sent[0].headers["X-Correlation-ID"] == "c-81"
    own = saying(SUCCESS)
    await client_over(own).execute_task({**PARAMS, "correlation_id": "c-own"})
    assert own.sent[0].headers["X-Correlation-ID"] == "c-own"


async def test_an_id_that_is_no_uuid_is_refused() -> None:
    transport = saying(SUCCESS)
    with pytest.raises(Invalid, match="must be a UUID"):
        await executed(transport, id="order-7")
    assert transport.sent == []


@pytest.mark.parametrize(
    "trouble",
    [
        LOST,
        TransportError("agent_unreachable", "Nobody listens."),
        TransportError("agent_timeout", "No answer."),
        TransportError("agent_dns_failed", "No such name."),
        AgentAnswer(502, {}, b"<html>Bad gateway</html>"),
        AgentAnswer(429, {}, b""),
        error(-32000, status=429, retry_after_ms=1),
        error(-32000, retry_after_ms=1),
        error(-32000, reason="stopping"),
        error(-32000, reason="store_unavailable"),
    ],
    ids=lambda trouble: getattr(trouble, "code", "") or str(getattr(trouble, "status", "")) or "error",
)
async def test_what_may_pass_is_sent_again_as_it_was(trouble: Answer | Callable[[Sent], Answer]) -> None:
    transport = saying(trouble, trouble, SUCCESS)
    assert (await executed(transport))["status"] == "success"
    assert [sent.body for sent in transport.sent] == [transport.sent[0].body] * 3


@pytest.mark.parametrize("trouble", [LOST, error(-32000, reason="stopping"), error(-32000, retry_after_ms=1)])
async def test_a_question_that_gets_no_answer_is_asked_again(
    trouble: Answer | Callable[[Sent], Answer],
) -> None:
    transport = saying(ACCEPTED, trouble, trouble, SUCCESS)
    assert (await executed(transport))["status"] == "success"
    assert [sent.body["method"] for sent in transport.sent] == ["execute_task", *["get_task_result"] * 3]


@pytest.mark.parametrize(
    ("answer", "code", "jsonrpc_code"),
    [
        (error(-32601, "Method not found"), "agent_jsonrpc_error", -32601),
        (error(-32602, "Invalid params"), "agent_jsonrpc_error", -32602),
        (error(-32603, "Internal error"), "agent_jsonrpc_error", -32603),
        (error(-32001, "Timeout"), "agent_jsonrpc_error", -32001),
        (error(-32000, "Restarted", reason="interrupted"), "agent_jsonrpc_error", -32000),
        (error(-32000, "Used", reason="id_reused"), "agent_jsonrpc_error", -32000),
        (error(-32000, "Who?", status=401), "agent_jsonrpc_error", -32000),
        ({"jsonrpc": "2.0", "id": "other", "result": {}}, "agent_response_id_mismatch", None),
        (result(status="failed"), "agent_answer_malformed", None),
        (result(), "agent_answer_malformed", None),
        (AgentAnswer(200, {}, b"<html>"), "agent_answer_malformed", None),
        (AgentAnswer(404, {}, b"nothing here"), "agent_http_error", None),
        (AgentAnswer(302, {"location": "http://x.example/"}, b""), "agent_redirected", None),
        (TransportError("agent_tls_failed", "No."), "agent_tls_failed", None),
        (TransportError("agent_address_forbidden", "No."), "agent_address_forbidden", None),
    ],
)
async def test_what_cannot_pass_is_an_error_at_once(
    answer: Answer | Callable[[Sent], Answer], code: str, jsonrpc_code: int | None
) -> None:
    transport = saying(answer)
    failed = await failure(transport)
    assert (failed.error.code, failed.error.jsonrpc_code) == (code, jsonrpc_code)
    assert not isinstance(failed, ZoneCallUnfinished)
    assert (failed.id, failed.task_id) == (transport.sent[0].id, None)
    assert len(transport.sent) == 1
    assert failed.message == failed.error.message
    assert failed.fix


async def test_a_result_with_a_number_that_cannot_be_held_is_malformed() -> None:
    def answer(sent: Sent) -> Answer:
        said = f'{{"status":"success","response_text":"{"x" * 70_000}","n":1e999}}'
        return AgentAnswer(200, {}, f'{{"jsonrpc":"2.0","id":"{sent.id}","result":{said}}}'.encode())

    failed = await failure(saying(answer))
    assert (failed.error.code, "out of range" in failed.message) == ("agent_answer_malformed", True)


async def test_work_that_breaks_after_it_was_accepted_names_its_task() -> None:
    failed = await failure(saying(ACCEPTED, error(-32603, "Internal error")))
    assert (failed.error.jsonrpc_code, failed.task_id) == (-32603, "z-1")


async def test_a_task_that_the_zone_does_not_know_is_lost() -> None:
    fields: Json = [{"path": "task_id", "message": "is not known"}]
    failed = await failure(saying(ACCEPTED, error(-32602, "Invalid params", fields=fields)))
    assert (failed.error.code, failed.task_id) == ("agent_task_lost", "z-1")


async def test_work_that_fails_by_its_params_is_not_lost() -> None:
    fields: Json = [{"path": "channel", "message": "is archived"}]
    failed = await failure(saying(ACCEPTED, error(-32602, "Invalid params", fields=fields)))
    assert (failed.error.code, failed.error.jsonrpc_code) == ("agent_jsonrpc_error", -32602)


async def test_an_answer_about_another_task_is_not_ours() -> None:
    failed = await failure(saying(ACCEPTED, result(status="accepted", task_id="z-2")))
    assert failed.error.code == "agent_response_id_mismatch"


async def test_at_the_deadline_the_error_has_what_is_needed_later() -> None:
    transport = saying(ACCEPTED)
    failed = await failure(transport, deadline=timedelta(milliseconds=50))
    assert isinstance(failed, ZoneCallUnfinished)
    assert (failed.error.code, failed.task_id) == ("agent_task_unfinished", "z-1")
    assert failed.id == transport.sent[0].id


@pytest.mark.parametrize(
    ("answers", "doubtful"),
    [
        ((LOST,), True),
        ((TransportError("agent_unreachable", "No."),), False),
        ((LOST, TransportError("agent_unreachable", "No.")), True),
    ],
)
async def test_at_the_deadline_the_error_says_whether_the_zone_may_have_the_work(
    answers: tuple[TransportError, ...], doubtful: bool
) -> None:
    failed = await failure(saying(*answers), deadline=timedelta(milliseconds=50))
    assert isinstance(failed, ZoneCallUnfinished)
    assert (failed.error.doubtful, failed.task_id) == (doubtful, None)


async def test_a_wait_past_the_deadline_is_not_waited_for() -> None:
    transport = saying(error(-32000, "Too fast", retry_after_ms=3_600_000))
    failed = await failure(transport, deadline=timedelta(seconds=30))
    assert isinstance(failed, ZoneCallUnfinished)
    assert failed.error.retry_after_ms == 3_600_000
    assert len(transport.sent) == 1


async def test_no_request_waits_longer_than_the_deadline() -> None:
    transport = saying(SUCCESS)
    await executed(transport, deadline=7.0)
    assert 0 < transport.sent[0].seconds <= 7.0


async def test_params_that_do_not_fit_the_profile_are_not_sent() -> None:
    transport = saying(SUCCESS)
    for params, word in (
        ({"text": "x", "bot_token": SECRET}, "channel is required"),
        ([SECRET], "an object"),
    ):
        with pytest.raises(ZoneCallFailed) as raised:
            await client_over(transport).execute_task(params)  # pyright: ignore[reportArgumentType] - that is the point
        assert raised.value.error.code == "request_not_encodable"
        assert word in raised.value.message
        assert SECRET not in raised.value.message
    assert transport.sent == []


async def test_later_the_result_can_be_asked_for_with_what_the_error_carried() -> None:
    session = str(uuid4())
    transport = saying(ACCEPTED, SUCCESS)
    async with asyncio.timeout(TIMEOUT_SECONDS):
        found = await client_over(transport).get_task_result("z-1", session=session)
    assert found["status"] == "success"
    assert {sent.headers["X-Zone-Session"] for sent in transport.sent} == {session}
    unnamed = saying(ACCEPTED)
    with pytest.raises(ZoneCallUnfinished):
        await client_over(unnamed).get_task_result("z-1", deadline=0)
    (sent,) = unnamed.sent
    assert "X-Zone-Session" not in sent.headers


async def test_no_secret_is_in_any_log_or_error() -> None:
    said = f"cannot post with {SECRET} or nested-secret"
    proof = Credentials(headers={"Authorization": "Bearer door-secret"}, secrets=("door-secret",))
    transport = saying(
        TransportError("agent_connection_lost", f"{said} door-secret"), error(-32000, said, token=said)
    )
    with capture_logs() as lines, pytest.raises(ZoneCallFailed) as raised:
        await client_over(transport, proof=proof).execute_task(
            {**PARAMS, "attachments": [{"auth": {"keys": ["nested-secret"]}}]}
        )
    failed = raised.value
    assert transport.sent[0].headers["Authorization"] == "Bearer door-secret"
    shown = f"{lines}{failed!r}{failed.error!r}{failed.__cause__!r}{failed.__context__!r}"
    assert len(lines) == 1
    assert SECRET not in shown
    assert "nested-secret" not in shown
    assert "door-secret" not in shown
    assert "C1" not in shown


async def test_a_client_fetches_no_token() -> None:
    config: JsonObject = {"token_url": "https://t.example/", "client_id": "a", "client_secret": "bcde"}
    with pytest.raises(Invalid, match="oauth2"):
        async with open_zone_client(URL, auth_type="oauth2", auth_config=config):
            pass


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("ftp://x.example/", "cannot be called"),
        ("arn:aws:s3:::bucket", "cannot be called"),
        ("stdio:worker", "known only to a transport"),
    ],
)
async def test_a_url_that_cannot_be_called_is_refused(url: str, words: str) -> None:
    with pytest.raises(Invalid, match=words):
        async with open_zone_client(url):
            pass


@pytest.mark.parametrize("pace", [POLL_BACKOFF, RETRY_BACKOFF])
def test_each_wait_is_longer_up_to_a_limit_and_never_exactly_the_same(pace: ClientBackoff) -> None:
    for times in (0, 3, 50, 10_000):
        first, longest = pace.first.total_seconds(), pace.longest.total_seconds()
        most = min(first * pace.growth ** min(times, 99), longest)
        waits = {pace.delay(times) for _ in range(20)}
        assert len(waits) > 1
        assert all(most / 2 <= wait <= most for wait in waits)


# --- with a zone


class InProcessTransport(FakeTransport):
    """Calls the zone in this process."""

    def __init__(self, zone: Zone) -> None:
        super().__init__(lambda sent: sent.body)
        self._zone = zone

    async def post(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        timeout: float,
        tls: TlsConfig | None = None,
    ) -> AgentAnswer:
        await super().post(url, body, headers, timeout, tls)
        reply = await self._zone.answer(body)
        return AgentAnswer(reply.status, {}, reply.body)


class GatedZone:
    """A zone whose work waits at a gate."""

    def __init__(self) -> None:
        self.zone = Zone("gated", accept_after=0.01, stop_timeout=0.0)
        self.gate = asyncio.Event()
        self.runs: list[JsonObject] = []

        @self.zone.method("execute_task")
        async def execute_task(params: JsonObject) -> JsonObject:  # pyright: ignore[reportUnusedFunction] - registered
            self.runs.append(params)
            if params["text"] == "break":
                raise ZoneFault(4711, "No such channel")
            await self.gate.wait()
            return {"response_text": f"{params['text']}!"}


@asynccontextmanager
async def gated() -> AsyncGenerator[GatedZone]:
    made = GatedZone()
    async with made.zone.running():
        yield made


async def test_client_and_zone_understand_one_another() -> None:
    async with gated() as at, asyncio.timeout(TIMEOUT_SECONDS):
        transport = InProcessTransport(at.zone)
        client, id_ = client_over(transport), str(uuid4())
        first = asyncio.create_task(client.execute_task(PARAMS, id=id_))
        while len(transport.sent) < 3:
            await asyncio.sleep(0)
        # Another caller with the same id, as after a crash, and with a renewed token.
        second = asyncio.create_task(client.execute_task({**PARAMS, "bot_token": "xoxb-renewed"}, id=id_))
        at.gate.set()
        expected = {"status": "success", "response_text": "hello!"}
        assert [await first, await second] == [expected, expected]
        assert len(at.runs) == 1
        with pytest.raises(ZoneCallFailed, match="another method or other params"):
            await client.execute_task({**PARAMS, "text": "other"}, id=id_)
        with pytest.raises(ZoneCallFailed, match="No such channel"):
            await client.execute_task({**PARAMS, "text": "break"})
        with pytest.raises(ZoneCallFailed, match="does not have the task"):
            await client.get_task_result("nothing")


def test_the_old_names_of_the_client_are_aliases() -> None:
    link = import_module(f"{zones.__name__}.link")
    assert zones.Link is zones.ZoneClient is link.Link
    assert zones.open_link is zones.open_zone_client is link.open_link
    assert link.ZoneCallFailed is zones.ZoneCallFailed
