"""
Kafka between executor and bridge: an outbox that a relay empties, and consumers that fill the input queues and tasks.

Also creates and checks the topics that the settings name.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import NamedTuple

import structlog

from trunkline.brokers.base import Broker, ConsumerGroup, Lag, RecordSource, TakeTasks
from trunkline.brokers.kafka import (
    RESEND_AFTER,
    SESSION,
    KafkaBroker,
    KafkaConnection,
    KafkaLag,
    KafkaSource,
    open_producer,
    open_source,
)
from trunkline.brokers.kafka import topics as kafka_topics
from trunkline.executor.input_sources import queue_delivered_results
from trunkline.executor.task_resending import TaskResender
from trunkline.services.commit_loop import CommitLoop, CommitPart
from trunkline.services.messaging.deliveries import result_deliveries, task_deliveries
from trunkline.services.messaging.orphan_messages import OrphanMessages
from trunkline.services.messaging.relay import OutboxSender, Relay
from trunkline.settings import Settings
from trunkline.stores.base import Transaction
from trunkline.telemetry import log_events
from trunkline.wiring.process_context import ProcessContext

log = structlog.stdlib.get_logger()

# Topics rarely change.
_LOOK_AT_TOPICS_EVERY = 60.0


def kafka_connection(settings: Settings, servers: str | None = None) -> KafkaConnection:
    """`servers`: another cluster, with the same security settings."""
    password = settings.kafka_sasl_password
    return KafkaConnection(
        servers=servers or settings.kafka_servers,
        security_protocol=settings.kafka_security_protocol,
        sasl_mechanism=settings.kafka_sasl_mechanism,
        sasl_username=settings.kafka_sasl_username,
        sasl_password=None if password is None else password.get_secret_value(),
        ca_file=settings.kafka_ca_file,
        cert_file=settings.kafka_cert_file,
        key_file=settings.kafka_key_file,
    )


class KafkaMessaging:
    """Opens what the process's own roles need, and nothing for an API alone: that neither sends nor receives."""

    def __init__(self, context: ProcessContext, stack: AsyncExitStack) -> None:
        self._context = context
        self._stack = stack
        self._connection = kafka_connection(context.settings)
        self._lag = KafkaLag(self._connection)
        self._sources: list[RecordSource] = []
        self._request_leave: list[Callable[[], None]] = []
        self._relay: Relay | None = None
        self._warnings: list[str] = []
        timeouts = context.interceptors.timeouts
        self._kafka = KafkaBroker(
            context.settings.topics,
            self._pool_of,
            resend_after=timeouts.resend_after or RESEND_AFTER,
            reply_partition=self._reply_partition,
        )
        self._results: KafkaSource | None = None
        # Counts the batches of tasks: their results are spread over our partitions.
        self._published = 0
        self._session = timeouts.session or SESSION
        self.broker: Broker[Transaction] = context.interceptors.broker(self._kafka)

    async def _pool_of(self, agent: str) -> str | None:
        found = await self._context.agent_cache.get(agent)
        return None if found is None else found.pool

    def _reply_partition(self) -> int | None:
        """One of those that we read ourselves: we have the runs of these tasks in memory."""
        assigned = () if self._results is None else self._results.assigned
        if not assigned:
            return None
        self._published += 1
        return assigned[self._published % len(assigned)]

    async def bridge_parts(self, take: TakeTasks[Transaction], loop: CommitLoop) -> Sequence[CommitPart]:
        source = await self._open(self._bridge_group(self._context.settings.pool), loop.wake)
        context = self._context
        return [task_deliveries(source, take, context.metrics, self._orphan_messages(), context.changes)]

    async def executor_parts(self, loop: CommitLoop) -> Sequence[CommitPart]:
        self._results = await self._enter(self._executor_group())
        source = self._listen(self._results, loop.wake)
        results = result_deliveries(
            source,
            queue_delivered_results,
            self._context.metrics,
            self._orphan_messages(),
            self._context.changes,
        )
        return [results, TaskResender(self._kafka)]

    def _orphan_messages(self) -> OrphanMessages:
        return OrphanMessages(self._context.settings.retention, self._context.metrics)

    async def command_source(self) -> RecordSource | None:
        commands = self._command_group()
        return None if commands is None else await self._open(commands)

    def _bridge_group(self, pool: str | None) -> ConsumerGroup:
        settings = self._context.settings
        name = f"{settings.kafka_group}.bridge" + (f".{pool}" if pool else "")
        return ConsumerGroup(name, settings.topics.tasks_of(pool), "bridge", pool)

    def _executor_group(self) -> ConsumerGroup:
        settings = self._context.settings
        return ConsumerGroup(f"{settings.kafka_group}.executor", settings.results_topic, "executor")

    def _command_group(self) -> ConsumerGroup | None:
        settings = self._context.settings
        if not settings.commands_topic:
            return None
        return ConsumerGroup(f"{settings.kafka_group}.commands", settings.commands_topic, "api")

    async def _open(self, group: ConsumerGroup, notify: Callable[[], None] | None = None) -> RecordSource:
        return self._listen(await self._enter(group), notify)

    async def _enter(self, group: ConsumerGroup) -> KafkaSource:
        opened = await self._stack.enter_async_context(
            open_source(self._connection, group=group.name, topics=[group.topic], session=self._session)
        )
        self._request_leave.append(opened.request_leave)
        return opened

    def _listen(self, opened: KafkaSource, notify: Callable[[], None] | None) -> RecordSource:
        source = self._context.interceptors.source(opened)
        if notify is not None:
            source.on_arrival(notify)
        self._sources.append(source)
        return source

    async def last_parts(self) -> Sequence[CommitPart]:
        return [] if not self._sources else [OutboxSender(await self._opened_relay())]

    async def _opened_relay(self) -> Relay:
        if self._relay is None:
            producer = await self._stack.enter_async_context(open_producer(self._connection))
            self._relay = Relay(self._context.store, self._context.interceptors.producer(producer))
        return self._relay

    @asynccontextmanager
    async def publishing(self) -> AsyncGenerator[None]:
        if self._relay is None:
            yield
            return
        ended = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._relay.run(ended))
            looking = group.create_task(self._look_at_topics())
            try:
                yield
            finally:
                looking.cancel()
                ended.set()
        for request_leave in self._request_leave:
            request_leave()

    async def _look_at_topics(self) -> None:
        """What a consumer does not notice: a topic that is there, and too narrow."""
        settings = self._context.settings
        topics = [settings.topics.tasks_of(settings.pool), settings.results_topic]
        while True:
            found = await kafka_topics.check_topics(
                self._connection, topics, partitions=settings.topic_partitions
            )
            narrow = [finding for finding in found if not finding.stops_work]
            warnings = [f"{finding.why} {finding.fix}" for finding in narrow]
            if warnings != self._warnings:
                self._warnings = warnings
                for finding in narrow:
                    log.warning(
                        log_events.TOPIC_LACKS_PARTITIONS,
                        topic=finding.topic,
                        reason=finding.why,
                        fix=finding.fix,
                    )
            await asyncio.sleep(_LOOK_AT_TOPICS_EVERY)

    def warnings(self) -> Sequence[str]:
        return self._warnings

    async def consumer_lags(self, pools: Sequence[str]) -> Sequence[Lag] | None:
        bridges = [self._bridge_group(pool) for pool in (None, *pools)]
        commands = self._command_group()
        return await self._lag.query(
            [*bridges, self._executor_group(), *([] if commands is None else [commands])]
        )

    async def dependency_problems(self) -> Mapping[str, str | None]:
        if not self._sources:
            return {}
        failures = [source.failure for source in self._sources]
        if self._relay is not None:
            failures.append(self._relay.failure)
        return {"broker": next((failure for failure in failures if failure is not None), None)}


class TopicProblem(NamedTuple):
    """One thing that is wrong with the topics, or with the connection to Kafka."""

    # None: it is the same for all of them.
    topic: str | None
    problem: str
    why: str
    fix: str


def topic_names(settings: Settings, pools: Sequence[str] = ()) -> list[str]:
    """All that the processes of these settings use, and those of the pools."""
    names = settings.topics
    own = [settings.pool] if settings.pool is not None else []
    found = [names.tasks, *(names.tasks_of(pool) for pool in (*own, *pools))]
    found += [names.results, names.events, names.commands]
    # One that is not used has no name.
    return list(dict.fromkeys(name for name in found if name))


async def create_topics(settings: Settings, pools: Sequence[str] = ()) -> Mapping[str, str]:
    """What was done about each: `created`, `widened` or `unchanged`."""
    plan = kafka_topics.TopicPlan(
        settings.topic_partitions, settings.topic_replication, settings.topic_retention
    )
    return await kafka_topics.create_topics(kafka_connection(settings), topic_names(settings, pools), plan)


async def check_topics(settings: Settings, pools: Sequence[str] = ()) -> list[TopicProblem]:
    findings = await kafka_topics.check_topics(
        kafka_connection(settings), topic_names(settings, pools), partitions=settings.topic_partitions
    )
    return [TopicProblem(*finding) for finding in findings]
