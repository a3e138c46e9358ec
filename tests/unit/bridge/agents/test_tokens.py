from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from joserfc import jwt
from joserfc.jwk import OKPKey
from structlog.testing import capture_logs
from tests.certificates import signing_key
from tests.token_endpoint import TokenEndpoint, token_endpoint

from trunkline.agents.authentication.auth_config import NO_CREDENTIALS, Credentials, credentials
from trunkline.agents.authentication.signed_tokens import body_digest
from trunkline.bridge.agents.tokens import TokenProvider
from trunkline.jsontypes import Json
from trunkline.telemetry import log_events
from trunkline.telemetry.redaction import Redaction
from trunkline.testing import FakeClock
from trunkline.transports.address_policy import AddressPolicy
from trunkline.transports.base import TransportError
from trunkline.transports.https import HttpTransport

pytestmark = pytest.mark.anyio

SECRET = "the client's s3cr3t: ä%+"


@pytest.fixture
async def endpoint() -> AsyncIterator[TokenEndpoint]:
    async with token_endpoint() as running:
        yield running


@pytest.fixture
async def transport() -> AsyncIterator[HttpTransport]:
    async with HttpTransport(AddressPolicy(allow_loopback=True)) as opened:
        yield opened


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def tokens(transport: HttpTransport, clock: FakeClock) -> TokenProvider:
    return TokenProvider(transport, clock)


def client_of(url: str, **fields: Json) -> Credentials:
    config: dict[str, Json] = {"token_url": url, "client_id": "me: too", "client_secret": SECRET, **fields}
    return credentials("Agent", "oauth2", config)


async def token(tokens: TokenProvider, client: Credentials) -> str:
    return (await tokens.headers(client, Redaction(client)))["Authorization"].removeprefix("Bearer ")


async def refusal(tokens: TokenProvider, client: Credentials) -> TransportError:
    with pytest.raises(TransportError) as caught:
        await token(tokens, client)
    assert not caught.value.sent
    assert SECRET not in caught.value.message
    return caught.value


async def test_an_agent_without_a_client_needs_no_token(tokens: TokenProvider) -> None:
    assert await tokens.headers(NO_CREDENTIALS, Redaction()) == {}
    assert not tokens.discard(NO_CREDENTIALS, {})


async def test_the_client_shows_itself_in_a_header(endpoint: TokenEndpoint, tokens: TokenProvider) -> None:
    client = client_of(endpoint.url, scope="read write", audience="https://agent.example")
    assert await tokens.headers(client, Redaction()) == {"Authorization": "Bearer token-1"}
    (request,) = endpoint.requests
    assert request.client == ("me: too", SECRET)
    assert request.form == {
        "grant_type": "client_credentials",
        "scope": "read write",
        "audience": "https://agent.example",
    }


async def test_the_client_shows_itself_in_the_form_where_that_is_wanted(
    endpoint: TokenEndpoint, tokens: TokenProvider
) -> None:
    await token(tokens, client_of(endpoint.url, client_auth="post"))
    (request,) = endpoint.requests
    assert request.client is None
    assert request.form == {
        "grant_type": "client_credentials",
        "client_id": "me: too",
        "client_secret": SECRET,
    }


async def test_a_hundred_calls_that_find_no_token_ask_for_one(
    endpoint: TokenEndpoint, tokens: TokenProvider
) -> None:
    client = client_of(endpoint.url)
    endpoint.open.clear()
    waiting = [asyncio.create_task(token(tokens, client)) for _ in range(100)]
    while not endpoint.requests:
        await asyncio.sleep(0)
    endpoint.open.set()
    assert set(await asyncio.gather(*waiting)) == {"token-1"}
    assert await token(tokens, client) == "token-1"
    assert len(endpoint.requests) == 1


async def test_one_that_gives_up_waiting_does_not_take_the_token_from_the_others(
    endpoint: TokenEndpoint, tokens: TokenProvider
) -> None:
    client = client_of(endpoint.url)
    endpoint.open.clear()
    first = asyncio.create_task(token(tokens, client))
    second = asyncio.create_task(token(tokens, client))
    while not endpoint.requests:
        await asyncio.sleep(0)
    first.cancel()
    endpoint.open.set()
    assert await second == "token-1"
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_a_hundred_calls_that_are_refused_together_ask_once_for_all(
    endpoint: TokenEndpoint, tokens: TokenProvider
) -> None:
    client = client_of(endpoint.url)
    endpoint.scripted = [(503, b"")]
    endpoint.open.clear()
    waiting = [asyncio.create_task(refusal(tokens, client)) for _ in range(100)]
    while not endpoint.requests:
        await asyncio.sleep(0)
    endpoint.open.set()
    assert {error.code for error in await asyncio.gather(*waiting)} == {"agent_token_unavailable"}
    assert len(endpoint.requests) == 1
    assert await token(tokens, client) == "token-1"


@pytest.mark.parametrize(
    ("more", "kept", "over"),
    [
        ({"expires_in": 3600}, 3_569, 3_571),
        ({"expires_in": "3600", "token_type": "bearer"}, 3_569, 3_571),
        ({"expires_in": 100}, 89, 91),
        ({"expires_in": 10}, 8, 9.5),
        ({}, 269, 271),
        ({"expires_in": None}, 269, 271),
        ({"expires_in": "soon"}, 269, 271),
        ({"expires_in": 1e300}, 86_000, 86_371),
    ],
)
async def test_a_token_is_used_until_shortly_before_it_runs_out(
    endpoint: TokenEndpoint,
    tokens: TokenProvider,
    clock: FakeClock,
    more: dict[str, Json],
    kept: float,
    over: float,
) -> None:
    client = client_of(endpoint.url)
    endpoint.more = more
    assert await token(tokens, client) == "token-1"
    clock.advance(timedelta(seconds=kept))
    assert await token(tokens, client) == "token-1"
    clock.advance(timedelta(seconds=over - kept))
    assert await token(tokens, client) == "token-2"


@pytest.mark.parametrize("expires_in", [0, -5, "nan"])
async def test_a_token_that_has_run_out_when_it_comes_is_used_once(
    endpoint: TokenEndpoint, tokens: TokenProvider, expires_in: Json
) -> None:
    client = client_of(endpoint.url)
    endpoint.more = {"expires_in": expires_in}
    assert [await token(tokens, client) for _ in range(2)] == ["token-1", "token-2"]


async def test_of_many_that_are_refused_with_one_token_one_asks_for_another(
    endpoint: TokenEndpoint, tokens: TokenProvider
) -> None:
    client = client_of(endpoint.url)
    used = await tokens.headers(client, Redaction(client))
    assert tokens.discard(client, used)
    assert await token(tokens, client) == "token-2"
    # The next one whose call the old token was refused in finds the new one.
    assert tokens.discard(client, used)
    assert await token(tokens, client) == "token-2"
    assert len(endpoint.requests) == 2


async def test_each_client_has_its_own_token(endpoint: TokenEndpoint, tokens: TokenProvider) -> None:
    assert await token(tokens, client_of(endpoint.url, scope="a")) == "token-1"
    assert await token(tokens, client_of(endpoint.url, scope="b")) == "token-2"
    assert await token(tokens, client_of(endpoint.url, scope="a")) == "token-1"


async def test_a_call_with_a_token_redacts_it_and_the_earlier_ones(
    endpoint: TokenEndpoint, tokens: TokenProvider
) -> None:
    client = client_of(endpoint.url)
    redaction = Redaction(client)
    for number in range(1, 4):
        used = await tokens.headers(client, redaction)
        assert redaction.text(f"It is token-{number}.") == "It is [redacted]."
        tokens.discard(client, used)
    said = f"token-1 token-2 token-3 {SECRET}"
    assert redaction.text(said) == "[redacted] [redacted] [redacted] [redacted]"
    assert tokens.redaction(client).text(said) == "[redacted] [redacted] [redacted] [redacted]"


async def test_a_token_is_fetched_with_a_line_in_the_log_that_does_not_show_it(
    endpoint: TokenEndpoint, tokens: TokenProvider
) -> None:
    with capture_logs() as lines:
        await token(tokens, client_of(f"{endpoint.url}?tenant=hidden"))
    assert lines == [{"event": log_events.TOKEN_FETCHED, "log_level": "info", "token_url": endpoint.url}]


@pytest.mark.parametrize(
    ("status", "body", "code", "message"),
    [
        (401, b'{"error":"invalid_client"}', "agent_token_refused", "HTTP 401: invalid_client."),
        (
            400,
            b'{"error":"invalid_scope","error_description":"No such scope"}',
            "agent_token_refused",
            "HTTP 400: invalid_scope: No such scope.",
        ),
        (403, b"<html>", "agent_token_refused", "HTTP 403."),
        (404, b"", "agent_token_refused", "HTTP 404."),
        (400, b'{"error":' + b"[" * 100_000, "agent_token_refused", "HTTP 400."),
        (307, b"", "agent_token_refused", "HTTP 307."),
        (204, b"", "agent_token_refused", "HTTP 204."),
        (200, b"", "agent_token_refused", "is not JSON with an access_token"),
        (200, b"<html>", "agent_token_refused", "is not JSON with an access_token"),
        (200, b"[]", "agent_token_refused", "is not JSON with an access_token"),
        (200, b'{"access_token":7}', "agent_token_refused", "is not JSON with an access_token"),
        (200, b'{"access_token":"\xff"}', "agent_token_refused", "is not JSON with an access_token"),
        (200, b'{"access_token":""}', "agent_token_refused", "that a header cannot contain"),
        (200, b'{"access_token":"a\\r\\nX: y"}', "agent_token_refused", "that a header cannot contain"),
        (200, b'{"access_token":"\\u00e4"}', "agent_token_refused", "that a header cannot contain"),
        (
            200,
            b'{"access_token":"%s"}' % (b"a" * 20_000),
            "agent_token_refused",
            "that a header cannot contain",
        ),
        (
            200,
            b'{"access_token":"a","token_type":"mac"}',
            "agent_token_refused",
            "type is not Bearer",
        ),
        (500, b"", "agent_token_unavailable", "HTTP 500."),
        (429, b"", "agent_token_unavailable", "HTTP 429."),
    ],
)
async def test_what_is_no_token_is_a_documented_error(
    endpoint: TokenEndpoint, tokens: TokenProvider, status: int, body: bytes, code: str, message: str
) -> None:
    endpoint.scripted = [(status, body)]
    found = await refusal(tokens, client_of(endpoint.url))
    assert found.code == code
    assert message in found.message


async def test_an_endpoint_that_repeats_the_secret_does_not_make_it_readable(
    endpoint: TokenEndpoint, tokens: TokenProvider
) -> None:
    said = f'{{"error":"invalid_client","error_description":"not {SECRET}"}}'
    endpoint.scripted = [(401, said.encode())]
    found = await refusal(tokens, client_of(endpoint.url))
    assert found.message.endswith("invalid_client: not [redacted].")


async def test_an_endpoint_that_is_down_or_may_not_be_called_is_unavailable(
    endpoint: TokenEndpoint, tokens: TokenProvider, clock: FakeClock
) -> None:
    assert (await refusal(tokens, client_of("http://127.0.0.1:9/token"))).code == "agent_token_unavailable"
    async with HttpTransport(AddressPolicy()) as strict:
        found = await refusal(TokenProvider(strict, clock), client_of(endpoint.url))
    assert found.code == "agent_token_unavailable"
    assert "loopback" in found.message
    assert endpoint.requests == []


async def test_a_call_waits_no_longer_for_a_token_than_its_timeout(
    endpoint: TokenEndpoint, tokens: TokenProvider
) -> None:
    endpoint.open.clear()
    client = client_of(endpoint.url)
    with pytest.raises(TransportError) as caught:
        await tokens.headers(client, Redaction(client), 0.05)
    assert caught.value.code == "agent_token_unavailable"
    endpoint.open.set()
    assert await token(tokens, client) == "token-1"


async def test_a_signed_token_is_made_for_each_request_and_is_hidden(
    tokens: TokenProvider, clock: FakeClock
) -> None:
    private, public = signing_key()
    config: dict[str, Json] = {"key": private, "issuer": "verification", "audience": "execution"}
    signer = credentials("Zone", "signed", config)
    redaction = tokens.redaction(signer)
    sent = [
        (await tokens.headers(signer, redaction, body=body))["Authorization"].removeprefix("Bearer ")
        for body in (b"one", b"one", b"two")
    ]
    read = [jwt.decode(text, OKPKey.import_key(public), algorithms=["EdDSA"]).claims for text in sent]
    assert len({claims["jti"] for claims in read}) == 3
    assert [claims["body"] for claims in read] == [body_digest(body) for body in (b"one", b"one", b"two")]
    assert {claims["iat"] for claims in read} == {clock.now() // 1_000_000}
    for text in sent:
        assert redaction.text(f"You sent {text}!") == "You sent [redacted]!"
        assert redaction.body(f'{{"you":"{text}"}}'.encode()) == b'{"you":"[redacted]"}'
        assert redaction.begun_in(f"You sent {text[:-1]}") == len(text) - 1
        assert redaction.longest >= len(text)
    assert not tokens.discard(signer, {"Authorization": f"Bearer {sent[-1]}"})


async def test_a_signed_token_of_a_call_with_secrets_is_hidden_from_the_next_call_too(
    tokens: TokenProvider,
) -> None:
    config: dict[str, Json] = {"key": signing_key()[0], "issuer": "verification", "audience": "execution"}
    signer = credentials("Zone", "signed", config)
    kept = tokens.redaction(signer)
    first, second = kept.with_secrets(("xoxb-1",)), kept.with_secrets(("xoxb-2",))
    sent = (await tokens.headers(signer, first))["Authorization"].removeprefix("Bearer ")
    for redaction in (kept, first, second):
        assert redaction.text(f"You sent {sent}!") == "You sent [redacted]!"
        assert redaction.longest == len(sent)
    assert second.text("xoxb-1 xoxb-2") == "xoxb-1 [redacted]"
