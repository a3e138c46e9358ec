"""
The agent's tasks, in memory: those that run and those that ended recently.

A message that is sent again finds its task, also while the task runs, so a client that got no response may retry.
A task that has ended, or waits for a reply that never comes, is removed after `keep`, and earlier if there are too
many.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from trunkline.agentkit.errors import UNSUPPORTED, RequestError, TaskNotFound, TooManyTasks, invalid_params
from trunkline.agentkit.handlers import Handler, perform
from trunkline.agentkit.messages import Message
from trunkline.agentkit.task_execution import TaskExecution

MAX_TASKS = 10_000
KEEP = timedelta(hours=1)
# For ended tasks: a few with large files must not fill the machine's memory.
MAX_KEPT_BYTES = 256 * 1024 * 1024

# Checking every task on every message would cost more than handling the message.
_EXPIRE_EVERY = timedelta(seconds=1)
# Blocking handlers mostly wait for I/O; more threads than this are no faster.
_MAX_THREADS = 64


def _utc_now() -> datetime:
    return datetime.now(UTC)


class InMemoryTaskStore:
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
        # Oldest first.
        self._executions: dict[str, TaskExecution] = {}
        self._by_message: dict[bytes, TaskExecution] = {}
        self._by_context: dict[str, list[TaskExecution]] = {}
        self._expired_at: datetime | None = None
        self._threads: ThreadPoolExecutor | None = None

    def submit(self, message: Message, handler: Handler) -> TaskExecution:
        """The task of a message: a new one, the one that it replies to, or the one that it started before."""
        self._expire()
        known = self._by_message.get(message.key())
        if known is not None:
            return known
        return self._begin(message, handler) if message.task_id is None else self._reply(message)

    def get(self, task_id: str) -> TaskExecution:
        self._expire()
        execution = self._executions.get(task_id)
        if execution is None:
            raise TaskNotFound(task_id)
        return execution

    def in_context(self, context_id: str) -> list[TaskExecution]:
        """Most recently changed first."""
        found = self._by_context.get(context_id, [])
        return sorted(found, key=lambda execution: execution.status.at, reverse=True)

    async def close(self) -> None:
        """Cancels running tasks and waits until they have ended."""
        runners = [
            execution.runner for execution in self._executions.values() if execution.runner is not None
        ]
        for execution in list(self._executions.values()):
            execution.cancel()
        await asyncio.gather(*runners, return_exceptions=True)
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._threads = None

    def _begin(self, message: Message, handler: Handler) -> TaskExecution:
        if len(self._executions) >= self._max_tasks:
            self._make_room()
        context_id = message.context_id or str(uuid4())
        earlier = self._by_context.setdefault(context_id, [])
        before = [message for execution in earlier for message in execution.transcript()]
        execution = TaskExecution(message, str(uuid4()), context_id, self._now)
        self._executions[execution.id] = self._by_message[message.key()] = execution
        earlier.append(execution)
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_MAX_THREADS, thread_name_prefix="agent")
        execution.runner = asyncio.create_task(perform(handler, execution, before, self._threads))
        return execution

    def _reply(self, message: Message) -> TaskExecution:
        execution = self.get(message.task_id or "")
        if message.context_id not in (None, execution.context_id):
            raise invalid_params(f"message.contextId is not that of task {execution.id}")
        if not execution.is_asking:
            raise RequestError(
                UNSUPPORTED, f"Task {execution.id} is {execution.state}: it accepts no messages in this state"
            )
        execution.reply(message)
        self._by_message[message.key()] = execution
        return execution

    def _expire(self) -> None:
        now = self._now()
        if self._expired_at is not None and now - self._expired_at < _EXPIRE_EVERY:
            return
        self._expired_at = now
        for execution in [execution for execution in self._executions.values() if execution.is_idle]:
            if now - execution.status.at >= self._keep:
                self._forget(execution)
        ended = [execution for execution in self._executions.values() if execution.has_ended]
        excess = sum(execution.size for execution in ended) - self._max_kept_bytes
        for execution in ended:
            if excess <= 0:
                break
            excess -= execution.size
            self._forget(execution)

    def _make_room(self) -> None:
        oldest = next((execution for execution in self._executions.values() if execution.has_ended), None)
        if oldest is None:
            raise TooManyTasks(self._max_tasks)
        self._forget(oldest)

    def _forget(self, execution: TaskExecution) -> None:
        execution.cancel()
        del self._executions[execution.id]
        for key in execution.keys:
            self._by_message.pop(key, None)
        others = self._by_context[execution.context_id]
        others.remove(execution)
        if not others:
            del self._by_context[execution.context_id]
