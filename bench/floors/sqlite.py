"""
The floor: what the job costs a program written for nothing else.

The job by hand on SQLite with `synchronous=FULL` and group commit.

    python -m bench.floors.sqlite AGENT_URL DATABASE
"""

from __future__ import annotations

import asyncio
import queue
import sys
import threading

import apsw
import uvloop

from bench.floors.handwritten import serve_handwritten

_UPSERT = (
    "INSERT INTO runs(id, step, state) VALUES (?, ?, ?)"
    " ON CONFLICT(id) DO UPDATE SET step = excluded.step, state = excluded.state"
)
_Write = tuple[tuple[str, int, bytes], "asyncio.Future[None]"]


class _Writer:
    """One thread that commits whatever has gathered while the commit before waited for the disk."""

    def __init__(self, path: str) -> None:
        self._db = apsw.Connection(path)
        self._run("PRAGMA journal_mode=WAL")
        self._run("PRAGMA synchronous=FULL")
        self._run("PRAGMA wal_autocheckpoint=8000")
        self._run("CREATE TABLE runs(id TEXT PRIMARY KEY, step INTEGER NOT NULL, state BLOB NOT NULL)")
        self._loop = asyncio.get_running_loop()
        self._waiting: queue.SimpleQueue[_Write] = queue.SimpleQueue()
        threading.Thread(target=self._write_batches, daemon=True).start()

    async def save(self, run: str, step: int, state: bytes) -> None:
        durable = self._loop.create_future()
        self._waiting.put(((run, step, state), durable))
        await durable

    def _write_batches(self) -> None:
        while True:
            batch = [self._waiting.get()]
            while not self._waiting.empty():
                batch.append(self._waiting.get())
            self._run("BEGIN IMMEDIATE")
            self._db.executemany(_UPSERT, [row for row, _ in batch])  # pyright: ignore[reportUnknownMemberType] - the driver's own annotation
            self._run("COMMIT")
            self._loop.call_soon_threadsafe(_resolve, [durable for _, durable in batch])

    def _run(self, sql: str) -> None:
        for _ in self._db.execute(sql):  # pyright: ignore[reportUnknownMemberType] - as above
            pass


def _resolve(futures: list[asyncio.Future[None]]) -> None:
    for future in futures:
        future.set_result(None)


async def _main(url: str, path: str) -> None:
    await serve_handwritten(url, _Writer(path))


if __name__ == "__main__":
    # The writer gets the interpreter back sooner after a commit; measured, the floor is faster for it.
    sys.setswitchinterval(0.001)
    uvloop.run(_main(sys.argv[1], sys.argv[2]))
