"""
The points at which a process can be killed, and the interceptors that kill it there.

A point counts only when it carries something: an idle turn of the commit loop is not an occurrence, so the n-th
occurrence is the same moment in every life.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence, Sized
from contextlib import asynccontextmanager
from typing import cast

from trunkline.agents.authentication.credentials import TlsConfig
from trunkline.brokers.base import Broker, Producer, RecordSource, TaskMessage, Undelivered
from trunkline.errors import Unavailable
from trunkline.messages import AgentResult, BrokerRecord, OutgoingMessage
from trunkline.protocols.base import AgentAnswer
from trunkline.stores.base import Store, Transaction
from trunkline.transports.base import StreamedAnswer, StreamLimits, Transport
from trunkline.wiring import Interceptors, LivenessTimeouts

# What a shell says of a process that was killed with -9.
KILLED = 137

# Inside a transaction: whatever was written is never committed.
IN_TRANSACTION = (
    "runs.insert",
    "input_queue.put",
    "input_queue.claim_runs",
    "runs.write_transitions",
    "tasks.put",
    "tasks.claim",
    "tasks.write_answers",
    "exchanges.put",
    "publish_tasks.before",
    "publish_tasks.after",
    "publish_results.before",
    "publish_results.after",
)
# The same, where messages travel: the outbox and its relay, sent tasks that are remembered, leases.
TRAVEL_POINTS = (
    "outbox.put",
    "outbox.reserve",
    "outbox.delete",
    "dispatches.put",
    "dispatches.settle",
    "dispatches.take_due",
    "leases.hold",
)
# Where a process takes what another one has not sent before it died.
TAKEOVER_POINTS = ("outbox.take",)
# Who commits what, and where it can end: inside, after, or with a commit that nobody is told of.
COMMITS = ("executor", "bridge", "relay", "lease")
COMMIT_POINTS = tuple(
    f"{who}.commit.{moment}" for who in COMMITS for moment in ("before", "after", "doubted")
)
# Between the outbox and the topics, and between the topics and the offsets.
BROKER_POINTS = ("produce.before", "produce.some", "produce.after", "arrive", "settle.before", "settle.after")
TIMER_POINTS = ("timers.fire_due",)
# A scheduled firing.
TRIGGER_POINTS = ("triggers.claim_due", "triggers.put_firings", "triggers.update")
# What has happened starts a run.
# A run that flow control holds back.
GATE_POINTS = ("start_queue.put", "start_queue.claim", "start_queue.runs_ended")
# A page of a bulk operation.
JOB_POINTS = ("jobs.put", "jobs.claim", "jobs.write", "runs.delete_lowest")
PENDING_FIRING_POINTS = ("triggers.note_run_ends", "triggers.take_pending")
# A change is reported, and its delivery is sent.
SUBSCRIPTION_POINTS = (
    "subscriptions.put_deliveries",
    "callbacks.put",
    "callbacks.claim",
    "subscriptions.note_attempts",
    "callbacks.settle",
)
# A caller's task has a push notification config, its question is answered, and its updates are sent.
PUSH_POINTS = (
    "push_configs.put",
    "callbacks.put",
    "callbacks.claim",
    "push_configs.note",
    "callbacks.settle",
    "published_tasks.add_follow_ups",
)
EVENT_POINTS = ("received_events.put", "received_events.await_events", "received_events.stop_awaiting")
# A task for people is in their inboxes, and they comment on it.
HUMAN_TASK_POINTS = ("human_tasks.list", "human_tasks.unlist", "human_tasks.comment")
# An output is looked up, and kept for other steps.
CACHE_POINTS = ("output_cache.claim", "output_cache.keep")
STOP_POINTS = ("tasks.stop",)
# Only where an agent has a breaker.
BREAKER_POINTS = ("agents.record_calls",)
# At the start, in a transaction of its own, and after its commit.
RECOVERY_POINTS = ("tasks.reclaim", "reclaimed")
# Where something leaves the process, or comes in.
EDGE_POINTS = ("commit.before", "commit.after", "post.before", "post.after")
# Before a stream is asked for, when its head has come, and when it is over.
STREAM_POINTS = ("stream.before", "stream.begun", "stream.after")
# These two belong to the agents, which end the life from outside.
AGENT_POINTS = ("agent.received", "agent.answered")

_WATCHED = frozenset(
    {
        *IN_TRANSACTION,
        *TRAVEL_POINTS,
        *TAKEOVER_POINTS,
        *TIMER_POINTS,
        *TRIGGER_POINTS,
        *PENDING_FIRING_POINTS,
        *SUBSCRIPTION_POINTS,
        *PUSH_POINTS,
        *GATE_POINTS,
        *JOB_POINTS,
        *EVENT_POINTS,
        *HUMAN_TASK_POINTS,
        *CACHE_POINTS,
        *STOP_POINTS,
        *BREAKER_POINTS,
        "tasks.reclaim",
    }
)
_WATCHED_GROUPS = frozenset(point.partition(".")[0] for point in _WATCHED)
# Whether or not they carry anything.
_ALWAYS = frozenset({"tasks.reclaim", "leases.hold"})
_WRITING = _WATCHED - {"input_queue.claim_runs", "triggers.claim_due", "tasks.reclaim"}
# Whose transaction it is, by what is done in it.
_ACTORS = {
    **dict.fromkeys(
        (
            "runs.insert",
            "input_queue.put",
            "runs.write_transitions",
            "timers.fire_due",
            *EVENT_POINTS,
            *CACHE_POINTS,
        ),
        "executor",
    ),
    **dict.fromkeys(("tasks.put", "tasks.claim", "tasks.write_answers", "tasks.stop"), "bridge"),
    # In a turn of the others it comes last.
    **dict.fromkeys(("outbox.take", "outbox.delete"), "relay"),
    "leases.hold": "lease",
}


def point_in(settings: Mapping[str, str], point: str) -> str:
    """The point in a mode: where roles have loops of their own, the commits that count are those of the executor."""
    return f"executor.{point}" if settings and point.startswith("commit.") else point


class CrashInjector:
    """Ends the process, without any cleanup, at the n-th occurrence of a point."""

    def __init__(self, point: str | None, occurrence: int) -> None:
        self._point = point
        self._left = occurrence

    def at(self, point: str) -> None:
        if self.is_due(point):
            os._exit(KILLED)

    def is_due(self, point: str) -> bool:
        """Whether this is the occurrence; what is to happen then is up to the caller."""
        if point == self._point:
            self._left -= 1
            return self._left == 0
        return False


def with_crash_points(injector: CrashInjector, timeouts: LivenessTimeouts | None = None) -> Interceptors:
    return Interceptors(
        timeouts=timeouts or LivenessTimeouts(),
        producer=lambda producer: _CrashingProducer(producer, injector),
        source=lambda source: _CrashingSource(source, injector),
        store=lambda store: cast("Store", _CrashingStore(store, injector)),
        broker=lambda broker: _CrashingBroker(broker, injector),
        transport=lambda transport: _CrashingTransport(transport, injector),
    )


class _CrashingStore:
    """Everything but `transaction` goes through as it is."""

    def __init__(self, inner: Store, injector: CrashInjector) -> None:
        self._inner = inner
        self._injector = injector

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    @asynccontextmanager
    async def transaction(self, *, durable: bool = True) -> AsyncGenerator[Transaction]:
        async with self._inner.transaction(durable=durable) as tx:
            watched = _CrashingTransaction(tx, self._injector)
            yield cast("Transaction", watched)
            if watched.has_written:
                self._injector.at("commit.before")
            if watched.actor is not None:
                self._injector.at(f"{watched.actor}.commit.before")
        if watched.has_written:
            self._injector.at("commit.after")
        if watched.actor is not None:
            self._injector.at(f"{watched.actor}.commit.after")
            if self._injector.is_due(f"{watched.actor}.commit.doubted"):
                raise Unavailable("The connection was lost during the commit, which has happened.")
        if watched.has_reclaimed:
            self._injector.at("reclaimed")


class _CrashingTransaction:
    def __init__(self, inner: Transaction, injector: CrashInjector) -> None:
        self._inner = inner
        self._injector = injector
        self.has_written = False
        self.has_reclaimed = False
        self.actor: str | None = None

    def __getattr__(self, name: str) -> object:
        attribute: object = getattr(self._inner, name)
        return _CrashingGroup(attribute, name, self) if name in _WATCHED_GROUPS else attribute

    def reached(self, point: str, arguments: tuple[object, ...], answer: object) -> None:
        self.has_reclaimed = self.has_reclaimed or point == "tasks.reclaim"
        if point in _ALWAYS or _carries(arguments, answer):
            self.has_written = self.has_written or point in _WRITING
            self.actor = self.actor or _ACTORS.get(point)
            self._injector.at(point)


class _CrashingGroup:
    """A group of a transaction, like `tasks`."""

    def __init__(self, inner: object, name: str, transaction: _CrashingTransaction) -> None:
        self._inner = inner
        self._name = name
        self._transaction = transaction

    def __getattr__(self, name: str) -> object:
        attribute: object = getattr(self._inner, name)
        point = f"{self._name}.{name}"
        if point not in _WATCHED:
            return attribute
        method = cast("Callable[..., Awaitable[object]]", attribute)

        async def watched(*arguments: object, **more: object) -> object:
            answer = await method(*arguments, **more)
            self._transaction.reached(point, arguments, answer)
            return answer

        return watched


def _carries(arguments: tuple[object, ...], answer: object) -> bool:
    """True when a list goes in, or something comes out."""
    batches = (given for given in arguments if isinstance(given, Sized) and not isinstance(given, str))
    return bool(answer) or any(len(batch) > 0 for batch in batches)


class _CrashingBroker:
    def __init__(self, inner: Broker[Transaction], injector: CrashInjector) -> None:
        self._inner = inner
        self._injector = injector

    @property
    def hands_over_in_transaction(self) -> bool:
        return self._inner.hands_over_in_transaction

    async def publish_tasks(self, tx: Transaction, messages: Sequence[TaskMessage]) -> None:
        self._injector.at("publish_tasks.before")
        await self._inner.publish_tasks(tx, messages)
        self._injector.at("publish_tasks.after")

    async def publish_results(self, tx: Transaction, results: Sequence[AgentResult]) -> None:
        self._injector.at("publish_results.before")
        await self._inner.publish_results(tx, results)
        self._injector.at("publish_results.after")


class _CrashingProducer:
    def __init__(self, inner: Producer, injector: CrashInjector) -> None:
        self._inner = inner
        self._injector = injector

    async def send(self, messages: Sequence[OutgoingMessage]) -> list[Undelivered]:
        self._injector.at("produce.before")
        if self._injector.is_due("produce.some"):
            await self._inner.send(messages[: (len(messages) + 1) // 2])
            os._exit(KILLED)
        undelivered = await self._inner.send(messages)
        self._injector.at("produce.after")
        return undelivered


class _CrashingSource:
    def __init__(self, inner: RecordSource, injector: CrashInjector) -> None:
        self._inner = inner
        self._injector = injector

    @property
    def failure(self) -> str | None:
        return self._inner.failure

    def waiting(self, limit: int) -> Sequence[BrokerRecord]:
        records = self._inner.waiting(limit)
        # One is asked for to see whether there is any.
        if records and limit > 1:
            self._injector.at("arrive")
        return records

    def settle(self, records: Sequence[BrokerRecord]) -> None:
        if records:
            self._injector.at("settle.before")
        self._inner.settle(records)
        if records:
            self._injector.at("settle.after")

    def on_arrival(self, notify: Callable[[], None]) -> None:
        self._inner.on_arrival(notify)


class _CrashingTransport:
    def __init__(self, inner: Transport, injector: CrashInjector) -> None:
        self._inner = inner
        self._injector = injector

    async def post(
        self, url: str, body: bytes, headers: Mapping[str, str], timeout: float, tls: TlsConfig | None = None
    ) -> AgentAnswer:
        self._injector.at("post.before")
        answer = await self._inner.post(url, body, headers, timeout, tls)
        self._injector.at("post.after")
        return answer

    async def get(
        self, url: str, headers: Mapping[str, str], timeout: float, tls: TlsConfig | None = None
    ) -> AgentAnswer:
        self._injector.at("get.before")
        answer = await self._inner.get(url, headers, timeout, tls)
        self._injector.at("get.after")
        return answer

    @asynccontextmanager
    async def stream(
        self,
        url: str,
        body: bytes | None,
        headers: Mapping[str, str],
        limits: StreamLimits,
        tls: TlsConfig | None = None,
    ) -> AsyncGenerator[StreamedAnswer]:
        self._injector.at("stream.before")
        async with self._inner.stream(url, body, headers, limits, tls) as answer:
            self._injector.at("stream.begun")
            yield answer
        self._injector.at("stream.after")
