"""The transport aws-agentcore: the real boto3 client against a stand-in that checks what AWS would check."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic
from uuid import UUID, uuid4

import aiohttp
import msgspec
import pytest
from deploy.local.agentcore import (
    DENIED,
    INVALID,
    THROTTLED,
    Behaviour,
    BrokenStream,
    HungUp,
    Refusal,
    Said,
    Silence,
    StandIn,
)
from tests.certificates import made
from yarl import URL

from trunkline.protocols.base import AgentAnswer
from trunkline.transports.aws_agentcore import MAX_PAYLOAD_BYTES, AgentCoreTransport
from trunkline.transports.base import StreamLimits, TransportError
from trunkline.transports.pending_request import PendingRequest, RequestAbandoned

pytestmark = pytest.mark.anyio

ARN = "arn:aws:bedrock-agentcore:eu-central-1:123456789012:runtime/execution_zone-a1B2c3D4e5"
# As nobody would write it, so that any change of it shows.
REQUEST = '{"jsonrpc": "2.0",  "id":"1", "method":"execute_task","params":{"text":"ü漢\\u0041"}}'.encode()
RESPONSE = '{"jsonrpc":"2.0", "id":"1","result":{"status":"success","response_text":"né"}}'.encode()
PLENTY = 30.0
HEADERS = {"Content-Type": "application/json", "Accept": "application/json", "X-Correlation-ID": "c"}


@pytest.fixture(autouse=True)
def no_other_aws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "nothing"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture
async def endpoint(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[StandIn]:
    async with StandIn(token="temporary-token-9f27") as standing_in:
        for name, value in standing_in.env.items():
            monkeypatch.setenv(name, value)
        yield standing_in


@asynccontextmanager
async def transport(
    *,
    max_answer_bytes: int = 1_000_000,
    most_calls: int = 8,
    first_delay: float = 0.001,
    most_retries: int = 4,
) -> AsyncGenerator[AgentCoreTransport]:
    async with AgentCoreTransport(
        max_answer_bytes=max_answer_bytes,
        max_calls=most_calls,
        first_delay=first_delay,
        max_retries=most_retries,
    ) as opened:
        yield opened


async def call(url: str = ARN, body: bytes = REQUEST, seconds: float = PLENTY, **headers: str) -> AgentAnswer:
    async with transport() as opened:
        return await opened.post(url, body, {**HEADERS, **headers}, seconds)


async def failure(seconds: float = PLENTY, body: bytes = REQUEST, url: str = ARN) -> TransportError:
    with pytest.raises(TransportError) as caught:
        await call(url, body, seconds)
    return caught.value


async def test_the_payload_is_the_request_and_the_answer_the_response_byte_for_byte(
    endpoint: StandIn,
) -> None:
    endpoint.plan.append(Said(RESPONSE))
    answer = await call()
    assert (answer.status, answer.body) == (200, RESPONSE)
    assert answer.headers["content-type"] == "application/json"
    assert [(one.arn, one.qualifier, one.payload) for one in endpoint.invocations] == [(ARN, None, REQUEST)]
    assert endpoint.complaints == []


async def test_an_answer_without_a_length_is_read_to_its_end(endpoint: StandIn) -> None:
    endpoint.plan.append(Said(RESPONSE * 5_000, chunked=True))
    assert (await call()).body == RESPONSE * 5_000


async def test_each_call_has_a_session_of_its_own_that_is_long_enough(endpoint: StandIn) -> None:
    endpoint.plan.extend([Said(b"{}")] * 3)
    async with transport() as opened:
        await asyncio.gather(*(opened.post(ARN, REQUEST, HEADERS, PLENTY) for _ in range(3)))
    sessions = {one.session for one in endpoint.invocations}
    assert len(sessions) == 3
    assert all(len(session) >= 33 and UUID(session) for session in sessions)


async def test_a_question_about_a_task_goes_to_the_session_that_has_it(endpoint: StandIn) -> None:
    session = str(uuid4())
    endpoint.plan.extend([Said(b"{}")] * 2)
    async with transport() as opened:
        for _ in range(2):
            await opened.post(ARN, REQUEST, {**HEADERS, "X-Zone-Session": session}, PLENTY)
    assert [one.session for one in endpoint.invocations] == [session, session]


async def test_a_session_that_aws_would_refuse_is_not_sent(endpoint: StandIn) -> None:
    async with transport() as opened:
        with pytest.raises(TransportError, match="33 to 256 characters, not 5") as caught:
            await opened.post(ARN, REQUEST, {"X-Zone-Session": "short"}, PLENTY)
    assert (caught.value.code, endpoint.invocations) == ("request_not_encodable", [])


async def test_a_qualifier_and_a_trace_go_along(endpoint: StandIn) -> None:
    endpoint.plan.append(Said(b"{}"))
    traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    await call(f"{ARN}?qualifier=blue", traceparent=traceparent, tracestate="a=b", baggage="c=d")
    [invocation] = endpoint.invocations
    assert invocation.qualifier == "blue"
    sent = {name.lower(): value for name, value in invocation.headers.items()}
    assert (sent["traceparent"], sent["tracestate"], sent["baggage"]) == (traceparent, "a=b", "c=d")


@pytest.mark.parametrize(
    "refusal",
    [THROTTLED, Refusal(409, "RetryableConflictException", "The session is being made")],
    ids=["throttled", "conflict"],
)
async def test_a_call_that_was_put_off_is_made_again(endpoint: StandIn, refusal: Refusal) -> None:
    endpoint.plan.extend([refusal, refusal, Said(RESPONSE)])
    assert (await call()).body == RESPONSE
    assert len(endpoint.invocations) == 3
    assert len({(one.session, one.payload) for one in endpoint.invocations}) == 1


async def test_a_call_that_is_throttled_to_the_end_is_answered_so(endpoint: StandIn) -> None:
    endpoint.plan.extend([THROTTLED] * 10)
    answer = await call()
    assert answer.status == 429
    assert msgspec.json.decode(answer.body) == {"type": "ThrottlingException", "message": "Rate exceeded"}
    assert len(endpoint.invocations) == 5


async def test_a_call_waits_for_no_retry_that_would_come_too_late(endpoint: StandIn) -> None:
    endpoint.plan.append(THROTTLED)
    async with transport(first_delay=600) as opened:
        answer = await opened.post(ARN, REQUEST, HEADERS, PLENTY)
    assert (answer.status, len(endpoint.invocations)) == (429, 1)


@pytest.mark.parametrize(
    "refusal",
    [
        INVALID,
        DENIED,
        Refusal(402, "ServiceQuotaExceededException", "Too many sessions"),
        Refusal(404, "ResourceNotFoundException", "No such runtime"),
        Refusal(424, "RuntimeClientError", "Received error (500) from runtime"),
        Refusal(500, "InternalServerException", "Sorry"),
        Refusal(503, "ServiceUnavailableException", "Sorry"),
    ],
    ids=lambda refusal: refusal.code,
)
async def test_an_error_of_the_service_is_an_answer_and_nothing_is_sent_twice(
    endpoint: StandIn, refusal: Refusal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "5")
    endpoint.plan.append(refusal)
    answer = await call()
    assert answer.status == refusal.status
    assert msgspec.json.decode(answer.body) == {
        "type": refusal.code,
        "message": refusal.message,
        **refusal.details,
    }
    assert len(endpoint.invocations) == 1


async def test_a_redirect_is_not_followed(endpoint: StandIn) -> None:
    endpoint.plan.append(Said(b"", status=307))
    assert ((await call()).status, len(endpoint.invocations)) == (307, 1)


@pytest.mark.parametrize(
    ("behaviour", "code", "came"),
    [
        (HungUp(), "agent_connection_lost", None),
        (BrokenStream(b'{"jsonrpc":', 500), "agent_connection_lost", b'{"jsonrpc":'),
        (BrokenStream(b'{"jsonrpc":'), "agent_connection_lost", None),
        (Said(b"x" * 2_000_000), "agent_answer_too_large", b""),
        (Said(b"x" * 2_000_000, chunked=True), "agent_answer_too_large", None),
    ],
    ids=["hung up", "cut", "cut without a length", "too large", "too large without a length"],
)
async def test_what_breaks_after_the_request_has_left_counts_as_sent(
    endpoint: StandIn, behaviour: Behaviour, code: str, came: bytes | None
) -> None:
    endpoint.plan.append(behaviour)
    error = await failure()
    assert (error.code, error.sent) == (code, True)
    if came is not None:
        assert error.partial is not None
        assert (error.partial.status, error.partial.body) == (200, came)
    assert len(endpoint.invocations) == 1


async def test_an_answer_that_does_not_come_ends_the_wait_and_not_the_thread_alone(endpoint: StandIn) -> None:
    endpoint.plan.extend([Said(b"{}"), Silence()])
    async with transport(most_calls=1) as opened:
        # Loads boto3, which takes longer than a call.
        await opened.post(ARN, REQUEST, HEADERS, PLENTY)
        with pytest.raises(TransportError, match="did not answer within") as caught:
            await opened.post(ARN, REQUEST, HEADERS, 2.0)
        assert (caught.value.code, caught.value.sent) == ("agent_timeout", True)
        # The only thread is free again.
        endpoint.plan.append(Said(RESPONSE))
        assert (await opened.post(ARN, REQUEST, HEADERS, PLENTY)).body == RESPONSE
    assert len(endpoint.invocations) == 3


async def test_there_are_never_more_threads_than_calls_allowed(endpoint: StandIn) -> None:
    endpoint.plan.extend([Silence(), Said(RESPONSE)])
    async with transport(most_calls=1) as opened:
        silent = asyncio.create_task(opened.post(ARN, REQUEST, HEADERS, PLENTY))
        while not endpoint.invocations:
            await asyncio.sleep(0)
        with pytest.raises(TransportError, match="waited for one of 1 calls to end") as caught:
            await opened.post(ARN, REQUEST, HEADERS, 0.05)
        assert (caught.value.code, caught.value.sent) == ("agent_unreachable", False)
        silent.cancel()
        with pytest.raises(asyncio.CancelledError):
            await silent
        # Given up, but its thread still waits: its place is not free.
        with pytest.raises(TransportError, match="waited for one of 1 calls to end"):
            await opened.post(ARN, REQUEST, HEADERS, 0.05)
    assert len(endpoint.invocations) == 1


def test_a_request_whose_caller_has_gone_never_leaves() -> None:
    pending = PendingRequest(monotonic() + PLENTY)
    assert not pending.abandon()
    with pytest.raises(RequestAbandoned):
        pending.send()
    assert not pending.is_sent


def test_a_request_leaves_once() -> None:
    pending = PendingRequest(monotonic() + PLENTY)
    assert 0 < pending.send() <= PLENTY
    with pytest.raises(RequestAbandoned):
        pending.send()
    assert pending.abandon()


async def test_a_payload_that_aws_would_refuse_is_not_sent(endpoint: StandIn) -> None:
    error = await failure(body=bytes(MAX_PAYLOAD_BYTES + 1))
    assert (error.code, error.sent) == ("request_not_encodable", False)
    assert "100,000,001 bytes" in error.message
    assert endpoint.invocations == []


async def test_a_url_that_is_no_runtime_is_not_called(endpoint: StandIn) -> None:
    assert (await failure(url=f"{ARN}/tasks/send")).code == "agent_url_invalid"
    assert endpoint.invocations == []


async def test_without_credentials_nothing_is_sent(
    endpoint: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    error = await failure()
    assert (error.code, error.sent) == ("agent_transport_unavailable", False)
    assert "no usable AWS credentials: there are none" in error.message
    assert endpoint.invocations == []


async def test_what_gives_out_credentials_may_fail_and_is_not_quoted(
    endpoint: StandIn, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    config = tmp_path / "config"
    config.write_text("[default]\ncredential_process = sh -c 'echo s3cret-words >&2; exit 1'\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    error = await failure()
    assert (error.code, error.sent) == ("agent_transport_unavailable", False)
    assert "CredentialRetrievalError" in error.message
    assert "s3cret" not in error.message
    assert endpoint.invocations == []


async def test_a_configuration_that_boto3_refuses_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    error = await failure()
    assert (error.code, error.sent) == ("agent_transport_unavailable", False)
    assert "eu-central-1: ProfileNotFound" in error.message


async def test_a_wrong_key_is_refused_without_quoting_what_was_signed(
    endpoint: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    answer = await call()
    assert answer.status == 403
    assert b"InvalidSignatureException" in answer.body
    assert b"x-amz-security-token:[redacted]" in answer.body
    assert b"temporary-token" not in answer.body
    assert "temporary-token" in str(endpoint.complaints)


@pytest.mark.parametrize(
    ("url", "code"),
    [("http://127.0.0.1:1", "agent_unreachable"), ("http://nowhere.invalid", "agent_dns_failed")],
)
async def test_an_endpoint_that_is_not_there_has_got_nothing(
    endpoint: StandIn, monkeypatch: pytest.MonkeyPatch, url: str, code: str
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_AGENTCORE", url)
    error = await failure()
    assert (error.code, error.sent) == (code, False)
    assert endpoint.invocations == []


@pytest.fixture
async def secure_endpoint(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AsyncGenerator[StandIn]:
    certificate, key = made("localhost")
    (tmp_path / "certificate.pem").write_text(certificate)
    (tmp_path / "key.pem").write_text(key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "certificate.pem", tmp_path / "key.pem")
    async with StandIn(tls=context) as standing_in:
        for name, value in standing_in.env.items():
            monkeypatch.setenv(name, value)
        yield standing_in


async def test_the_endpoint_is_called_by_tls_when_its_certificate_is_known(
    secure_endpoint: StandIn, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", str(tmp_path / "certificate.pem"))
    secure_endpoint.plan.append(Said(RESPONSE))
    assert (await call()).body == RESPONSE


async def test_an_endpoint_with_a_strange_certificate_has_got_nothing(secure_endpoint: StandIn) -> None:
    error = await failure()
    assert (error.code, error.sent) == ("agent_tls_failed", False)
    assert secure_endpoint.invocations == []


async def test_another_error_of_tls_may_have_come_after_the_request(
    endpoint: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_AGENTCORE", endpoint.url.replace("http:", "https:"))
    error = await failure()
    assert (error.code, error.sent) == ("agent_connection_lost", True)


async def test_a_call_that_waits_for_credentials_too_long_is_never_sent(
    endpoint: StandIn, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    given = {"Version": 1, "AccessKeyId": endpoint.key, "SecretAccessKey": endpoint.secret}
    gate, config = tmp_path / "gate", tmp_path / "config"
    os.mkfifo(gate)
    config.write_text(f"[default]\ncredential_process = cat {gate}\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    endpoint.token = None
    async with transport(most_calls=1) as opened:
        with pytest.raises(TransportError, match="waited for boto3 to be ready") as caught:
            await opened.post(ARN, REQUEST, HEADERS, 0.5)
        assert (caught.value.code, caught.value.sent) == ("agent_unreachable", False)
        await asyncio.to_thread(gate.write_bytes, msgspec.json.encode(given))
        # It gets the only place when the thread of the other has ended.
        endpoint.plan.append(Said(RESPONSE))
        assert (await opened.post(ARN, b"2", HEADERS, PLENTY)).body == RESPONSE
    assert [one.payload for one in endpoint.invocations] == [b"2"]


_SILENT = f"""
import asyncio
from trunkline.transports.aws_agentcore import AgentCoreTransport

async def main():
    async with AgentCoreTransport() as transport:
        call = asyncio.create_task(transport.post("{ARN}", b"{{}}", {{}}, 3600))
        await asyncio.get_running_loop().run_in_executor(None, input)
        call.cancel()

asyncio.run(main())
"""


async def test_a_process_ends_though_a_runtime_is_silent(endpoint: StandIn) -> None:
    endpoint.plan.append(Silence())
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _SILENT, stdin=subprocess.PIPE, stderr=subprocess.PIPE
    )
    while not endpoint.invocations:
        await asyncio.sleep(0.01)
    _, err = await asyncio.wait_for(process.communicate(b"\n"), PLENTY)
    assert (process.returncode, err) == (0, b"")


async def test_no_proxy_is_taken_from_the_environment(
    endpoint: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    endpoint.plan.append(Said(RESPONSE))
    assert (await call()).body == RESPONSE


async def test_neither_keys_nor_bodies_are_logged_at_any_level(
    endpoint: StandIn, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    endpoint.plan.append(Said(RESPONSE))
    await call(body=b'{"bot_token":"xoxb-1234"}')
    for secret in (endpoint.secret, "temporary-token", "xoxb-1234", "AWS4-HMAC"):
        assert secret not in caplog.text


async def test_what_only_http_has_is_refused() -> None:
    limits = StreamLimits(first_seconds=1, idle_seconds=1, total_seconds=1, total_bytes=1)
    async with transport() as opened:
        with pytest.raises(TransportError, match="does not support GET"):
            await opened.get(ARN, {}, 1)
        with pytest.raises(TransportError, match="Streaming is not supported"):
            async with opened.stream(ARN, b"{}", {}, limits):
                pass


_WITHOUT_BOTO3 = f"""
import asyncio, sys
for name in ("boto3", "botocore"):
    sys.modules[name] = None
from trunkline.transports.aws_agentcore import AgentCoreTransport
from trunkline.transports.base import TransportError

async def main():
    async with AgentCoreTransport() as transport:
        try:
            await transport.post("{ARN}", b"{{}}", {{}}, 10)
        except TransportError as exc:
            print(exc.code, exc.sent, exc.message)

asyncio.run(main())
"""


def test_without_the_extra_the_error_says_what_to_install() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_BOTO3], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == (
        "agent_transport_unavailable False The transport aws-agentcore needs boto3, which is not installed: "
        "pip install 'trunkline[aws]'.\n"
    )


async def test_the_stand_in_takes_nothing_that_was_not_signed_or_was_changed(endpoint: StandIn) -> None:
    endpoint.plan.append(Said(b"{}"))
    await call()
    [signed] = endpoint.invocations
    quoted = ARN.replace(":", "%3A").replace("/", "%2F")
    path = f"{endpoint.url}/runtimes/{quoted}/invocations"
    async with aiohttp.ClientSession(skip_auto_headers=["Content-Type"]) as session:

        async def refused(headers: dict[str, str], body: bytes, suffix: str = "") -> str:
            async with session.post(URL(path + suffix, encoded=True), data=body, headers=headers) as answer:
                assert answer.status in (400, 403, 404)
                return answer.headers["x-amzn-ErrorType"]

        again = dict(signed.headers)
        assert await refused(again, REQUEST.replace(b"2.0", b"2.1")) == "InvalidSignatureException"
        assert await refused(again, REQUEST, "?qualifier=other") == "InvalidSignatureException"
        unsigned = {name: value for name, value in again.items() if name != "Authorization"}
        assert await refused(unsigned, REQUEST) == "MissingAuthenticationTokenException"
        other_time = {**again, "X-Amz-Date": "20200101T000000Z"}
        assert await refused(other_time, REQUEST) == "InvalidSignatureException"
        name = "X-Amzn-Bedrock-AgentCore-Runtime-Session-Id"
        assert await refused({**again, name: "short"}, REQUEST) == "ValidationException"
    assert len(endpoint.invocations) == 1
