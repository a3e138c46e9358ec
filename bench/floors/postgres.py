"""
The floor on PostgreSQL: what the job costs a program written for nothing else.

The job by hand on asyncpg: one connection, and one statement that commits whatever has gathered while the one before
waited for the disk.

    python -m bench.floors.postgres AGENT_URL DATABASE_URL
"""

from __future__ import annotations

import asyncio
import sys
from typing import cast

import asyncpg
import uvloop

from bench.floors.handwritten import serve_handwritten

_TABLE = "CREATE TABLE runs(id text PRIMARY KEY, step int NOT NULL, state bytea NOT NULL)"
_UPSERT = (
    "INSERT INTO runs(id, step, state) SELECT * FROM unnest($1::text[], $2::int[], $3::bytea[])"
    " ON CONFLICT(id) DO UPDATE SET step = excluded.step, state = excluded.state"
)
_Write = tuple[str, int, bytes, "asyncio.Future[None]"]


class _Writer:
    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection
        self._waiting: list[_Write] = []
        self._wake_event = asyncio.Event()

    async def save(self, run: str, step: int, state: bytes) -> None:
        durable = asyncio.get_running_loop().create_future()
        self._waiting.append((run, step, state, durable))
        self._wake_event.set()
        await durable

    async def write_batches(self) -> None:
        while True:
            await self._wake_event.wait()
            self._wake_event.clear()
            batch, self._waiting = self._waiting, []
            runs, steps, states, waiters = zip(*batch, strict=True)
            await self._connection.execute(_UPSERT, runs, steps, states)  # pyright: ignore[reportUnknownMemberType] - untyped
            for waiter in waiters:
                waiter.set_result(None)


async def _main(url: str, database: str) -> None:
    connection = cast("asyncpg.Connection", await asyncpg.connect(database))  # pyright: ignore[reportUnknownMemberType] - as above
    await connection.execute(_TABLE)  # pyright: ignore[reportUnknownMemberType] - as above
    writer = _Writer(connection)
    # One that fails ends the floor, rather than let everybody wait forever.
    async with asyncio.TaskGroup() as group:
        writing = group.create_task(writer.write_batches())
        await serve_handwritten(url, writer)
        writing.cancel()


if __name__ == "__main__":
    uvloop.run(_main(sys.argv[1], sys.argv[2]))
