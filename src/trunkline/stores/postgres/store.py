"""
The PostgreSQL store: one database for every process of the system.

Each transaction has a session of its own. A session that is lost, or cancelled in the middle of a statement, is
terminated, and the server rolls back. A transaction that is lost during its COMMIT may have happened; its caller tries
again, which is safe since everything has a key.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from trunkline.clock import Clock
from trunkline.errors import ConfigurationError, Unavailable
from trunkline.stores.migrations import REVISIONS
from trunkline.stores.payloads import PieceCache
from trunkline.stores.port.messaging import Notification
from trunkline.stores.postgres.database import migrate
from trunkline.stores.postgres.database.clock import DatabaseClock, ProvidedClock
from trunkline.stores.postgres.database.connection import ConnectionPool
from trunkline.stores.postgres.database.errors import place_of
from trunkline.stores.postgres.database.payloads import PieceGate, PostgresPayloadReads
from trunkline.stores.postgres.database.session import Session
from trunkline.stores.postgres.notifications import NotificationSender, listening
from trunkline.stores.postgres.tables.agents.activity import PostgresActivityReads
from trunkline.stores.postgres.tables.agents.agent_events import (
    PostgresAgentEventReads,
    PostgresCheckReads,
    PostgresComparisonReads,
)
from trunkline.stores.postgres.tables.agents.output_cache import PostgresOutputCacheReads
from trunkline.stores.postgres.tables.agents.registry import PostgresAgentReads
from trunkline.stores.postgres.tables.automation.callbacks import PostgresCallbackReads
from trunkline.stores.postgres.tables.automation.jobs import PostgresJobReads
from trunkline.stores.postgres.tables.automation.received_events import PostgresReceivedEventReads
from trunkline.stores.postgres.tables.automation.start_queue import PostgresStartQueueReads
from trunkline.stores.postgres.tables.automation.subscriptions import PostgresSubscriptionReads
from trunkline.stores.postgres.tables.automation.triggers import PostgresTriggerReads
from trunkline.stores.postgres.tables.human_tasks import PostgresHumanTaskReads
from trunkline.stores.postgres.tables.keys_and_secrets import PostgresKeyReads, PostgresSecretReads
from trunkline.stores.postgres.tables.messaging import PostgresDeadLetterReads, PostgresExchangeReads
from trunkline.stores.postgres.tables.operations import (
    PostgresAuditReads,
    PostgresBacklogReads,
    PostgresProcessReads,
)
from trunkline.stores.postgres.tables.published_tasks import PostgresPublishedTaskReads
from trunkline.stores.postgres.tables.push_configs import PostgresPushConfigReads
from trunkline.stores.postgres.tables.runs import PostgresRunReads
from trunkline.stores.postgres.tables.schemas import PostgresSchemaReads
from trunkline.stores.postgres.tables.transfer import PostgresTransferReads
from trunkline.stores.postgres.tables.workflows import PostgresWorkflowReads
from trunkline.stores.postgres.transaction import PostgresTransaction

# A health check does not wait for as long as a statement may take.
_CHECK_SECONDS = 5.0
_BEGIN = "BEGIN"
_BEGIN_WITHOUT_FLUSH = "BEGIN; SET LOCAL synchronous_commit = off"


class PostgresStore:
    def __init__(
        self, url: str, pool: ConnectionPool, sender: NotificationSender, clock: Clock | None
    ) -> None:
        self._url = url
        self._pool = pool
        self._sender = sender
        self._clock = now = DatabaseClock() if clock is None else ProvidedClock(clock)
        self.agents = PostgresAgentReads(pool, now)
        self.agent_events = PostgresAgentEventReads(pool, now)
        self.checks = PostgresCheckReads(pool, now)
        self.comparisons = PostgresComparisonReads(pool, now)
        self.activity = PostgresActivityReads(pool, now)
        self.output_cache = PostgresOutputCacheReads(pool, now)
        self.workflows = PostgresWorkflowReads(pool, now)
        self._pieces, self._gate = PieceCache(), PieceGate()
        self.runs = PostgresRunReads(pool, now, PostgresPayloadReads(pool, self._pieces))
        self.published_tasks = PostgresPublishedTaskReads(pool, now)
        self.received_events = PostgresReceivedEventReads(pool, now)
        self.callbacks = PostgresCallbackReads(pool, now)
        self.human_tasks = PostgresHumanTaskReads(pool, now)
        self.push_configs = PostgresPushConfigReads(pool, now)
        self.subscriptions = PostgresSubscriptionReads(pool, now)
        self.exchanges = PostgresExchangeReads(pool, now)
        self.dead_letters = PostgresDeadLetterReads(pool, now)
        self.keys = PostgresKeyReads(pool, now)
        self.secrets = PostgresSecretReads(pool, now)
        self.schemas = PostgresSchemaReads(pool, now)
        self.jobs = PostgresJobReads(pool, now)
        self.audit = PostgresAuditReads(pool, now)
        self.processes = PostgresProcessReads(pool, now)
        self.backlog = PostgresBacklogReads(pool, now)
        self.start_queue = PostgresStartQueueReads(pool, now)
        self.triggers = PostgresTriggerReads(pool, now)
        self.transfer = PostgresTransferReads(pool, now)

    @asynccontextmanager
    async def transaction(self, *, durable: bool = True) -> AsyncGenerator[PostgresTransaction]:
        async with self._pool.writer() as db:
            await db.command(_BEGIN if durable else _BEGIN_WITHOUT_FLUSH)
            try:
                tx = PostgresTransaction(db, await self._clock.now(db), self._pieces, self._gate)
                yield tx
                await tx.write_held()
                await _commit(db)
            except BaseException as exc:
                await _roll_back(db, exc)
                raise
        self._sender.send(tx.notifications)

    def listen(self, on_notification: Callable[[Notification], None]) -> AbstractAsyncContextManager[None]:
        return listening(self._url, on_notification)

    async def check(self) -> None:
        try:
            async with asyncio.timeout(_CHECK_SECONDS), self._pool.reader() as db:
                state = await migrate.state_of(db)
        except TimeoutError as exc:
            raise Unavailable(f"PostgreSQL at {place_of(self._url)} does not respond.") from exc
        # A newer schema only adds: this process goes on until it is replaced.
        if state.revision is None or state.revision in REVISIONS:
            try:
                state.check()
            except ConfigurationError as exc:
                raise Unavailable(exc.message, fix=exc.fix) from exc


async def _commit(db: Session) -> None:
    # A transaction in which a statement failed is rolled back by COMMIT, without an error.
    if await db.command("COMMIT") != "COMMIT":
        raise Unavailable(
            f"PostgreSQL at {db.place} rolled back a transaction.",
            fix="Nothing is lost: Trunkline tries again.",
        )


async def _roll_back(db: Session, exc: BaseException) -> None:
    if db.is_closed or not isinstance(exc, Exception):
        db.terminate()
        return
    try:
        await db.command("ROLLBACK")
    except Exception:  # noqa: BLE001 - the first error is raised; the server rolls back when the connection ends
        db.terminate()


@asynccontextmanager
async def opened(url: str, *, clock: Clock | None, upgrade: bool) -> AsyncGenerator[PostgresStore]:
    if upgrade:
        await migrate.upgrade(url)
    else:
        (await migrate.schema_state(url)).check()
    pool, sender = ConnectionPool(url), NotificationSender(url)
    sending = asyncio.create_task(sender.run())
    try:
        yield PostgresStore(url, pool, sender, clock)
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        await pool.close()
