"""
Doorbells between processes: LISTEN and NOTIFY, each on a connection of its own.

A bell is rung after the commit and not within it: transactions with a NOTIFY commit one after the other, each waiting
for the disk, over the whole cluster. So a ring may be lost; nobody relies on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager

from trunkline.errors import TrunklineError
from trunkline.stores.base import InboxFilled, Notice
from trunkline.stores.postgres.database.connection import connect
from trunkline.stores.postgres.database.session import Session
from trunkline.stores.postgres.notice_texts import CHANNEL, read, written

_RING = f"SELECT pg_notify('{CHANNEL}', text) FROM unnest($1::text[]) AS text"  # noqa: S608 - a constant
# Nothing is lost with a ring that a crash of the server swallows.
_UNHURRIED = {"synchronous_commit": "off"}
_RETRY_SECONDS = 0.5
# A line that died without a word is found out by asking.
_ASK_EVERY_SECONDS = 10.0


class Bell:
    """Rings what has been committed; while one ring is on its way, those that follow gather for the next."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._waiting: list[Notice] = []
        self._work = asyncio.Event()

    def ring(self, notices: Iterable[Notice]) -> None:
        self._waiting.extend(notices)
        if self._waiting:
            self._work.set()

    async def run(self) -> None:
        """Until cancelled."""
        db: Session | None = None
        try:
            while True:
                await self._work.wait()
                self._work.clear()
                texts = written(self._waiting)
                self._waiting = []
                if db is None or db.is_closed:
                    db = await self._connected()
                if db is not None and texts:
                    await _ring(db, texts)
        finally:
            if db is not None:
                db.terminate()

    async def _connected(self) -> Session | None:
        try:
            return await connect(self._url, _UNHURRIED)
        except TrunklineError:
            # Whoever needs the store says so; what was to be rung is found by looking.
            return None


async def _ring(db: Session, texts: list[str]) -> None:
    try:
        await db.rows(_RING, texts)
    except TrunklineError:
        db.terminate()


class Ear:
    """Hears every notice, over lost connections."""

    def __init__(self, url: str, hear: Callable[[Notice], None]) -> None:
        self._url = url
        self._hear = hear
        self._tried = asyncio.Event()

    async def tried(self) -> None:
        """Returns when it listens, or when the first attempt has failed."""
        await self._tried.wait()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            try:
                await self._listen()
            except TrunklineError:
                # As above: others say that the store is away.
                self._tried.set()
            await asyncio.sleep(_RETRY_SECONDS)

    async def _listen(self) -> None:
        db = await connect(self._url)
        ended = asyncio.Event()
        try:
            await db.listen(CHANNEL, self._take, ended.set)
            self._tried.set()
            # Something may have been rung while nobody listened.
            self._hear(InboxFilled())
            while not ended.is_set():
                try:
                    async with asyncio.timeout(_ASK_EVERY_SECONDS):
                        await ended.wait()
                except TimeoutError:
                    await db.command("SELECT 1")
        finally:
            db.terminate()

    def _take(self, text: str) -> None:
        notice = read(text)
        if notice is not None:
            self._hear(notice)


@asynccontextmanager
async def listening(url: str, hear: Callable[[Notice], None]) -> AsyncGenerator[None]:
    ear = Ear(url, hear)
    task = asyncio.create_task(ear.run())
    try:
        await ear.tried()
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
