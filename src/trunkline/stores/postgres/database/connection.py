"""
Connections, and a pool of them.

Not asyncpg's own pool: it resets a connection each time it is given back, which costs a round trip and undoes nothing
here, since no session is changed. Writers and readers do not wait for one another.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import cast

import asyncpg

from trunkline.errors import ConfigurationError, Unavailable
from trunkline.stores.postgres.database.errors import explained, place_of
from trunkline.stores.postgres.database.session import Session

# A process has a few loops that write, and many requests that read for a moment each.
_MOST_WRITERS = 8
_MOST_READERS = 8
_CONNECT_SECONDS = 5
# Longer than the server's own limit: only a server that has gone silent gets here.
_ANSWER_SECONDS = 35.0
_WAIT_SECONDS = 10.0

# Identifies our processes, for example in pg_stat_activity.
_NAME = f"trunkline {socket.gethostname()[:32]}:{os.getpid()}"
_SETTINGS = {
    "default_transaction_isolation": "read committed",
    # What was answered is on the disk, whatever the server does for others.
    "synchronous_commit": "on",
    # Who stops inside a transaction (a paused process) gives its runs back by then.
    "idle_in_transaction_session_timeout": "10s",
    "statement_timeout": "30s",
    "lock_timeout": "5s",
    # Every statement touches few rows through an index, whatever its values are. Plans are made once, while tables are
    # small, and kept while they grow: one that reads a whole table would be kept too.
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "jit": "off",
}


async def connect(
    url: str, settings: Mapping[str, str] | None = None, *, answer_seconds: float | None = _ANSWER_SECONDS
) -> Session:
    """A session with our settings, overridden by `settings`."""
    place = place_of(url)
    try:
        connection = await asyncpg.connect(  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - untyped
            url,
            timeout=_CONNECT_SECONDS,
            command_timeout=answer_seconds,
            statement_cache_size=512,
            max_cached_statement_lifetime=0,
            max_cacheable_statement_size=0,
            server_settings={"application_name": _NAME},
        )
    except asyncpg.CannotConnectNowError as exc:
        raise Unavailable(f"PostgreSQL at {place} is starting up or shutting down.") from exc
    except (asyncpg.ClientConfigurationError, ValueError) as exc:
        # Their own words may hold the password.
        raise ConfigurationError(
            "TRUNKLINE_STORE is not a valid PostgreSQL URL.",
            fix="Use postgresql://user:password@host:port/database. Write special characters in the "
            "password as %XX.",
        ) from exc
    except Exception as exc:
        raise explained(exc, place) or exc from exc
    db = Session(cast("asyncpg.Connection", connection), place)
    # Not at the start of the connection: a pooler in between refuses settings that it does not know.
    wanted = {**_SETTINGS, **(settings or {})}
    try:
        await db.command("; ".join(f"SET {name} = '{value}'" for name, value in wanted.items()))
    except BaseException:
        db.terminate()
        raise
    return db


class ConnectionPool:
    def __init__(self, url: str) -> None:
        self._url = url
        self._place = place_of(url)
        self._free: list[Session] = []
        self._writers = asyncio.Semaphore(_MOST_WRITERS)
        self._readers = asyncio.Semaphore(_MOST_READERS)

    @asynccontextmanager
    async def writer(self) -> AsyncGenerator[Session]:
        async with self._one_of(self._writers) as db:
            yield db

    @asynccontextmanager
    async def reader(self) -> AsyncGenerator[Session]:
        async with self._one_of(self._readers) as db:
            yield db

    @asynccontextmanager
    async def _one_of(self, places: asyncio.Semaphore) -> AsyncGenerator[Session]:
        await self._wait_for(places)
        try:
            db = await self._take()
            try:
                yield db
            except BaseException as exc:
                # Cancelled in the middle of a statement: the session cannot be used again.
                if not isinstance(exc, Exception):
                    db.terminate()
                raise
            finally:
                if not db.is_closed:
                    self._free.append(db)
        finally:
            places.release()

    async def _wait_for(self, places: asyncio.Semaphore) -> None:
        if not places.locked():
            await places.acquire()
            return
        try:
            async with asyncio.timeout(_WAIT_SECONDS):
                await places.acquire()
        except TimeoutError as exc:
            raise Unavailable(
                f"PostgreSQL at {self._place}: timed out waiting for a free connection.",
                fix="Nothing is lost: Trunkline tries again. Check whether PostgreSQL is overloaded.",
            ) from exc

    async def _take(self) -> Session:
        while self._free:
            db = self._free.pop()
            if not db.is_closed:
                return db
        return await connect(self._url)

    async def close(self) -> None:
        while self._free:
            await self._free.pop().close()
