"""Every way to write or resolve to an address that must not be called: not one connection is made."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import pytest
import uvloop

from trunkline.agents.authentication.credentials import NO_CREDENTIALS, Credentials, OAuthClient
from trunkline.bridge.agents.cards import CardFetcher
from trunkline.bridge.agents.tokens import TokenProvider
from trunkline.telemetry.redaction import Redaction
from trunkline.testing import FakeClock
from trunkline.transports.address_policy import AddressPolicy
from trunkline.transports.base import StreamLimits, TransportError
from trunkline.transports.https import HttpTransport

# Nothing here has a store or a broker.
pytestmark = pytest.mark.embedded_only

AMPLE = 60.0
LIMITS = StreamLimits(first_seconds=AMPLE, idle_seconds=AMPLE, total_seconds=AMPLE, total_bytes=1_000)
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
WRITTEN_OUT = [
    "127.0.0.1",
    "127.0.0.2",
    "127.255.255.254",
    "127.1",
    "127.0.1",
    "2130706433",
    "017700000001",
    "0x7f000001",
    "0x7f.1",
    "0x7f.0.0.1",
    "0177.0.0.1",
    "0177.0x0.0.1",
    "127.0.0.1.",
    "127.0.0.01",
    "127.0.0.1%2e",
    "127%2e0%2e0%2e1",
    "0",
    "0.0.0.0",
    "0.0.0.1",
    "00000000.0.0.0",
    "１２７.0.0.1",
    "127。0。0。1",
    "①②⑦.⓪.⓪.①",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[0:0:0:0:0:ffff:127.0.0.1]",
    "[::127.0.0.1]",
    "[::ffff:0:127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b::10.0.0.1]",
    "[64:ff9b::a9fe:a9fe]",
    "[64:ff9b:1::8.8.8.8]",
    "[2002:7f00:1::]",
    "[2002:a9fe:a9fe::]",
    "[2002:c0a8:101::1]",
    "[2001:0:7f00:1::]",
    "[2600::5efe:127.0.0.1]",
    "[2600::200:5efe:10.0.0.1]",
    "[fe80::1]",
    "[fe80::1%25lo]",
    "[fec0::1]",
    "[fc00::1]",
    "[fd00:ec2::254]",
    "[ff02::1]",
    "[2001:db8::1]",
    "[100::1]",
    "169.254.169.254",
    "0xa9fea9fe",
    "2852039166",
    "[::ffff:169.254.169.254]",
    "168.63.129.16",
    "100.100.100.200",
    "100.64.0.1",
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "192.0.0.192",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "user@127.0.0.1",
    "8.8.8.8@127.0.0.1",
    "8.8.8.8:80@127.0.0.1",
    "8.8.8.8#@127.0.0.1",
    "8.8.8.8\\@127.0.0.1",
    "127.0.0.1\t",
    " 127.0.0.1",
    "[::1]x",
]
RESOLVED = [
    "127.0.0.1",
    "::1",
    "0.0.0.0",
    "10.0.0.7",
    "169.254.169.254",
    "::ffff:127.0.0.1",
    "64:ff9b::7f00:1",
]


class Listener:
    """Every local address on one port."""

    def __init__(self) -> None:
        self.reached: list[str] = []
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reached.append(str(writer.get_extra_info("sockname")[0]))
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK)
        await writer.drain()
        writer.close()


@asynccontextmanager
async def listening() -> AsyncGenerator[Listener]:
    listener = Listener()
    server = await asyncio.start_server(listener.serve, "0.0.0.0", 0)
    listener.port = server.sockets[0].getsockname()[1]
    try:
        yield listener
    finally:
        server.close()


class Names:
    """A name server that gives its answers one after the other, the last one forever."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        del port
        self.asked.append(host)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


async def call(transport: HttpTransport, url: str) -> None:
    await transport.post(url, b"{}", {}, AMPLE)


async def look(transport: HttpTransport, url: str) -> None:
    await transport.get(url, {}, AMPLE)


async def listen(transport: HttpTransport, url: str) -> None:
    async with transport.stream(url, b"{}", {}, LIMITS) as answer:
        async for _ in answer.chunks():
            pass


async def listen_again(transport: HttpTransport, url: str) -> None:
    async with transport.stream(url, None, {}, LIMITS) as answer:
        async for _ in answer.chunks():
            pass


async def read_card(transport: HttpTransport, url: str) -> None:
    clock = FakeClock()
    fetched = await CardFetcher(transport, clock, TokenProvider(transport, clock)).fetch(url, NO_CREDENTIALS)
    if fetched.failure is not None:
        raise TransportError("agent_protocol_unclear", fetched.failure)


async def fetch_token(transport: HttpTransport, url: str) -> None:
    client = OAuthClient(token_url=url, client_id="me", client_secret="s3cr3t")
    try:
        await TokenProvider(transport, FakeClock()).headers(Credentials(oauth=client), Redaction())
    except TransportError as exc:
        # The listener gives no tokens, but it was reached.
        if exc.code != "agent_token_refused":
            raise


# Every way out of the program.
SendRequest = Callable[[HttpTransport, str], Awaitable[None]]
REQUEST_KINDS: list[SendRequest] = [call, look, listen, listen_again, read_card, fetch_token]
every_request_kind = pytest.mark.parametrize("send", REQUEST_KINDS, ids=lambda send: send.__name__)


async def refusal(transport: HttpTransport, url: str, send: SendRequest = call) -> TransportError:
    (found,) = await asyncio.gather(send(transport, url), return_exceptions=True)
    assert isinstance(found, TransportError), url
    assert not found.sent
    assert "may not be called" in found.message or "cannot be called" in found.message
    return found


@every_request_kind
def test_no_way_to_write_a_forbidden_address_leads_to_a_connection(send: SendRequest) -> None:
    async def main() -> None:
        names = Names(["127.0.0.1"])
        async with listening() as listener, HttpTransport(AddressPolicy(), lookup=names) as transport:
            for host in WRITTEN_OUT:
                await refusal(transport, f"http://{host}:{listener.port}/", send)
        assert listener.reached == []
        assert names.asked == []

    assert len(WRITTEN_OUT) >= 60
    uvloop.run(main())


@every_request_kind
@pytest.mark.parametrize("address", RESOLVED)
def test_a_name_that_leads_to_a_forbidden_address_is_refused(address: str, send: SendRequest) -> None:
    async def main() -> None:
        async with (
            listening() as listener,
            HttpTransport(AddressPolicy(), lookup=Names([address])) as transport,
        ):
            for name in ("agent.example", "agent.example.", "AGENT.example"):
                await refusal(transport, f"http://{name}:{listener.port}/", send)
        assert listener.reached == []

    uvloop.run(main())


def test_what_is_forbidden_has_a_code_of_its_own() -> None:
    async def main() -> None:
        async with HttpTransport(AddressPolicy(), lookup=Names(["127.0.0.1"])) as transport:
            for host in ("127.0.0.1", "agent.example", "[::1]", "169.254.169.254"):
                assert (await refusal(transport, f"http://{host}/")).code == "agent_address_forbidden"
            for host in ("127.1", "2130706433", "user@127.0.0.1", " 127.0.0.1"):
                assert (await refusal(transport, f"http://{host}/")).code == "agent_url_invalid"

    uvloop.run(main())


@pytest.mark.parametrize(
    "scheme", ["ftp", "file", "unix", "http+unix", "gopher", "ws", "javascript", "npipe"]
)
@every_request_kind
def test_other_schemes_are_refused(scheme: str, send: SendRequest) -> None:
    async def main() -> None:
        async with HttpTransport(AddressPolicy(allow_loopback=True)) as transport:
            await refusal(transport, f"{scheme}://127.0.0.1/x", send)

    uvloop.run(main())


@every_request_kind
def test_only_the_allowed_ones_of_several_addresses_are_reached(send: SendRequest) -> None:
    async def main() -> None:
        names = Names(["127.0.0.2", "127.0.0.1", "10.0.0.1"])
        policy = AddressPolicy(["127.0.0.1/32"])
        async with listening() as listener, HttpTransport(policy, lookup=names) as transport:
            for _ in range(3):
                await send(transport, f"http://agent.example:{listener.port}/")
        assert listener.reached == ["127.0.0.1"] * 3

    uvloop.run(main())


@every_request_kind
@pytest.mark.parametrize(
    "later", ["127.0.0.2", *(address for address in RESOLVED if "127.0.0.1" not in address)]
)
def test_a_name_that_is_bound_to_another_address_later_gains_nothing(later: str, send: SendRequest) -> None:
    async def main() -> None:
        names = Names(["127.0.0.1"], [later])
        async with (
            listening() as first,
            listening() as second,
            HttpTransport(AddressPolicy(["127.0.0.1/32"]), lookup=names) as transport,
        ):
            await send(transport, f"http://agent.example:{first.port}/")
            # Looked up once, and what was checked is what was reached.
            assert (names.asked, first.reached) == (["agent.example"], ["127.0.0.1"])
            await refusal(transport, f"http://agent.example:{second.port}/", send)
        assert second.reached == []

    uvloop.run(main())


@every_request_kind
def test_a_name_that_changes_with_every_question_reaches_what_is_allowed_and_nothing_else(
    send: SendRequest,
) -> None:
    turns = 10

    async def main() -> None:
        names = Names(*[["127.0.0.1"], ["127.0.0.2"]] * turns)
        async with (
            listening() as listener,
            HttpTransport(AddressPolicy(["127.0.0.1/32"]), lookup=names) as transport,
        ):
            # Another name each time, so that every one is looked up.
            urls = [f"http://a{number}.example:{listener.port}/" for number in range(2 * turns)]
            results = [await asyncio.gather(send(transport, url), return_exceptions=True) for url in urls]
        assert len(names.asked) == 2 * turns
        assert sum(isinstance(result, TransportError) for (result,) in results) == turns
        assert listener.reached == ["127.0.0.1"] * turns

    uvloop.run(main())


@every_request_kind
def test_a_proxy_of_the_environment_is_not_asked(send: SendRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with (
            listening() as proxy,
            listening() as agent,
            HttpTransport(AddressPolicy(allow_loopback=True)) as transport,
        ):
            for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
                for variable in (name, name.lower()):
                    monkeypatch.setenv(variable, f"http://127.0.0.1:{proxy.port}")
            await send(transport, f"http://127.0.0.1:{agent.port}/")
        assert (proxy.reached, agent.reached) == ([], ["127.0.0.1"])

    uvloop.run(main())
