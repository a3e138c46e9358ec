"""Runs that are started by records: each once, whatever is delivered how often, and nothing is lost on the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from trunkline.errors import Unavailable
from trunkline.jsontypes import encode
from trunkline.messages import BrokerRecord
from trunkline.services.messaging.start_commands import StartCommandConsumer
from trunkline.settings import load_settings
from trunkline.stores.base import Store, Transaction
from trunkline.telemetry.metrics import Metrics
from trunkline.telemetry.traces import Traces
from trunkline.testing import RunningSystem, ScriptedAgent, running_system, simple_success
from trunkline.wiring import open_store

pytestmark = pytest.mark.anyio

WORKFLOW = """
name: greet
input: {type: object, required: [name]}
steps:
  only: {agent: Greeter}
"""


class Arrivals:
    """A source whose records a test puts there."""

    failure: str | None = None

    def __init__(self) -> None:
        self._waiting: list[BrokerRecord] = []
        self._notify: Callable[[], None] = lambda: None
        self.settled: list[BrokerRecord] = []
        self.changed = asyncio.Event()

    def put(self, *values: object, key: bytes | None = None) -> None:
        for value in values:
            text = value if isinstance(value, bytes) else encode(value)
            offset = len(self._waiting) + len(self.settled)
            self._waiting.append(
                BrokerRecord(topic="trunkline.commands", partition=0, offset=offset, key=key, value=text)
            )
        self._notify()

    def again(self, records: Sequence[BrokerRecord]) -> None:
        """As after a crash before the offsets were committed."""
        self._waiting.extend(records)
        self._notify()

    def waiting(self, limit: int) -> Sequence[BrokerRecord]:
        return self._waiting[:limit]

    def settle(self, records: Sequence[BrokerRecord]) -> None:
        self._waiting = [record for record in self._waiting if record not in records]
        self.settled.extend(records)
        self.changed.set()

    def on_arrival(self, notify: Callable[[], None]) -> None:
        self._notify = notify

    async def all_settled(self) -> None:
        while self._waiting:
            self.changed.clear()
            await self.changed.wait()


@asynccontextmanager
async def taking(
    system: RunningSystem, data: Path, wrap: Callable[[Store], Store] = lambda store: store
) -> AsyncGenerator[Arrivals]:
    arrivals = Arrivals()
    stopping = asyncio.Event()
    async with (
        open_store(load_settings({"data": data}), allow_in_use=True) as store,
        asyncio.TaskGroup() as group,
    ):
        commands = StartCommandConsumer(arrivals, system.embedded.api.runs, wrap(store), Metrics(), Traces())
        group.create_task(commands.run(stopping))
        try:
            yield arrivals
        finally:
            stopping.set()


@pytest.fixture
async def greeting(tmp_path: Path) -> AsyncGenerator[RunningSystem]:
    async with (
        running_system(tmp_path / "data") as system,
        ScriptedAgent(simple_success({"text": "hello"})) as agent,
    ):
        await system.register("Greeter", agent.url, protocol="simple-a2a")
        await system.save(WORKFLOW)
        yield system


async def test_a_command_starts_a_run(greeting: RunningSystem, tmp_path: Path) -> None:
    async with taking(greeting, tmp_path / "data") as arrivals:
        arrivals.put({"workflow": "greet", "input": {"name": "Ada"}, "correlation_id": "c-1"}, key=b"k")
        await arrivals.all_settled()
        (run,) = await greeting.items("/runs")
        run = await greeting.wait_for(str(run["id"]))
    assert (run["status"], run["input"], run["correlation_id"]) == ("COMPLETED", {"name": "Ada"}, "c-1")


async def test_a_record_that_comes_again_starts_nothing(greeting: RunningSystem, tmp_path: Path) -> None:
    command = {"workflow": "greet", "input": {"name": "Ada"}}
    async with taking(greeting, tmp_path / "data") as arrivals:
        arrivals.put(command, key=b"order-1")
        arrivals.put(command)
        await arrivals.all_settled()
        arrivals.again(arrivals.settled.copy())
        arrivals.put(command, key=b"order-1")
        await arrivals.all_settled()
        assert len(await greeting.items("/runs")) == 2
        # The same key at the other door is the same order.
        run_id = await greeting.start("greet", {"name": "Ada"}, {"Idempotency-Key": "order-1"})
        assert run_id in [run["id"] for run in await greeting.items("/runs")]
        assert await greeting.items("/dead-letters") == []


async def test_what_cannot_become_a_run_is_a_dead_letter_with_its_reason(
    greeting: RunningSystem, tmp_path: Path
) -> None:
    good = {"workflow": "greet", "input": {"name": "Ada"}}
    async with taking(greeting, tmp_path / "data") as arrivals:
        arrivals.put(good, b"no json", {"workflow": "none"}, {"workflow": "greet", "input": {}}, good)
        arrivals.put({"workflow": "greet", "input": {"name": "Bob"}}, key=b"order-1")
        await arrivals.all_settled()
        arrivals.put({"workflow": "greet", "input": {"name": "Eve"}}, key=b"order-1")
        await arrivals.all_settled()
    assert len(await greeting.items("/runs")) == 3
    reasons = [str(letter["reason"]) for letter in await greeting.items("/dead-letters")]
    for expected in (
        "The value is not a valid command",
        "none",
        "does not match the input schema",
        "with a different request",
    ):
        assert [reason for reason in reasons if expected in reason], (expected, reasons)
    assert len(reasons) == 4


class UnavailableOnce:
    """A store that cannot be reached the first time that something is to be written."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.was_away = False

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        if not self.was_away:
            self.was_away = True
            raise Unavailable("The store is away.")
        return self._store.transaction()


async def test_a_store_that_is_away_loses_nothing(greeting: RunningSystem, tmp_path: Path) -> None:
    async with taking(greeting, tmp_path / "data", UnavailableOnce) as arrivals:  # pyright: ignore[reportArgumentType] - the rest of it is the store's own
        arrivals.put(b"no json", {"workflow": "greet", "input": {"name": "Ada"}})
        await arrivals.all_settled()
    assert len(await greeting.items("/dead-letters")) == 1
    assert len(await greeting.items("/runs")) == 1
