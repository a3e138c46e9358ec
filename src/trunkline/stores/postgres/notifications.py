"""
Notifications between processes: LISTEN and NOTIFY, each on a connection of its own.

A notification is sent after the commit and not within it: transactions with a NOTIFY commit one after the other, each
waiting for the disk, over the whole cluster. So a notification may be lost, and every receiver also reads
the store by time.
"""

from __future__ import annotations

import asyncio
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager

from trunkline.errors import TrunklineError
from trunkline.ids import RunId
from trunkline.stores.port.messaging import InputsQueued, Notification, PollsDue, RunsChanged
from trunkline.stores.postgres.database.connection import connect
from trunkline.stores.postgres.database.session import Session

_CHANNEL = "trunkline"

_INPUTS_QUEUED = re.compile(r"i([0-9]{0,10})")
# With more than that at once, all may look.
_MOST_WOKEN = 16
_POLLS_DUE = "t"
_RUNS_CHANGED = re.compile(r"r([0-9]+):((?:[0-9A-Za-z_-]{22})+)")
# A payload of NOTIFY has less than 8,000 bytes; an id takes 22.
_MOST_IDS = 300
_ID_LENGTH = 22

_NOTIFY = f"SELECT pg_notify('{_CHANNEL}', text) FROM unnest($1::text[]) AS text"  # noqa: S608 - a constant
# A crash of the server may lose a notification, so nothing waits for the disk.
_SENDER_SETTINGS = {"synchronous_commit": "off"}
_RETRY_SECONDS = 0.5
# A connection that was lost silently is found by asking.
_ASK_EVERY_SECONDS = 10.0


class NotificationSender:
    """Sends what has been committed; while one statement is under way, the next notifications gather."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._waiting: list[Notification] = []
        self._work = asyncio.Event()

    def send(self, notifications: Iterable[Notification]) -> None:
        self._waiting.extend(notifications)
        if self._waiting:
            self._work.set()

    async def run(self) -> None:
        """Until cancelled."""
        db: Session | None = None
        try:
            while True:
                await self._work.wait()
                self._work.clear()
                texts = encode_notifications(self._waiting)
                self._waiting = []
                if db is None or db.is_closed:
                    db = await self._connected()
                if db is not None and texts:
                    await _notify(db, texts)
        finally:
            if db is not None:
                db.terminate()

    async def _connected(self) -> Session | None:
        try:
            return await connect(self._url, _SENDER_SETTINGS)
        except TrunklineError:
            # Those who need the store report that it is away; the receivers find the changes by reading it.
            return None


async def _notify(db: Session, texts: list[str]) -> None:
    try:
        await db.rows(_NOTIFY, texts)
    except TrunklineError:
        db.terminate()


class NotificationListener:
    """Receives every notification, and connects again when the connection is lost."""

    def __init__(self, url: str, on_notification: Callable[[Notification], None]) -> None:
        self._url = url
        self._on_notification = on_notification
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
                # Those who need the store report that it is away.
                self._tried.set()
            await asyncio.sleep(_RETRY_SECONDS)

    async def _listen(self) -> None:
        db = await connect(self._url)
        ended = asyncio.Event()
        try:
            await db.listen(_CHANNEL, self._take, ended.set)
            self._tried.set()
            # A notification may have been sent before we listened.
            self._on_notification(InputsQueued())
            while not ended.is_set():
                try:
                    async with asyncio.timeout(_ASK_EVERY_SECONDS):
                        await ended.wait()
                except TimeoutError:
                    await db.command("SELECT 1")
        finally:
            db.terminate()

    def _take(self, text: str) -> None:
        notification = decode_notification(text)
        if notification is not None:
            self._on_notification(notification)


@asynccontextmanager
async def listening(url: str, on_notification: Callable[[Notification], None]) -> AsyncGenerator[None]:
    listener = NotificationListener(url, on_notification)
    task = asyncio.create_task(listener.run())
    try:
        await listener.tried()
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def encode_notifications(notifications: Iterable[Notification]) -> list[str]:
    """All of them in few texts."""
    polls_due = False
    woken: set[int | None] = set()
    changed: set[RunId] = set()
    ended: set[RunId] = set()
    for notification in notifications:
        match notification:
            case InputsQueued(wakes):
                woken.add(wakes)
            case PollsDue():
                polls_due = True
            case RunsChanged():
                changed.update(notification.run_ids)
                ended.update(notification.ended)
    # Those that have ended come first, and their number before them.
    ids = [*(_short(run_id) for run_id in ended), *(_short(run_id) for run_id in changed - ended)]
    if None in woken or len(woken) > _MOST_WOKEN:
        woken = {None}
    texts = [f"i{'' if wakes is None else wakes}" for wakes in woken]
    texts += [_POLLS_DUE] if polls_due else []
    for start in range(0, len(ids), _MOST_IDS):
        chunk = ids[start : start + _MOST_IDS]
        texts.append(f"r{min(max(len(ended) - start, 0), len(chunk))}:{''.join(chunk)}")
    return texts


def decode_notification(text: str) -> Notification | None:
    """None for a text that is not ours."""
    inputs_queued = _INPUTS_QUEUED.fullmatch(text)
    if inputs_queued is not None:
        return InputsQueued(int(inputs_queued[1]) if inputs_queued[1] else None)
    if text == _POLLS_DUE:
        return PollsDue()
    match = _RUNS_CHANGED.fullmatch(text)
    if match is None:
        return None
    ids = list(_long(match[2]))
    return RunsChanged(ids, frozenset(ids[: int(match[1])]))


def _short(run_id: str) -> str:
    return urlsafe_b64encode(bytes.fromhex(run_id.replace("-", ""))).decode().rstrip("=")


def _long(ids: str) -> Iterator[RunId]:
    for start in range(0, len(ids), _ID_LENGTH):
        digits = urlsafe_b64decode(ids[start : start + _ID_LENGTH] + "==").hex()
        yield RunId(f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}")
