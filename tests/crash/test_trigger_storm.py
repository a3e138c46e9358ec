"""
Storms: deliveries that are each sent twice, and events that race with the waits for them, while the process is killed.

Scaled down; `full_size.py` runs ten thousand of each.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import aiohttp
import pytest
from tests.crash.client import ServerGone, TrunklineClient
from tests.crash.process_instances import ProcessStarter

from trunkline.jsontypes import JsonObject

pytestmark = pytest.mark.anyio

SIZE = int(os.environ.get("TRUNKLINE_CHAOS_RUNS", "150"))
KILLS = int(os.environ.get("TRUNKLINE_CHAOS_KILLS", "8"))
SEED = int(os.environ.get("TRUNKLINE_CHAOS_SEED", "3"))
AT_A_TIME = 32
Send = Callable[[TrunklineClient, int], Awaitable[object]]


class Storm:
    """Sends each item until it is accepted, to a process that ends again and again."""

    def __init__(
        self,
        starter: ProcessStarter,
        data: Path,
        session: aiohttp.ClientSession,
        settings: Mapping[str, str],
    ) -> None:
        self._settings = settings
        self._starter = starter
        self._data = data
        self._session = session
        self._chance = random.Random(SEED)

    async def start(self, *, is_killed: bool = False) -> TrunklineClient:
        point = ("commit.after", self._chance.randrange(2, 30)) if is_killed else (None, 0)
        life = await self._starter.start(self._data, *point, self._settings)
        url = await life.ready
        # It may have ended before it was ready.
        return TrunklineClient(self._session, url or "http://127.0.0.1:9")

    async def send(self, items: Sequence[int], send: Send) -> None:
        left, kills = list(items), 0
        while left:
            client = await self.start(is_killed=kills < KILLS)
            kills += 1
            self._chance.shuffle(left)
            accepted: set[int] = set()
            await self._send_some(client, left, send, accepted)
            # Those that were accepted are sent a second time at some later time.
            left = [item for item in left if item not in accepted]
            await self._starter.end()

    async def _send_some(
        self, client: TrunklineClient, items: Sequence[int], send: Send, accepted: set[int]
    ) -> None:
        waiting = list(items)

        async def work() -> None:
            while waiting:
                item = waiting.pop()
                try:
                    await send(client, item)
                except ServerGone:
                    waiting.clear()
                else:
                    accepted.add(item)

        await asyncio.gather(*(work() for _ in range(AT_A_TIME)))


async def finished(client: TrunklineClient) -> list[JsonObject]:
    """All runs, once the last one has ended."""
    async with asyncio.timeout(60 + SIZE):
        while True:
            runs = await client.pages("/runs")
            if all(run["status"] == "COMPLETED" for run in runs):
                return runs
            await asyncio.sleep(0.2)


async def test_deliveries_that_are_sent_twice_start_one_run_each(
    tmp_path: Path, starter: ProcessStarter, session: aiohttp.ClientSession, mode_settings: Mapping[str, str]
) -> None:
    storm = Storm(starter, tmp_path / "data", session, mode_settings)
    client = await storm.start()
    await client.call("POST", "/workflows", b"{name: one, steps: {work: {set: {n: '${ input.n }'}}}}")
    trigger: JsonObject = {
        "name": "hook",
        "workflow": "one",
        "webhook": {"verify": {"scheme": "none"}, "rate": "1000000/s"},
        "input": {"n": "${ request.body.n }"},
    }
    webhook = (await client.call("POST", "/triggers", trigger))["webhook"]
    assert isinstance(webhook, dict)
    await starter.end()
    url = str(webhook["url"])

    async def deliver(to: TrunklineClient, item: int) -> None:
        # Each delivery has two items.
        number = item // 2
        await to.raw("POST", url, {"n": number}, {"Idempotency-Key": str(number)})

    await storm.send(range(2 * SIZE), deliver)
    client = await storm.start()
    runs = await finished(client)
    firings = await client.pages("/triggers/hook/firings")
    await starter.end()
    assert len(runs) == SIZE
    assert {str(run["id"]) for run in runs} == {str(firing["run_id"]) for firing in firings}
    assert len(firings) == SIZE


async def test_events_that_race_with_the_waits_for_them_complete_each_of_them(
    tmp_path: Path, starter: ProcessStarter, session: aiohttp.ClientSession, mode_settings: Mapping[str, str]
) -> None:
    storm = Storm(starter, tmp_path / "data", session, mode_settings)
    client = await storm.start()
    wait = "{name: w, steps: {wait: {wait_for: {event: go, key: '${ input.key }'}}}}"
    await client.call("POST", "/workflows", wait.encode())
    await client.call("POST", "/workflows", b"{name: heard, steps: {work: {set: {n: '${ input.n }'}}}}")
    await client.call(
        "POST",
        "/triggers",
        {"name": "t", "workflow": "heard", "event": {"type": "go"}, "input": {"n": "${ event.key }"}},
    )
    await starter.end()

    async def race(to: TrunklineClient, number: int) -> None:
        # An event counts if it arrives after the run was accepted, even before the step begins to wait.
        await to.start("w", str(number))
        await to.call("POST", "/events", {"type": "go", "id": str(number), "key": number})

    await storm.send(range(SIZE), race)
    client = await storm.start()
    runs = await finished(client)
    firings = await client.pages("/triggers/t/firings")
    await starter.end()
    assert Counter(str(run["trigger"]) for run in runs) == {"None": SIZE, "t": SIZE}
    assert Counter(str(firing["outcome"]) for firing in firings) == {"started": SIZE}
