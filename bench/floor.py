"""
The floor: what the job costs a program written for nothing else.

aiohttp, SQLite with `synchronous=FULL` and group commit, four commits a run, the state of each step durable before
the next begins. No recovery, no retries, no API, no workflow language. Nobody should be asked to be faster.

    python -m bench.floor AGENT_URL DATABASE
"""

from __future__ import annotations

import asyncio
import queue
import sys
import threading
import uuid
from collections.abc import Awaitable, Callable

import aiohttp
import apsw
import msgspec
import uvloop

from bench.job import STEPS, TEXT, request_body
from bench.load import take_orders

_UPSERT = (
    "INSERT INTO runs(id, step, state) VALUES (?, ?, ?)"
    " ON CONFLICT(id) DO UPDATE SET step = excluded.step, state = excluded.state"
)
_encoder = msgspec.json.Encoder()


class _Part(msgspec.Struct):
    text: str


class _Artifact(msgspec.Struct):
    parts: list[_Part]


class _Task(msgspec.Struct):
    artifacts: list[_Artifact]


class _Answer(msgspec.Struct):
    id: str
    result: _Task


_answers = msgspec.json.Decoder(_Answer)
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


async def _run_workflow(session: aiohttp.ClientSession, url: str, writer: _Writer) -> None:
    run = str(uuid.uuid4())
    text = TEXT
    await writer.save(run, 0, _encoder.encode({"text": text}))
    for step in range(1, STEPS + 1):
        task_id = f"{run}/{step}"
        async with session.post(url, data=_encoder.encode(request_body(task_id, text))) as response:
            answer = _answers.decode(await response.read())
        assert answer.id == task_id
        text = answer.result.artifacts[0].parts[0].text
        await writer.save(run, step, _encoder.encode({"text": text}))


async def _main(url: str, path: str) -> None:
    writer = _Writer(path)
    connector = aiohttp.TCPConnector(limit=0)
    headers = {"Content-Type": "application/json"}
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:

        def slot(number: int) -> Callable[[], Awaitable[None]]:
            del number
            return lambda: _run_workflow(session, url, writer)

        await take_orders(slot)


if __name__ == "__main__":
    # The writer gets the interpreter back sooner after a commit; measured, the floor is faster for it.
    sys.setswitchinterval(0.001)
    uvloop.run(_main(sys.argv[1], sys.argv[2]))
