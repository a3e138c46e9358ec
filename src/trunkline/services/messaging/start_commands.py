"""
Starts runs for the records of the commands' topic.

A record is settled when its run is durable, so one that was cut off comes again and starts nothing twice. What can
never become a run goes to the dead letters with its reason; what only lacks the store waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Literal, NamedTuple, TypeAlias

import structlog

from trunkline.brokers.base import RecordSource
from trunkline.errors import TrunklineError, Unavailable
from trunkline.id_generation import new_id
from trunkline.messages import BrokerRecord, TraceContext
from trunkline.messages.codec import UnreadableMessage
from trunkline.messages.commands import idempotency_key, read_command
from trunkline.messages.trace import TRACEPARENT, TRACESTATE
from trunkline.services.messaging.dead_letters import dead_letter, put_dead_letters
from trunkline.services.operations.audit_log import acting
from trunkline.services.runs.runs import Runs
from trunkline.services.subscriptions.reporter import ChangeReporter
from trunkline.stores.base import Store
from trunkline.telemetry import log_events
from trunkline.telemetry.metrics import Metrics
from trunkline.telemetry.traces import Traces

log = structlog.stdlib.get_logger()

_MAX_BATCH = 100
# The notification may be lost.
_MAX_IDLE_SECONDS = 1.0
# A store that is away is tried again at this pace.
_RETRY_PAUSE = 0.5


class _RejectedCommand(NamedTuple):
    category: str
    reason: str


_Outcome: TypeAlias = _RejectedCommand | Literal["started", "kept"]


class StartCommandConsumer:
    def __init__(
        self,
        source: RecordSource,
        runs: Runs,
        store: Store,
        metrics: Metrics,
        traces: Traces,
        reporter: ChangeReporter | None = None,
    ) -> None:
        """`reporter`: for the subscriptions to dead letters."""
        self._source = source
        self._runs = runs
        self._store = store
        self._metrics = metrics
        self._traces = traces
        self._reporter = reporter
        self._arrived = asyncio.Event()
        source.on_arrival(self._arrived.set)

    async def run(self, stopping: asyncio.Event) -> None:
        """Until `stopping` is set; what is under way then is cut off."""
        async with asyncio.TaskGroup() as group:
            work = group.create_task(self._work())
            await stopping.wait()
            work.cancel()

    async def _work(self) -> None:
        while True:
            self._arrived.clear()
            records = self._source.waiting(_MAX_BATCH)
            if not records:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._arrived.wait(), _MAX_IDLE_SECONDS)
            elif not await self._take(records):
                await asyncio.sleep(_RETRY_PAUSE)

    async def _take(self, records: Sequence[BrokerRecord]) -> bool:
        """False when some of them have to be tried again."""
        outcomes = await asyncio.gather(*(self._start(record) for record in records))
        done = list(zip(records, outcomes, strict=True))
        dead = [(record, outcome) for record, outcome in done if isinstance(outcome, _RejectedCommand)]
        if dead and not await self._put_dead_letters(dead):
            done = [
                (record, outcome) for record, outcome in done if not isinstance(outcome, _RejectedCommand)
            ]
        settled = [record for record, outcome in done if outcome != "kept"]
        for record in settled:
            self._metrics.records_consumed.labels(record.topic).inc()
        self._source.settle(settled)
        return len(settled) == len(records)

    async def _start(self, record: BrokerRecord) -> _Outcome:
        try:
            command = read_command(record)
            with (
                # The name of an API key contains no colon.
                acting(f"kafka:{record.topic}"),
                self._traces.begin(
                    f"start {command.workflow}",
                    "CONSUMER",
                    _trace_of(record),
                    {"messaging.system": "kafka", "messaging.destination.name": record.topic},
                ) as segment,
            ):
                await self._runs.execute(
                    command.workflow,
                    command.version,
                    command.input,
                    correlation_id=command.correlation_id or new_id(),
                    idempotency_key=idempotency_key(record),
                    trace=segment.trace,
                )
        except UnreadableMessage as exc:
            return _RejectedCommand(exc.category, exc.reason)
        except Unavailable:
            return "kept"
        except TrunklineError as exc:
            return _RejectedCommand(
                "refused", f"{exc.message} {exc.fix} Then replay the message, or delete it."
            )
        except Exception as exc:
            # Whatever it is about this record, the others go on; it is kept for a person to see.
            log.exception(log_events.TURN_FAILED)
            return _RejectedCommand(
                "refused",
                f"The run could not be started: {type(exc).__name__}. See the log, then replay the message.",
            )
        return "started"

    async def _put_dead_letters(self, dead: Sequence[tuple[BrokerRecord, _RejectedCommand]]) -> bool:
        try:
            async with self._store.transaction() as tx:
                letters = [dead_letter(record, reason, tx.now) for record, (_, reason) in dead]
                await put_dead_letters(tx, letters, self._reporter)
        except Unavailable as exc:
            log.error(log_events.STORE_UNAVAILABLE, error=exc.message, fix=exc.fix)
            return False
        for record, (category, reason) in dead:
            self._metrics.dead_letters.labels(category).inc()
            log.error(
                log_events.DEAD_LETTER,
                topic=record.topic,
                partition=record.partition,
                offset=record.offset,
                reason=reason,
            )
        return True


def _trace_of(record: BrokerRecord) -> TraceContext | None:
    headers = dict(record.headers)
    return TraceContext.read(headers.get(TRACEPARENT), headers.get(TRACESTATE))
