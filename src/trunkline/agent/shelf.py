"""
The tasks that an agent has in hand or has lately ended, in memory.

A message that was seen before finds its task again, also while that runs: whoever got no answer may send it once more.
What has ended, or waits for a reply that does not come, is forgotten after `keep`, and earlier when there are
too many.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from trunkline.agent.handlers import Handler, perform
from trunkline.agent.messages import Message
from trunkline.agent.refusals import UNSUPPORTED, Busy, Refusal, UnknownTask, invalid_params
from trunkline.agent.work import Work

MAX_TASKS = 10_000
KEEP = timedelta(hours=1)
# What ended tasks may take; a few with large files in them must not fill the machine's memory.
MAX_KEPT_BYTES = 256 * 1024 * 1024

# To look at every task with every message would cost more than the messages do.
_SWEEP_EVERY = timedelta(seconds=1)
# Handlers that block wait for others, mostly; more than this are no faster.
_MAX_THREADS = 64


def _utc_now() -> datetime:
    return datetime.now(UTC)


class Shelf:
    def __init__(
        self,
        *,
        max_tasks: int = MAX_TASKS,
        keep: timedelta = KEEP,
        max_kept_bytes: int = MAX_KEPT_BYTES,
        now: Callable[[], datetime] = _utc_now,
    ) -> None:
        self._max_tasks = max_tasks
        self._keep = keep
        self._max_kept_bytes = max_kept_bytes
        self._now = now
        # The oldest first.
        self._works: dict[str, Work] = {}
        self._by_message: dict[bytes, Work] = {}
        self._by_context: dict[str, list[Work]] = {}
        self._swept_at: datetime | None = None
        self._threads: ThreadPoolExecutor | None = None

    def take(self, message: Message, handler: Handler) -> Work:
        """The task of a message: a new one, the one that it replies to, or the one that it began before."""
        self._sweep()
        known = self._by_message.get(message.key())
        if known is not None:
            return known
        return self._begin(message, handler) if message.task_id is None else self._reply(message)

    def find(self, task_id: str) -> Work:
        self._sweep()
        work = self._works.get(task_id)
        if work is None:
            raise UnknownTask(task_id)
        return work

    def in_context(self, context_id: str) -> list[Work]:
        """The one that moved last comes first."""
        found = self._by_context.get(context_id, [])
        return sorted(found, key=lambda work: work.status.at, reverse=True)

    async def close(self) -> None:
        """Cancels what still runs, and waits until it has ended."""
        runners = [work.runner for work in self._works.values() if work.runner is not None]
        for work in list(self._works.values()):
            work.cancel()
        await asyncio.gather(*runners, return_exceptions=True)
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._threads = None

    def _begin(self, message: Message, handler: Handler) -> Work:
        if len(self._works) >= self._max_tasks:
            self._make_room()
        context_id = message.context_id or str(uuid4())
        earlier = self._by_context.setdefault(context_id, [])
        before = [said for work in earlier for said in work.said()]
        work = Work(message, str(uuid4()), context_id, self._now)
        self._works[work.id] = self._by_message[message.key()] = work
        earlier.append(work)
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_MAX_THREADS, thread_name_prefix="agent")
        work.runner = asyncio.create_task(perform(handler, work, before, self._threads))
        return work

    def _reply(self, message: Message) -> Work:
        work = self.find(message.task_id or "")
        if message.context_id not in (None, work.context_id):
            raise invalid_params(f"message.contextId is not that of task {work.id}")
        if not work.is_asking:
            raise Refusal(UNSUPPORTED, f"Task {work.id} is {work.state}: it takes no message now")
        work.reply(message)
        self._by_message[message.key()] = work
        return work

    def _sweep(self) -> None:
        now = self._now()
        if self._swept_at is not None and now - self._swept_at < _SWEEP_EVERY:
            return
        self._swept_at = now
        for work in [work for work in self._works.values() if work.rests]:
            if now - work.status.at >= self._keep:
                self._forget(work)
        ended = [work for work in self._works.values() if work.has_ended]
        excess = sum(work.size for work in ended) - self._max_kept_bytes
        for work in ended:
            if excess <= 0:
                break
            excess -= work.size
            self._forget(work)

    def _make_room(self) -> None:
        oldest = next((work for work in self._works.values() if work.has_ended), None)
        if oldest is None:
            raise Busy(self._max_tasks)
        self._forget(oldest)

    def _forget(self, work: Work) -> None:
        work.cancel()
        del self._works[work.id]
        for key in work.keys:
            self._by_message.pop(key, None)
        others = self._by_context[work.context_id]
        others.remove(work)
        if not others:
            del self._by_context[work.context_id]
