"""The pool of connections to agents: how many there are, which one is used, and when one is given up."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from contextlib import suppress

import pytest
import uvloop
from tests.scenarios.hostile.agents import LOOPBACK, OK, RawAgent, good, running

from trunkline.protocols.base import AgentAnswer
from trunkline.transports.base import TransportError
from trunkline.transports.https import HttpTransport

# Nothing here has a store or a broker.
pytestmark = pytest.mark.embedded_only

AMPLE = 60.0
SHORT = 0.3


class HoldingAgent:
    """An agent that answers when it may, and knows how many it has had at once."""

    def __init__(self) -> None:
        self.may_answer = asyncio.Event()
        self.busy = self.most = 0
        self.came = asyncio.Event()

    async def script(
        self, agent: RawAgent, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while True:
            await agent.request(reader)
            self.busy += 1
            self.most = max(self.most, self.busy)
            self.came.set()
            await self.may_answer.wait()
            self.busy -= 1
            writer.write(OK)


async def call(transport: HttpTransport, url: str, timeout: float = AMPLE) -> AgentAnswer:
    return await transport.post(url, b"{}", {}, timeout)


def test_no_more_connections_are_used_than_allowed_and_everyone_gets_a_turn() -> None:
    async def main() -> None:
        holding = HoldingAgent()
        async with running(holding.script) as agent, HttpTransport(LOOPBACK, limit=2) as transport:
            calls = [asyncio.create_task(call(transport, agent.url)) for _ in range(7)]
            while holding.busy < 2:
                holding.came.clear()
                await holding.came.wait()
            holding.may_answer.set()
            answers = await asyncio.gather(*calls)
            assert [answer.status for answer in answers] == [200] * 7
            assert (holding.most, agent.connections) == (2, 2)

    uvloop.run(main())


def test_who_gives_up_waiting_for_a_connection_leaves_the_turn_to_the_next() -> None:
    async def main() -> None:
        holding = HoldingAgent()
        async with running(holding.script) as agent, HttpTransport(LOOPBACK, limit=1) as transport:
            first = asyncio.create_task(call(transport, agent.url))
            await holding.came.wait()
            second = asyncio.create_task(call(transport, agent.url))
            third = asyncio.create_task(call(transport, agent.url))
            await asyncio.sleep(0)
            second.cancel()
            holding.may_answer.set()
            assert (await first).status == 200
            assert (await third).status == 200
            assert (await call(transport, agent.url)).status == 200

    uvloop.run(main())


def test_a_call_that_gets_no_connection_in_time_was_not_sent() -> None:
    async def main() -> None:
        holding = HoldingAgent()
        async with running(holding.script) as agent, HttpTransport(LOOPBACK, limit=1) as transport:
            first = asyncio.create_task(call(transport, agent.url))
            await holding.came.wait()
            with pytest.raises(TransportError) as caught:
                await call(transport, agent.url, SHORT)
            assert (caught.value.code, caught.value.sent) == ("agent_unreachable", False)
            holding.may_answer.set()
            await first
            assert len(agent.requests) == 1

    uvloop.run(main())


def test_an_idle_connection_makes_room_for_one_to_another_agent() -> None:
    async def main() -> None:
        async with (
            running(good) as first,
            running(good) as second,
            HttpTransport(LOOPBACK, limit=1) as transport,
        ):
            await call(transport, first.url)
            first.left.clear()
            await call(transport, second.url)
            await first.left.wait()

    uvloop.run(main())


class Addresses:
    def __init__(self, *addresses: str) -> None:
        self._addresses = addresses

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        del host, port
        return self._addresses


def test_an_address_that_does_not_answer_delays_a_call_and_does_not_end_it() -> None:
    async def main() -> None:
        async with running(good) as agent:
            port = int(agent.url.split(":")[2].split("/")[0])
            with socket.socket() as full:
                full.bind(("127.0.0.2", port))
                full.listen(0)
                # It fills the backlog; the kernel lets the next ones wait.
                with socket.create_connection(("127.0.0.2", port)):
                    lookup = Addresses("127.0.0.2", "127.0.0.3", "127.0.0.1")
                    async with HttpTransport(LOOPBACK, lookup=lookup) as transport:
                        for _ in range(2):
                            assert (await call(transport, f"http://agent.example:{port}/")).status == 200

    uvloop.run(main())


def test_of_several_addresses_that_refuse_the_reason_is_given() -> None:
    async def main() -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
            async with HttpTransport(LOOPBACK, lookup=Addresses("127.0.0.1", "127.0.0.2")) as transport:
                with pytest.raises(TransportError) as caught:
                    await call(transport, f"http://agent.example:{port}/")
        assert (caught.value.code, caught.value.sent) == ("agent_unreachable", False)
        assert "refused" in caught.value.message

    uvloop.run(main())


def test_many_calls_to_one_name_look_it_up_once() -> None:
    asked: list[str] = []

    async def lookup(host: str, port: int) -> Sequence[str]:
        del port
        asked.append(host)
        await asyncio.sleep(0)
        return ["127.0.0.1"]

    async def main() -> None:
        async with running(good) as agent, HttpTransport(LOOPBACK, lookup=lookup) as transport:
            url = agent.url.replace("127.0.0.1", "agent.example")
            calls = [asyncio.create_task(call(transport, url)) for _ in range(20)]
            # The one that has begun the lookup gives up; the others do not.
            await asyncio.sleep(0)
            calls[0].cancel()
            with suppress(asyncio.CancelledError):
                await calls[0]
            assert [answer.status for answer in await asyncio.gather(*calls[1:])] == [200] * 19
        assert asked == ["agent.example"]

    uvloop.run(main())
