"""
One transaction of the SQLite store: the groups of the port over the writer's connection.

Much of what a transaction puts is also taken in it; that is held back and written once (`SqliteInputQueue`,
`DeferredTasks`). The groups that every turn of the commit loop needs are made with the transaction, the others on
demand.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import apsw

from trunkline.clock import Instant
from trunkline.stores.payloads import PieceCache
from trunkline.stores.port.messaging import Notification
from trunkline.stores.sqlite.cache import CacheChanges
from trunkline.stores.sqlite.database.payloads import SqlitePayloads
from trunkline.stores.sqlite.database.statements import execute
from trunkline.stores.sqlite.tables.agents.activity import SqliteActivityWrites
from trunkline.stores.sqlite.tables.agents.agent_events import (
    SqliteAgentEventWrites,
    SqliteCheckWrites,
    SqliteComparisonWrites,
)
from trunkline.stores.sqlite.tables.agents.output_cache import SqliteOutputCacheWrites
from trunkline.stores.sqlite.tables.agents.registry import SqliteAgentWrites
from trunkline.stores.sqlite.tables.automation.callbacks import SqliteCallbackWrites
from trunkline.stores.sqlite.tables.automation.jobs import SqliteJobWrites
from trunkline.stores.sqlite.tables.automation.received_events import SqliteReceivedEventWrites
from trunkline.stores.sqlite.tables.automation.start_queue import SqliteStartQueueWrites
from trunkline.stores.sqlite.tables.automation.subscriptions import SqliteSubscriptionWrites
from trunkline.stores.sqlite.tables.automation.triggers import SqliteTriggerWrites
from trunkline.stores.sqlite.tables.deferred_tasks import DeferredTasks
from trunkline.stores.sqlite.tables.human_tasks import SqliteHumanTaskWrites
from trunkline.stores.sqlite.tables.input_queue import SqliteInputQueue, SqliteTimerWrites
from trunkline.stores.sqlite.tables.keys_and_secrets import SqliteKeyWrites, SqliteSecretWrites
from trunkline.stores.sqlite.tables.messaging import (
    SqliteDeadLetterWrites,
    SqliteDispatchWrites,
    SqliteExchangeWrites,
    SqliteOutboxWrites,
)
from trunkline.stores.sqlite.tables.operations import SqliteAuditWrites, SqliteProcessWrites
from trunkline.stores.sqlite.tables.published_tasks import SqlitePublishedTaskWrites
from trunkline.stores.sqlite.tables.push_configs import SqlitePushConfigWrites
from trunkline.stores.sqlite.tables.runs import SqliteRunWrites
from trunkline.stores.sqlite.tables.schemas import SqliteSchemaWrites
from trunkline.stores.sqlite.tables.tasks import SqliteLeaseWrites, SqliteTaskWrites
from trunkline.stores.sqlite.tables.transfer import SqliteTransferWrites
from trunkline.stores.sqlite.tables.workflows import SqliteWorkflowWrites


class SqliteTransaction:
    leases = SqliteLeaseWrites()

    def __init__(self, db: apsw.Connection, now: Instant, changes: CacheChanges, pieces: PieceCache) -> None:
        self._db = db
        self.now = now
        self.changes = changes
        self._payloads = payloads = SqlitePayloads(db, pieces)
        self._deferred_tasks = deferred_tasks = DeferredTasks(db, payloads)
        self._outbox: SqliteOutboxWrites | None = None
        self.input_queue = SqliteInputQueue(db, changes.version_of)
        self.runs = SqliteRunWrites(db, now, changes, self.input_queue, deferred_tasks, payloads)
        self.timers = SqliteTimerWrites(db, now, self.input_queue)
        self.tasks = SqliteTaskWrites(db, now, changes, deferred_tasks, payloads)

    @property
    def agents(self) -> SqliteAgentWrites:
        return SqliteAgentWrites(self._db, self.now, self.changes)

    @property
    def agent_events(self) -> SqliteAgentEventWrites:
        return SqliteAgentEventWrites(self._db, self.now)

    @property
    def checks(self) -> SqliteCheckWrites:
        return SqliteCheckWrites(self._db, self.now)

    @property
    def comparisons(self) -> SqliteComparisonWrites:
        return SqliteComparisonWrites(self._db, self.now)

    @property
    def activity(self) -> SqliteActivityWrites:
        return SqliteActivityWrites(self._db, self.now)

    @property
    def workflows(self) -> SqliteWorkflowWrites:
        return SqliteWorkflowWrites(self._db, self.now, self.changes)

    @property
    def exchanges(self) -> SqliteExchangeWrites:
        return SqliteExchangeWrites(self._db, self.now)

    @property
    def outbox(self) -> SqliteOutboxWrites:
        if self._outbox is None:
            self._outbox = SqliteOutboxWrites(self._db, self.now)
        return self._outbox

    @property
    def dispatches(self) -> SqliteDispatchWrites:
        return SqliteDispatchWrites(self._db, self.now, self._deferred_tasks, self._payloads)

    @property
    def received_events(self) -> SqliteReceivedEventWrites:
        return SqliteReceivedEventWrites(self._db, self.now)

    @property
    def dead_letters(self) -> SqliteDeadLetterWrites:
        return SqliteDeadLetterWrites(self._db, self.now)

    @property
    def published_tasks(self) -> SqlitePublishedTaskWrites:
        return SqlitePublishedTaskWrites(self._db, self.now)

    @property
    def human_tasks(self) -> SqliteHumanTaskWrites:
        return SqliteHumanTaskWrites(self._db, self.now)

    @property
    def push_configs(self) -> SqlitePushConfigWrites:
        return SqlitePushConfigWrites(self._db, self.now)

    @property
    def callbacks(self) -> SqliteCallbackWrites:
        return SqliteCallbackWrites(self._db, self.now)

    @property
    def subscriptions(self) -> SqliteSubscriptionWrites:
        return SqliteSubscriptionWrites(self._db, self.now)

    @property
    def keys(self) -> SqliteKeyWrites:
        return SqliteKeyWrites(self._db, self.now)

    @property
    def secrets(self) -> SqliteSecretWrites:
        return SqliteSecretWrites(self._db, self.now)

    @property
    def schemas(self) -> SqliteSchemaWrites:
        return SqliteSchemaWrites(self._db, self.now)

    @property
    def jobs(self) -> SqliteJobWrites:
        return SqliteJobWrites(self._db, self.now)

    @property
    def audit(self) -> SqliteAuditWrites:
        return SqliteAuditWrites(self._db, self.now)

    @property
    def processes(self) -> SqliteProcessWrites:
        return SqliteProcessWrites(self._db, self.now)

    @property
    def start_queue(self) -> SqliteStartQueueWrites:
        return SqliteStartQueueWrites(self._db, self.now)

    @property
    def output_cache(self) -> SqliteOutputCacheWrites:
        return SqliteOutputCacheWrites(self._db, self.now)

    @property
    def triggers(self) -> SqliteTriggerWrites:
        return SqliteTriggerWrites(self._db, self.now, self.changes)

    @property
    def transfer(self) -> SqliteTransferWrites:
        return SqliteTransferWrites(self._db, self.now, self.changes, self.write_held)

    async def write_held(self) -> None:
        """Write what was held back; called before the commit."""
        self.input_queue.write_held()
        await self._deferred_tasks.write_all()

    @asynccontextmanager
    async def savepoint(self) -> AsyncGenerator[None]:
        # With nothing held back, the database alone knows what is to be undone.
        await self.write_held()
        changes, new_runs = self.changes.copy(), self.runs.new_runs()
        execute(self._db, "SAVEPOINT block")
        try:
            yield
            await self.write_held()
        except BaseException:
            # After some errors (a full disk) SQLite has rolled back all of it by itself.
            if self._db.in_transaction:
                execute(self._db, "ROLLBACK TO block")
                execute(self._db, "RELEASE block")
            self.changes.restore(changes)
            self.runs.reset(new_runs)
            self.input_queue.reset()
            self._deferred_tasks.reset()
            raise
        execute(self._db, "RELEASE block")

    async def notify(self, notification: Notification) -> None:
        """SQLite has a single process."""
