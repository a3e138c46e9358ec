"""
Event sources: a consumer for each topic of other systems, and the parts of the executor's loop that take its records.

Each has a consumer group of its own. So a topic that is missing, slow or full of unreadable records holds up no other.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from trunkline.brokers.base import ConsumerGroup, Lag
from trunkline.services.commit_loop import CommitLoop, CommitPart
from trunkline.services.events.intake import EventIntake
from trunkline.services.events.sources import EventSource
from trunkline.services.messaging.deliveries import Deliveries
from trunkline.services.messaging.event_deliveries import MappedRecord, event_deliveries
from trunkline.wiring.process_context import ProcessContext
from trunkline.wiring.stores import ExportedStore

if TYPE_CHECKING:
    from trunkline.brokers.kafka import KafkaConnection, KafkaLag

# For each source: enough for some turns, and little where there are many sources.
_MAX_BUFFERED_RECORDS = 1_000
_MAX_BUFFERED_BYTES = 8 * 1024 * 1024


class SourceConsumers:
    """Of a process with the executor's role. Without sources, it costs nothing and imports nothing."""

    def __init__(self, context: ProcessContext, stack: AsyncExitStack) -> None:
        self._context = context
        self._stack = stack
        self._sources = context.event_sources
        self._parts: list[tuple[EventSource, Deliveries[MappedRecord]]] = []
        self._request_leave: list[Callable[[], None]] = []
        self._lags: dict[str, KafkaLag] = {}

    async def parts(self, loop: CommitLoop, intake: EventIntake) -> Sequence[CommitPart]:
        """They come after the intake in a turn, and before the driver."""
        if not self._sources or isinstance(self._context.store, ExportedStore):
            return []
        # Its library is an extra.
        from trunkline.brokers.kafka import SESSION, BufferCapacity, open_source  # noqa: PLC0415

        context = self._context
        session: timedelta = context.interceptors.timeouts.session or SESSION
        for source in self._sources:
            opened = await self._stack.enter_async_context(
                open_source(
                    self._connection(source),
                    group=self._group(source).name,
                    topics=[source.topic],
                    capacity=BufferCapacity(_MAX_BUFFERED_RECORDS, _MAX_BUFFERED_BYTES),
                    session=session,
                )
            )
            self._request_leave.append(opened.request_leave)
            records = context.interceptors.source(opened)
            records.on_arrival(loop.wake)
            part = event_deliveries(records, source, intake, context.metrics, context.changes)
            self._parts.append((source, part))
        return [part for _, part in self._parts]

    @asynccontextmanager
    async def leaving(self) -> AsyncGenerator[None]:
        """At the end of the block, all of them leave at the same time, because each takes a moment."""
        try:
            yield
        finally:
            for leave in self._request_leave:
                leave()

    def warnings(self) -> Sequence[str]:
        """Why sources bring nothing at present. It stops nothing else, so the process is ready."""
        return [
            f"Event source {source.topic}: {part.failure}"
            for source, part in self._parts
            if part.failure is not None
        ]

    async def lags(self) -> Sequence[Lag]:
        if not self._sources:
            return []
        from trunkline.brokers.kafka import KafkaLag  # noqa: PLC0415 - as above

        found: list[Lag] = []
        for servers in dict.fromkeys(source.servers for source in self._sources):
            sources = [source for source in self._sources if source.servers == servers]
            lag = self._lags.setdefault(servers or "", KafkaLag(self._connection(sources[0])))
            found += await lag.query([self._group(source) for source in sources])
        return found

    def _connection(self, source: EventSource) -> KafkaConnection:
        from trunkline.wiring.kafka_messaging import kafka_connection  # noqa: PLC0415 - as above

        return kafka_connection(self._context.settings, source.servers)

    def _group(self, source: EventSource) -> ConsumerGroup:
        return ConsumerGroup(
            f"{self._context.settings.kafka_group}.events.{source.topic}", source.topic, "executor"
        )
