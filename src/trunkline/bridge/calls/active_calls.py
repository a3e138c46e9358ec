"""
The calls that run now, and the updates of calls that wait for their commit.

Each call runs in its own asyncio task: a slow agent delays no other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

from trunkline.bridge.calls.results import CallExchanges, CallProgress, CallResult, CallUpdate, task_log
from trunkline.messages import StepError, fix_for
from trunkline.stores.base import ClaimedTask, TaskKey
from trunkline.telemetry import log_events
from trunkline.transports.answer_memory import CALL_MEMORY, CallMemory, MemoryBudget


class TaskCaller(Protocol):
    """Calls agents. Raises nothing but a cancellation: whatever else happens becomes a result."""

    def call(self, claim: ClaimedTask, report: Callable[[CallUpdate], None]) -> Awaitable[CallResult]:
        """`report` takes what is to be written while the call goes on."""
        ...

    def stop_listening(self) -> None:
        """Ends every wait for an agent that can be polled later, by another process."""
        ...

    async def cancel(self, claim: ClaimedTask, *, ended: bool) -> CallResult | CallExchanges:
        """Asks the agent to cancel its task. `ended`: our record of it ends with that."""
        ...

    def cancelled(self, claim: ClaimedTask) -> CallResult:
        """The result of a call that was cancelled on request."""
        ...

    def failed(self, claim: ClaimedTask, error: StepError) -> CallResult: ...


class ActiveCalls:
    def __init__(self, runner: TaskCaller, memory: MemoryBudget | None = None) -> None:
        """`memory`: what the answers of the calls take together until their results are stored."""
        self._runner = runner
        self._budget = memory or MemoryBudget()
        self._tasks: dict[TaskKey, asyncio.Task[None]] = {}
        self._cancelling_remote: dict[asyncio.Task[None], TaskKey] = {}
        # Tasks that agents have taken while they are called.
        self._remote_tasks: dict[TaskKey, str] = {}
        # Whether the agent is asked to cancel, too: then the task ends when it has answered, and not with the call.
        self._cancelled: dict[TaskKey, bool] = {}
        self._idle = asyncio.Event()
        self._idle.set()
        self._wake: Callable[[], None] = _wake_nothing
        self.updates: list[CallUpdate] = []

    def on_update(self, wake: Callable[[], None]) -> None:
        self._wake = wake

    @property
    def in_flight(self) -> int:
        return len(self._tasks) + len(self._cancelling_remote)

    @property
    def has_memory(self) -> bool:
        """False while calls wait for the memory that their answers need, or their inputs take much of it."""
        return self._budget.has_room

    def has(self, key: TaskKey) -> bool:
        """Whether the task is called here, or has updates that are not written yet."""
        return (
            key in self._tasks
            or key in self._cancelling_remote.values()
            or any(update.claim.key == key for update in self.updates)
        )

    def start(self, claim: ClaimedTask) -> None:
        self._idle.clear()
        # Counted now: the next claim may come before the call begins.
        memory = CallMemory(self._budget, claim.payload_bytes)
        task = asyncio.get_running_loop().create_task(self._call(claim, memory))
        self._tasks[claim.key] = task

    async def _call(self, claim: ClaimedTask, memory: CallMemory) -> None:
        # Of this asyncio task alone.
        CALL_MEMORY.set(memory)
        result: CallResult | None = None
        try:
            result = await self._runner.call(claim, self._add_update)
        except asyncio.CancelledError:
            asks_agent = self._cancelled.get(claim.key)
            if asks_agent is None:
                raise
            result = None if asks_agent else self._runner.cancelled(claim)
        except Exception as exc:  # noqa: BLE001 - it is logged, and the call has to end
            task_log(claim.task).exception(log_events.CALL_CRASHED)
            message = f"Trunkline failed while calling the agent: {type(exc).__name__}"
            error = StepError(code="internal_error", message=message, fix=fix_for("internal_error"))
            result = self._runner.failed(claim, error)
        finally:
            del self._tasks[claim.key]
            self._remote_tasks.pop(claim.key, None)
            self._cancelled.pop(claim.key, None)
            self._note_idle()
            if result is None:
                memory.release()
        if result is not None:
            result.memory = memory
            self._add_update(result)

    def discard_written(self, number: int) -> None:
        """So many of the first updates are stored: their answers take no more memory."""
        for update in self.updates[:number]:
            if isinstance(update, CallResult) and update.memory is not None:
                update.memory.release()
        del self.updates[:number]

    def cancel(self, claim: ClaimedTask) -> None:
        """Stops one of our calls; if the agent already has a remote task, it is asked to cancel that first."""
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
            self._add_update(self._runner.cancelled(claim))

    def _withdraw(self, claim: ClaimedTask) -> None:
        """Its call has ended a moment ago. If the agent works on, it is asked to cancel, and that result is dropped."""
        for index, update in enumerate(self.updates):
            if not isinstance(update, CallResult) or update.claim.key != claim.key:
                continue
            answer = update.answer
            if answer.poll_at is not None:
                if update.memory is not None:
                    update.memory.release()
                self.updates[index] = CallExchanges(claim=update.claim, exchanges=update.exchanges)
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
            update = await self._runner.cancel(claim, ended=ended)
        except Exception:  # noqa: BLE001 - it is logged, and the task has to end
            task_log(claim.task).exception(log_events.CALL_CRASHED)
            if not ended:
                return
            # The agent may not know, but the task is over, and its slot is free.
            update = self._runner.cancelled(claim)
        self._add_update(update)

    def _remote_cancelled(self, task: asyncio.Task[None]) -> None:
        del self._cancelling_remote[task]
        self._note_idle()

    def _add_update(self, update: CallUpdate) -> None:
        if isinstance(update, CallProgress) and update.answer.remote_task_id is not None:
            self._remote_tasks[update.claim.key] = update.answer.remote_task_id
        self.updates.append(update)
        self._wake()

    def _note_idle(self) -> None:
        if not self._tasks and not self._cancelling_remote:
            self._idle.set()

    async def drain(self, seconds: float) -> int:
        """Lets the running calls end; how many had to be abandoned when the time was up."""
        self._runner.stop_listening()
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
    """Nothing waits for updates yet."""
