"""
The points at which a life can end, and the seams that end it there.

A point counts only when it carries something: an idle turn of the commit loop is not an occurrence, so the n-th
occurrence is the same moment in every life.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence, Sized
from contextlib import asynccontextmanager
from typing import cast

from trunkline.bridge.transports.base import Transport
from trunkline.brokers.base import Broker, TaskMessage
from trunkline.messages import AgentResult
from trunkline.protocols.base import AgentAnswer
from trunkline.stores.base import Store, Transaction
from trunkline.wiring import Seams

# What a shell says of a process that was killed with -9.
KILLED = 137

# Inside a transaction: whatever was written is never committed.
IN_TRANSACTION = (
    "insert_runs",
    "put_inbox",
    "claim_woken_runs",
    "write_transitions",
    "put_tasks",
    "claim_tasks",
    "write_answers",
    "put_exchanges",
    "publish_tasks.before",
    "publish_tasks.after",
    "publish_results.before",
    "publish_results.after",
)
TIMER_POINTS = ("take_due_timers",)
STOP_POINTS = ("stop_tasks",)
# At the start, in a transaction of its own, and after its commit.
RECOVERY_POINTS = ("reclaim_tasks", "reclaimed")
# Where something leaves the process, or comes in.
EDGE_POINTS = ("commit.before", "commit.after", "post.before", "post.after")
# These two belong to the agents, which end the life from outside.
AGENT_POINTS = ("agent.received", "agent.answered")

_WATCHED = frozenset({*IN_TRANSACTION, *TIMER_POINTS, *STOP_POINTS, "reclaim_tasks"})
_WRITING = _WATCHED - {"claim_woken_runs", "reclaim_tasks"}


class Fuse:
    """Ends the process, without any farewell, at the n-th occurrence of a point."""

    def __init__(self, point: str | None, occurrence: int) -> None:
        self._point = point
        self._left = occurrence

    def at(self, point: str) -> None:
        if point == self._point:
            self._left -= 1
            if self._left == 0:
                os._exit(KILLED)


def fused(fuse: Fuse) -> Seams:
    return Seams(
        store=lambda store: cast("Store", _FusedStore(store, fuse)),
        broker=lambda broker: _FusedBroker(broker, fuse),
        transport=lambda transport: _FusedTransport(transport, fuse),
    )


class _FusedStore:
    """Everything but `transaction` goes through as it is."""

    def __init__(self, inner: Store, fuse: Fuse) -> None:
        self._inner = inner
        self._fuse = fuse

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Transaction]:
        async with self._inner.transaction() as tx:
            watched = _FusedTransaction(tx, self._fuse)
            yield cast("Transaction", watched)
            if watched.has_written:
                self._fuse.at("commit.before")
        if watched.has_written:
            self._fuse.at("commit.after")
        if watched.has_reclaimed:
            self._fuse.at("reclaimed")


class _FusedTransaction:
    def __init__(self, inner: Transaction, fuse: Fuse) -> None:
        self._inner = inner
        self._fuse = fuse
        self.has_written = False
        self.has_reclaimed = False

    def __getattr__(self, name: str) -> object:
        attribute: object = getattr(self._inner, name)
        if name not in _WATCHED:
            return attribute
        method = cast("Callable[..., Awaitable[object]]", attribute)

        async def watched(*arguments: object) -> object:
            answer = await method(*arguments)
            self.has_reclaimed = self.has_reclaimed or name == "reclaim_tasks"
            if name == "reclaim_tasks" or _carries(arguments, answer):
                self.has_written = self.has_written or name in _WRITING
                self._fuse.at(name)
            return answer

        return watched


def _carries(arguments: tuple[object, ...], answer: object) -> bool:
    """True when a list goes in, or something comes out."""
    batches = (given for given in arguments if isinstance(given, Sized) and not isinstance(given, str))
    return bool(answer) or any(len(batch) > 0 for batch in batches)


class _FusedBroker:
    def __init__(self, inner: Broker[Transaction], fuse: Fuse) -> None:
        self._inner = inner
        self._fuse = fuse

    @property
    def hands_over_in_transaction(self) -> bool:
        return self._inner.hands_over_in_transaction

    async def publish_tasks(self, tx: Transaction, messages: Sequence[TaskMessage]) -> None:
        self._fuse.at("publish_tasks.before")
        await self._inner.publish_tasks(tx, messages)
        self._fuse.at("publish_tasks.after")

    async def publish_results(self, tx: Transaction, results: Sequence[AgentResult]) -> None:
        self._fuse.at("publish_results.before")
        await self._inner.publish_results(tx, results)
        self._fuse.at("publish_results.after")


class _FusedTransport:
    def __init__(self, inner: Transport, fuse: Fuse) -> None:
        self._inner = inner
        self._fuse = fuse

    async def post(self, url: str, body: bytes, headers: Mapping[str, str], timeout: float) -> AgentAnswer:
        self._fuse.at("post.before")
        answer = await self._inner.post(url, body, headers, timeout)
        self._fuse.at("post.after")
        return answer

    async def get(self, url: str, headers: Mapping[str, str], timeout: float) -> AgentAnswer:
        self._fuse.at("get.before")
        answer = await self._inner.get(url, headers, timeout)
        self._fuse.at("get.after")
        return answer
