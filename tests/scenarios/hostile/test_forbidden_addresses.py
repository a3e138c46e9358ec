"""Every way to write or resolve to an address that must not be called: not one connection is made."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import pytest
import uvloop

from trunkline.bridge.transports.base import TransportError
from trunkline.bridge.transports.guard import AddressPolicy
from trunkline.bridge.transports.https import HttpTransport

# Nothing here has a store or a broker.
pytestmark = pytest.mark.embedded_only

AMPLE = 60.0
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
        await reader.readuntil(b"{}")
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
    """A name server that gives its answers one after the other, the last one for ever."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        del port
        self.asked.append(host)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


async def refusal(transport: HttpTransport, url: str) -> TransportError:
    with pytest.raises(TransportError) as caught:
        await transport.post(url, b"{}", {}, AMPLE)
    assert not caught.value.sent
    with pytest.raises(TransportError) as again:
        await transport.get(url, {}, AMPLE)
    assert again.value.code == caught.value.code
    return caught.value


def test_no_way_to_write_a_forbidden_address_leads_to_a_connection() -> None:
    async def main() -> None:
        names = Names(["127.0.0.1"])
        async with listening() as listener, HttpTransport(AddressPolicy(), lookup=names) as transport:
            for host in WRITTEN_OUT:
                error = await refusal(transport, f"http://{host}:{listener.port}/")
                assert error.code in {"agent_address_forbidden", "agent_url_invalid"}, host
        assert listener.reached == []
        assert names.asked == []

    assert len(WRITTEN_OUT) >= 60
    uvloop.run(main())


@pytest.mark.parametrize("address", RESOLVED)
def test_a_name_that_leads_to_a_forbidden_address_is_refused(address: str) -> None:
    async def main() -> None:
        async with (
            listening() as listener,
            HttpTransport(AddressPolicy(), lookup=Names([address])) as transport,
        ):
            for name in ("agent.example", "agent.example.", "AGENT.example"):
                error = await refusal(transport, f"http://{name}:{listener.port}/")
                assert error.code == "agent_address_forbidden"
        assert listener.reached == []

    uvloop.run(main())


@pytest.mark.parametrize(
    "scheme", ["ftp", "file", "unix", "http+unix", "gopher", "ws", "javascript", "npipe"]
)
def test_other_schemes_are_refused(scheme: str) -> None:
    async def main() -> None:
        async with HttpTransport(AddressPolicy(allow_loopback=True)) as transport:
            assert (await refusal(transport, f"{scheme}://127.0.0.1/x")).code == "agent_url_invalid"

    uvloop.run(main())


def test_only_the_allowed_ones_of_several_addresses_are_reached() -> None:
    async def main() -> None:
        names = Names(["127.0.0.2", "127.0.0.1", "10.0.0.1"])
        policy = AddressPolicy(["127.0.0.1/32"])
        async with listening() as listener, HttpTransport(policy, lookup=names) as transport:
            for _ in range(3):
                await transport.post(f"http://agent.example:{listener.port}/", b"{}", {}, AMPLE)
        assert set(listener.reached) == {"127.0.0.1"}

    uvloop.run(main())


def test_a_name_that_is_bound_to_another_address_later_gains_nothing() -> None:
    async def main() -> None:
        names = Names(["127.0.0.1"], ["127.0.0.2"])
        async with (
            listening() as first,
            listening() as second,
            HttpTransport(AddressPolicy(["127.0.0.1/32"]), lookup=names) as transport,
        ):
            await transport.post(f"http://agent.example:{first.port}/", b"{}", {}, AMPLE)
            # Looked up once, and what was checked is what was reached.
            assert (names.asked, first.reached) == (["agent.example"], ["127.0.0.1"])
            error = await refusal(transport, f"http://agent.example:{second.port}/")
        assert error.code == "agent_address_forbidden"
        assert second.reached == []

    uvloop.run(main())
