"""
One transaction of the PostgreSQL store: the groups of the port over one session.

What is held back (`PostgresInputQueue`, `DeferredWrites`) is written in few statements. The groups that have such a
part are made with the transaction, the others when they are asked for.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from trunkline.clock import Instant
from trunkline.stores.payloads import PieceCache
from trunkline.stores.port.messaging import Notification
from trunkline.stores.postgres.database.payloads import PieceGate, PostgresPayloads
from trunkline.stores.postgres.database.session import Session
from trunkline.stores.postgres.tables.agents.activity import PostgresActivityWrites
from trunkline.stores.postgres.tables.agents.agent_events import (
    PostgresAgentEventWrites,
    PostgresCheckWrites,
    PostgresComparisonWrites,
)
from trunkline.stores.postgres.tables.agents.output_cache import PostgresOutputCacheWrites
from trunkline.stores.postgres.tables.agents.registry import PostgresAgentWrites
from trunkline.stores.postgres.tables.automation.callbacks import PostgresCallbackWrites
from trunkline.stores.postgres.tables.automation.jobs import PostgresJobWrites
from trunkline.stores.postgres.tables.automation.received_events import PostgresReceivedEventWrites
from trunkline.stores.postgres.tables.automation.start_queue import PostgresStartQueueWrites
from trunkline.stores.postgres.tables.automation.subscriptions import PostgresSubscriptionWrites
from trunkline.stores.postgres.tables.automation.triggers import PostgresTriggerWrites
from trunkline.stores.postgres.tables.deferred_writes import DeferredWrites
from trunkline.stores.postgres.tables.human_tasks import PostgresHumanTaskWrites
from trunkline.stores.postgres.tables.input_queue import PostgresInputQueue, PostgresTimerWrites
from trunkline.stores.postgres.tables.keys_and_secrets import PostgresKeyWrites, PostgresSecretWrites
from trunkline.stores.postgres.tables.messaging import (
    PostgresDeadLetterWrites,
    PostgresDispatchWrites,
    PostgresExchangeWrites,
    PostgresOutboxWrites,
)
from trunkline.stores.postgres.tables.operations import PostgresAuditWrites, PostgresProcessWrites
from trunkline.stores.postgres.tables.published_tasks import PostgresPublishedTaskWrites
from trunkline.stores.postgres.tables.push_configs import PostgresPushConfigWrites
from trunkline.stores.postgres.tables.runs import PostgresRunWrites
from trunkline.stores.postgres.tables.schemas import PostgresSchemaWrites
from trunkline.stores.postgres.tables.task_claims import PostgresLeaseWrites
from trunkline.stores.postgres.tables.tasks import PostgresTaskWrites
from trunkline.stores.postgres.tables.transfer import PostgresTransferWrites
from trunkline.stores.postgres.tables.workflows import PostgresWorkflowWrites


class PostgresTransaction:
    def __init__(self, db: Session, now: Instant, pieces: PieceCache, gate: PieceGate) -> None:
        self._db = db
        self.now = now
        # Sent when it has committed.
        self.notifications: list[Notification] = []
        self._deferred = deferred = DeferredWrites(db)
        payloads = PostgresPayloads(db, pieces, gate)
        self.input_queue = PostgresInputQueue(db)
        self.runs = PostgresRunWrites(db, now, self.input_queue, deferred, payloads)
        self.timers = PostgresTimerWrites(db, now, self.input_queue)
        self.tasks = PostgresTaskWrites(db, now, deferred, payloads)
        self.outbox = PostgresOutboxWrites(db, now, deferred)
        self.dispatches = PostgresDispatchWrites(db, now, deferred, payloads)
        self.exchanges = PostgresExchangeWrites(db, now, deferred)
        self.activity = PostgresActivityWrites(db, now, deferred)

    @property
    def agents(self) -> PostgresAgentWrites:
        return PostgresAgentWrites(self._db, self.now)

    @property
    def agent_events(self) -> PostgresAgentEventWrites:
        return PostgresAgentEventWrites(self._db, self.now)

    @property
    def checks(self) -> PostgresCheckWrites:
        return PostgresCheckWrites(self._db, self.now)

    @property
    def comparisons(self) -> PostgresComparisonWrites:
        return PostgresComparisonWrites(self._db, self.now)

    @property
    def workflows(self) -> PostgresWorkflowWrites:
        return PostgresWorkflowWrites(self._db, self.now)

    @property
    def leases(self) -> PostgresLeaseWrites:
        return PostgresLeaseWrites(self._db, self.now)

    @property
    def received_events(self) -> PostgresReceivedEventWrites:
        return PostgresReceivedEventWrites(self._db, self.now)

    @property
    def dead_letters(self) -> PostgresDeadLetterWrites:
        return PostgresDeadLetterWrites(self._db, self.now)

    @property
    def published_tasks(self) -> PostgresPublishedTaskWrites:
        return PostgresPublishedTaskWrites(self._db, self.now)

    @property
    def human_tasks(self) -> PostgresHumanTaskWrites:
        return PostgresHumanTaskWrites(self._db, self.now)

    @property
    def push_configs(self) -> PostgresPushConfigWrites:
        return PostgresPushConfigWrites(self._db, self.now)

    @property
    def callbacks(self) -> PostgresCallbackWrites:
        return PostgresCallbackWrites(self._db, self.now)

    @property
    def subscriptions(self) -> PostgresSubscriptionWrites:
        return PostgresSubscriptionWrites(self._db, self.now)

    @property
    def keys(self) -> PostgresKeyWrites:
        return PostgresKeyWrites(self._db, self.now)

    @property
    def secrets(self) -> PostgresSecretWrites:
        return PostgresSecretWrites(self._db, self.now)

    @property
    def schemas(self) -> PostgresSchemaWrites:
        return PostgresSchemaWrites(self._db, self.now)

    @property
    def jobs(self) -> PostgresJobWrites:
        return PostgresJobWrites(self._db, self.now)

    @property
    def audit(self) -> PostgresAuditWrites:
        return PostgresAuditWrites(self._db, self.now)

    @property
    def processes(self) -> PostgresProcessWrites:
        return PostgresProcessWrites(self._db, self.now)

    @property
    def start_queue(self) -> PostgresStartQueueWrites:
        return PostgresStartQueueWrites(self._db, self.now)

    @property
    def output_cache(self) -> PostgresOutputCacheWrites:
        return PostgresOutputCacheWrites(self._db, self.now)

    @property
    def triggers(self) -> PostgresTriggerWrites:
        return PostgresTriggerWrites(self._db, self.now)

    @property
    def transfer(self) -> PostgresTransferWrites:
        return PostgresTransferWrites(self._db, self.now, self.write_held)

    async def write_held(self) -> None:
        """Write what was held back; called before the commit."""
        await self.input_queue.write_held()
        await self._deferred.write()

    @asynccontextmanager
    async def savepoint(self) -> AsyncGenerator[None]:
        # With nothing held back, the database alone knows what is to be undone.
        await self.write_held()
        notifications = self.notifications.copy()
        messages = self._deferred.written_messages.copy()
        await self._db.command("SAVEPOINT block")
        try:
            yield
            await self.write_held()
        except Exception:
            # A session that was lost has nothing to go back to: the next statement says so.
            if not self._db.is_closed:
                await self._db.command("ROLLBACK TO block; RELEASE block")
            self.notifications = notifications
            self.input_queue.reset()
            self._deferred.reset()
            self._deferred.written_messages = messages
            raise
        await self._db.command("RELEASE block")

    async def notify(self, notification: Notification) -> None:
        self.notifications.append(notification)
