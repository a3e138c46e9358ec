"""
Calls under way, and those that have ended and wait for their commit.

A call runs in a task of its own: a slow agent holds up nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

import msgspec

from trunkline.bridge.calls.results import CallUpdate, task_log
from trunkline.messages import StepError, fix_for
from trunkline.stores.base import ClaimedTask, TaskKey
from trunkline.telemetry import names


class CallRunner(Protocol):
    """Talks to agents. Never raises: whatever happens becomes an outcome."""

    async def call(self, claim: ClaimedTask, report: Callable[[CallUpdate], None]) -> CallUpdate:
        """`hear` takes what is to be written while the call goes on."""
        ...

    def stop_listening(self) -> None:
        """Ends every wait for an agent that can be asked later: somebody else will ask."""
        ...

    async def cancel(self, claim: ClaimedTask, *, ended: bool) -> CallUpdate:
        """Tells the agent that its task is no longer wanted. `ended`: so does our record of it."""
        ...

    def cancelled(self, claim: ClaimedTask) -> CallUpdate:
        """The end of a call that was broken off on request."""
        ...

    def failed(self, claim: ClaimedTask, error: StepError) -> CallUpdate: ...


class ActiveCalls:
    def __init__(self, invoker: CallRunner) -> None:
        self._invoker = invoker
        self._tasks: dict[TaskKey, asyncio.Task[None]] = {}
        self._cancelling_remote: dict[asyncio.Task[None], TaskKey] = {}
        # Tasks that agents have taken while they are called.
        self._remote_tasks: dict[TaskKey, str] = {}
        # Whether the agent is told: then the task ends when it knows, and not with the call.
        self._cancelled: dict[TaskKey, bool] = {}
        self._idle = asyncio.Event()
        self._idle.set()
        self._wake: Callable[[], None] = _wake_nothing
        self.updates: list[CallUpdate] = []

    def on_update(self, ring: Callable[[], None]) -> None:
        self._wake = ring

    @property
    def in_flight(self) -> int:
        return len(self._tasks) + len(self._cancelling_remote)

    def has(self, key: TaskKey) -> bool:
        """Whether somebody here works on the task, or has news of it that are not written yet."""
        return (
            key in self._tasks
            or key in self._cancelling_remote.values()
            or any(item.claim.key == key for item in self.updates)
        )

    def start(self, claim: ClaimedTask) -> None:
        self._idle.clear()
        task = asyncio.get_running_loop().create_task(self._call(claim))
        self._tasks[claim.key] = task

    async def _call(self, claim: ClaimedTask) -> None:
        try:
            finished = await self._invoker.call(claim, self._add_update)
        except asyncio.CancelledError:
            is_told = self._cancelled.get(claim.key)
            if is_told is None:
                raise
            finished = None if is_told else self._invoker.cancelled(claim)
        except Exception as exc:  # noqa: BLE001 - it is logged, and the call has to end
            task_log(claim.task).exception(names.CALL_CRASHED)
            message = f"Trunkline failed while calling the agent: {type(exc).__name__}"
            error = StepError(code="internal_error", message=message, fix=fix_for("internal_error"))
            finished = self._invoker.failed(claim, error)
        finally:
            del self._tasks[claim.key]
            self._remote_tasks.pop(claim.key, None)
            self._cancelled.pop(claim.key, None)
            self._note_idle()
        if finished is not None:
            self._add_update(finished)

    def cancel(self, claim: ClaimedTask) -> None:
        """Stops a call of ours; where the agent has a task by now, it is told before the task ends."""
        task = self._tasks.get(claim.key)
        if task is None:
            self._withdraw(claim)
            return
        if claim.key in self._cancelled:
            return
        remote_task_id = claim.remote_task_id or self._remote_tasks.get(claim.key)
        self._cancelled[claim.key] = remote_task_id is not None
        task.cancel()
        if remote_task_id is not None:
            self.cancel_remote(msgspec.structs.replace(claim, remote_task_id=remote_task_id), ended=True)

    def ensure_ended(self, claim: ClaimedTask) -> None:
        """The store says that this task is ours, and is to end."""
        if self.has(claim.key):
            self.cancel(claim)
        elif claim.remote_task_id is not None:
            # The stop came while its last call was ending.
            self.cancel_remote(claim, ended=True)
        else:
            self._add_update(self._invoker.cancelled(claim))

    def _withdraw(self, claim: ClaimedTask) -> None:
        """Its call has ended a moment ago. If the agent goes on, it is told, and the news is not written any more."""
        for item in self.updates:
            answer = item.answer
            if item.claim.key == claim.key and answer is not None and answer.poll_at is not None:
                item.answer = item.result = None
                self.cancel_remote(
                    msgspec.structs.replace(claim, remote_task_id=answer.remote_task_id), ended=True
                )

    def cancel_remote(self, claim: ClaimedTask, *, ended: bool) -> None:
        self._idle.clear()
        task = asyncio.get_running_loop().create_task(self._cancel_remote(claim, ended=ended))
        self._cancelling_remote[task] = claim.key
        task.add_done_callback(self._remote_cancelled)

    async def _cancel_remote(self, claim: ClaimedTask, *, ended: bool) -> None:
        try:
            finished = await self._invoker.cancel(claim, ended=ended)
        except Exception:  # noqa: BLE001 - it is logged, and the task has to end
            task_log(claim.task).exception(names.CALL_CRASHED)
            if not ended:
                return
            # The agent may not know, but the task is over, and its slot is free.
            finished = self._invoker.cancelled(claim)
        self._add_update(finished)

    def _remote_cancelled(self, task: asyncio.Task[None]) -> None:
        del self._cancelling_remote[task]
        self._note_idle()

    def _add_update(self, finished: CallUpdate) -> None:
        answer = finished.answer
        if answer is not None and answer.holds and answer.remote_task_id is not None:
            self._remote_tasks[finished.claim.key] = answer.remote_task_id
        self.updates.append(finished)
        self._wake()

    def _note_idle(self) -> None:
        if not self._tasks and not self._cancelling_remote:
            self._idle.set()

    async def drain(self, seconds: float) -> int:
        """Lets the calls under way end; how many had to be abandoned when the time was up."""
        self._invoker.stop_listening()
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            abandoned = [*self._tasks.values(), *self._cancelling_remote]
            for task in abandoned:
                task.cancel()
            await asyncio.gather(*abandoned, return_exceptions=True)
            return len(abandoned)
        return 0


def _wake_nothing() -> None:
    """Nobody waits yet."""
