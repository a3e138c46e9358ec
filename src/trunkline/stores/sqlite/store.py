"""
The SQLite store: one writer, one reader, one process.

Statements run on the event loop's own thread, where each costs a few microseconds; only the commit, which waits
for the disk, runs in a thread. So write many rows in one transaction.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import apsw

from trunkline.clock import Clock
from trunkline.stores.port.messaging import Notification
from trunkline.stores.sqlite.cache import CacheChanges, CommittedCache
from trunkline.stores.sqlite.database.committer import Committer
from trunkline.stores.sqlite.database.connection import (
    check_library,
    connect,
    make_file,
    make_folder,
    owned,
    translated_errors,
)
from trunkline.stores.sqlite.database.migrate import is_up_to_date, upgrade
from trunkline.stores.sqlite.database.payloads import SqlitePayloadReads
from trunkline.stores.sqlite.database.statements import execute, first
from trunkline.stores.sqlite.tables.agents.activity import SqliteActivityReads
from trunkline.stores.sqlite.tables.agents.agent_events import (
    SqliteAgentEventReads,
    SqliteCheckReads,
    SqliteComparisonReads,
)
from trunkline.stores.sqlite.tables.agents.output_cache import SqliteOutputCacheReads
from trunkline.stores.sqlite.tables.agents.registry import SqliteAgentReads
from trunkline.stores.sqlite.tables.automation.callbacks import SqliteCallbackReads
from trunkline.stores.sqlite.tables.automation.jobs import SqliteJobReads
from trunkline.stores.sqlite.tables.automation.received_events import SqliteReceivedEventReads
from trunkline.stores.sqlite.tables.automation.start_queue import SqliteStartQueueReads
from trunkline.stores.sqlite.tables.automation.subscriptions import SqliteSubscriptionReads
from trunkline.stores.sqlite.tables.automation.triggers import SqliteTriggerReads
from trunkline.stores.sqlite.tables.human_tasks import SqliteHumanTaskReads
from trunkline.stores.sqlite.tables.keys_and_secrets import SqliteKeyReads, SqliteSecretReads
from trunkline.stores.sqlite.tables.messaging import SqliteDeadLetterReads, SqliteExchangeReads
from trunkline.stores.sqlite.tables.operations import SqliteAuditReads, SqliteBacklogReads, SqliteProcessReads
from trunkline.stores.sqlite.tables.published_tasks import SqlitePublishedTaskReads
from trunkline.stores.sqlite.tables.push_configs import SqlitePushConfigReads
from trunkline.stores.sqlite.tables.runs import SqliteRunReads
from trunkline.stores.sqlite.tables.schemas import SqliteSchemaReads
from trunkline.stores.sqlite.tables.transfer import SqliteTransferReads
from trunkline.stores.sqlite.tables.workflows import SqliteWorkflowReads
from trunkline.stores.sqlite.transaction import SqliteTransaction
from trunkline.system_clock import SystemClock


class SqliteStore:
    def __init__(self, writer: apsw.Connection, reader: apsw.Connection, path: Path, clock: Clock) -> None:
        self._writer = writer
        self._reader = reader
        self._clock = clock
        self._turn = asyncio.Lock()
        self._committer = Committer(partial(execute, writer, "COMMIT"))
        self._cache = CommittedCache()
        self.agents = SqliteAgentReads(reader, clock)
        self.agent_events = SqliteAgentEventReads(reader, clock)
        self.checks = SqliteCheckReads(reader, clock)
        self.comparisons = SqliteComparisonReads(reader, clock)
        self.activity = SqliteActivityReads(reader, clock)
        self.output_cache = SqliteOutputCacheReads(reader, clock)
        self.workflows = SqliteWorkflowReads(reader, clock, self._cache)
        payloads = SqlitePayloadReads(reader, path, self._cache.pieces)
        self.runs = SqliteRunReads(reader, clock, self._cache, payloads)
        self.published_tasks = SqlitePublishedTaskReads(reader, clock)
        self.received_events = SqliteReceivedEventReads(reader, clock)
        self.callbacks = SqliteCallbackReads(reader, clock)
        self.human_tasks = SqliteHumanTaskReads(reader, clock)
        self.push_configs = SqlitePushConfigReads(reader, clock)
        self.subscriptions = SqliteSubscriptionReads(reader, clock)
        self.exchanges = SqliteExchangeReads(reader, clock)
        self.dead_letters = SqliteDeadLetterReads(reader, clock)
        self.keys = SqliteKeyReads(reader, clock)
        self.secrets = SqliteSecretReads(reader, clock)
        self.schemas = SqliteSchemaReads(reader, clock)
        self.jobs = SqliteJobReads(reader, clock)
        self.audit = SqliteAuditReads(reader, clock)
        self.processes = SqliteProcessReads(reader, clock)
        self.backlog = SqliteBacklogReads(path, clock)
        self.start_queue = SqliteStartQueueReads(reader, clock)
        self.triggers = SqliteTriggerReads(reader, clock)
        self.transfer = SqliteTransferReads(reader, clock)

    @asynccontextmanager
    async def transaction(self, *, durable: bool = True) -> AsyncGenerator[SqliteTransaction]:
        """Every commit waits for the disk."""
        del durable
        async with self._turn:
            with translated_errors():
                execute(self._writer, "BEGIN IMMEDIATE")
                tx = SqliteTransaction(
                    self._writer, self._clock.now(), self._cache.begin(), self._cache.pieces
                )
                try:
                    yield tx
                    await tx.write_held()
                except BaseException:
                    self._roll_back()
                    raise
                await self._commit(tx.changes)

    async def _commit(self, changes: CacheChanges) -> None:
        # Whatever happens to the caller, the next transaction does not begin before the disk has answered.
        try:
            cancelled = await self._committer.commit()
        except BaseException:
            self._roll_back()
            raise
        self._cache.take(changes)
        if cancelled is not None:
            raise cancelled

    def _roll_back(self) -> None:
        # After some errors (a full disk) SQLite has already rolled back, and the transaction is over.
        if self._writer.in_transaction:
            execute(self._writer, "ROLLBACK")

    @asynccontextmanager
    async def listen(self, on_notification: Callable[[Notification], None]) -> AsyncGenerator[None]:
        """SQLite has a single process, which needs no notifications."""
        del on_notification
        yield

    async def check(self) -> None:
        with translated_errors():
            first(self._reader, "SELECT version_num FROM alembic_version")

    def close(self) -> None:
        self._committer.close()
        self._reader.close()
        self._writer.close()


@asynccontextmanager
async def open_sqlite(
    path: Path, *, clock: Clock | None = None, allow_in_use: bool = False
) -> AsyncGenerator[SqliteStore]:
    """
    Takes the file for this process alone, brings its schema up to date, and gives it back at the end.

    `allow_in_use`: an up-to-date file stays with its owner. For a few small writes that an owner takes into
    no account, like keys.
    """
    check_library()
    with ExitStack() as stack:
        make_folder(path.parent)
        if not (allow_in_use and is_up_to_date(path)):
            stack.enter_context(owned(path))
        make_file(path)
        writer = connect(path)
        upgrade(writer)
        store = SqliteStore(writer, connect(path), path, clock or SystemClock())
        stack.callback(store.close)
        yield store
