"""
Runs the calls of a zone, each once, whatever happens to its caller and to the process.

A call is stored before its handler runs, and again when it ends. A restart in between finds it: if its method is
restartable the call runs again, otherwise it has failed. So no id runs twice, and no call is lost.

A call that takes longer than `accept_after` is answered with `ZoneCallAccepted` and continues. At its deadline it is
cancelled and has failed; a handler in a thread cannot be cancelled, and its late result is dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import TypeAlias

import msgspec
import structlog

from trunkline.clock import Clock, Instant
from trunkline.errors import ConfigurationError, Unavailable
from trunkline.id_generation import new_id
from trunkline.jsontypes import JsonObject
from trunkline.services.security.vault import Vault
from trunkline.stores.zones import CallKey, ZoneCall, ZoneStore
from trunkline.system_clock import SystemClock
from trunkline.telemetry import log_events
from trunkline.zones.errors import INTERNAL_ERROR, OTHER, TIMEOUT, ZoneFault, error_text

log = structlog.stdlib.get_logger(__name__)

# A call that ran each time the process died probably kills it.
MAX_RUNS = 5
# How often old results are deleted.
_CLEANUP_INTERVAL = timedelta(minutes=1)
# For cancelled handlers to clean up.
_CANCEL_SECONDS = 1.0


class ZoneCallJob(msgspec.Struct, frozen=True, kw_only=True):
    """A call that is ready to run."""

    key: CallKey
    method: str
    params: JsonObject
    # See `ZoneCall`.
    digest: bytes
    # The JSON text of the result; raises a `ZoneFault`, and nothing else but a cancellation.
    perform: Callable[[], Awaitable[bytes]]
    # Seconds.
    deadline: float
    restartable: bool = False
    correlation_id: str | None = None


class ZoneCallSucceeded(msgspec.Struct, frozen=True):
    """The JSON text of the answer's `result`."""

    result: bytes


class ZoneCallErrored(msgspec.Struct, frozen=True):
    """The JSON text of the answer's `error`."""

    error: bytes


class ZoneCallAccepted(msgspec.Struct, frozen=True):
    task_id: str


CallOutcome: TypeAlias = ZoneCallSucceeded | ZoneCallErrored
CallAnswer: TypeAlias = CallOutcome | ZoneCallAccepted
# The job of a call that a restart has interrupted, from its params; None if its method is not restartable.
RestartJob: TypeAlias = Callable[[ZoneCall, JsonObject], ZoneCallJob | None]


class _RunningCall:
    """A running call, or an ended one whose outcome is not stored yet."""

    __slots__ = (
        "accepted",
        "is_long",
        "job",
        "left_to_restart",
        "outcome",
        "task",
        "task_id",
        "timer",
        "waiters",
    )

    def __init__(self, job: ZoneCallJob, task_id: str) -> None:
        self.job = job
        self.task_id = task_id
        # It has taken longer than `accept_after`; it is accepted once that is on disk.
        self.is_long = False
        self.accepted = False
        # A stop leaves it to the next start: its outcome in this process does not count.
        self.left_to_restart = False
        self.outcome: CallOutcome | None = None
        self.waiters: list[asyncio.Future[None]] = []
        self.task: asyncio.Task[None] | None = None
        self.timer: asyncio.TimerHandle | None = None

    @property
    def has_answer(self) -> bool:
        """Whether its caller can be answered."""
        return self.outcome is not None or self.accepted

    def wake(self) -> None:
        waiters, self.waiters = self.waiters, []
        for waiter in waiters:
            # Done: its caller has disconnected.
            if not waiter.done():
                waiter.set_result(None)


class ZoneCallRunner:
    """Resumes interrupted calls before the first new one, and stops before its store closes."""

    def __init__(
        self,
        store: ZoneStore,
        vault: Vault,
        *,
        accept_after: float,
        keep: timedelta,
        clock: Clock | None = None,
    ) -> None:
        self._store = store
        self._vault = vault
        self._accept_after = accept_after
        self._keep = keep
        self._clock = clock or SystemClock()
        self._running: dict[CallKey, _RunningCall] = {}
        # Also those that timed out: a task without a reference may be garbage-collected while it runs.
        self._tasks: set[asyncio.Task[None]] = set()
        self._cleanup: asyncio.Task[None] | None = None
        self._stopping = False
        self._all_ended = asyncio.Event()

    @property
    def is_busy(self) -> bool:
        """Whether an accepted call is still running."""
        return any(each.accepted and each.outcome is None for each in self._running.values())

    @property
    def _is_ending(self) -> bool:
        """Whether the event loop ends: it cancels all tasks at once, including the cleanup."""
        return self._cleanup is None or self._cleanup.cancelling() > 0

    async def resume_calls(self, restart_job: RestartJob) -> None:
        """Resumes or fails the calls that an earlier process left."""
        for call in self._store.running():
            await self._resume_call(call, restart_job)
        self._cleanup = asyncio.create_task(self._remove_expired_forever())

    async def run(self, job: ZoneCallJob) -> CallAnswer:
        """The first answer to a call. If the caller disconnects, the call continues."""
        running = self._running.get(job.key)
        if running is None:
            begun = self._begin(job)
            if not isinstance(begun, _RunningCall):
                return begun
            running = begun
        elif running.job.digest != job.digest:
            return _other_params(job.correlation_id)
        if not running.has_answer:
            await self._wait_for_first_answer(running)
        return running.outcome or ZoneCallAccepted(running.task_id)

    def result_of(self, caller: str, task_id: str) -> CallAnswer | None:
        """The outcome of a task so far; None: the task is unknown."""
        try:
            call = self._store.call(caller, task_id)
        except Unavailable as exc:
            return _errored(
                f"The answer could not be read: {exc.message} Ask again.", "store_unavailable", None
            )
        if call is None:
            return None
        running = self._running.get(call.key)
        if running is not None:
            return running.outcome or ZoneCallAccepted(task_id)
        return _outcome(call) or ZoneCallAccepted(task_id)

    async def stop(self, seconds: float) -> None:
        """Gives running calls this time to end. The rest runs again after the next start, or fails."""
        self._stopping = True
        if self._cleanup is not None:
            self._cleanup.cancel()
        left = self._unfinished()
        if left:
            self._all_ended.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._all_ended.wait()
        for running in self._unfinished():
            await self._interrupt(running)
        self._write_unwritten()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_CANCEL_SECONDS)

    async def remove_expired(self) -> None:
        """Stores outcomes that could not be stored before, and deletes old calls."""
        self._write_unwritten()
        now = self._clock.now()
        before = Instant(now - self._keep // timedelta(microseconds=1))
        forgotten = 1
        while forgotten:
            forgotten = self._store.forget(before, now)
            # Lets calls run in between.
            await asyncio.sleep(0)

    def _begin(self, job: ZoneCallJob) -> _RunningCall | CallOutcome:
        if self._stopping:
            return _stopped(job.correlation_id)
        call = ZoneCall(
            key=job.key,
            task_id=new_id(),
            method=job.method,
            digest=job.digest,
            began_at=self._clock.now(),
            params=self._vault.seal(job.params, owner=_owner(job.key)) if job.restartable else None,
            correlation_id=job.correlation_id,
        )
        try:
            known = self._store.begin(call)
        except Unavailable as exc:
            log.error(log_events.ZONE_NOT_WRITTEN, method=job.method, error=exc.message)
            return _errored(
                f"The call could not be stored, so it was not run: {exc.message} Send it again later.",
                "store_unavailable",
                job.correlation_id,
            )
        if known is None:
            return self._launch(job, call.task_id)
        if known.digest != job.digest:
            return _other_params(job.correlation_id)
        return _outcome(known) or _interrupted(known.correlation_id)

    def _launch(self, job: ZoneCallJob, task_id: str) -> _RunningCall:
        running = self._running[job.key] = _RunningCall(job, task_id)
        running.task = asyncio.create_task(self._perform(running))
        self._tasks.add(running.task)
        running.task.add_done_callback(self._tasks.discard)
        # One timer for both times: most calls end before either.
        loop = asyncio.get_running_loop()
        if job.deadline <= self._accept_after:
            running.timer = loop.call_later(job.deadline, self._time_out, running)
        else:
            running.timer = loop.call_later(self._accept_after, self._mark_long, running)
        return running

    async def _perform(self, running: _RunningCall) -> None:
        job = running.job
        try:
            outcome: CallOutcome = ZoneCallSucceeded(await job.perform())
        except ZoneFault as fault:
            outcome = ZoneCallErrored(error_text(fault, job.correlation_id))
        except asyncio.CancelledError:
            if running.outcome is not None or running.left_to_restart or self._is_ending:
                # Cancelled by us, or by the end of the loop: the next start finds the call as it was.
                raise
            # By the handler itself, which may even have cancelled its own task.
            log.error(
                log_events.ZONE_HANDLER_FAILED, method=job.method, error=asyncio.CancelledError.__name__
            )
            outcome = ZoneCallErrored(error_text(ZoneFault(INTERNAL_ERROR), job.correlation_id))
        # Any other error: a call without an outcome would run into its deadline.
        except Exception as exc:  # noqa: BLE001
            log.error(log_events.ZONE_HANDLER_FAILED, method=job.method, error=type(exc).__name__)
            outcome = ZoneCallErrored(error_text(ZoneFault(INTERNAL_ERROR), job.correlation_id))
        self._end(running, outcome)

    def _end(self, running: _RunningCall, outcome: CallOutcome) -> None:
        """Sets the outcome, once."""
        if running.outcome is not None or running.left_to_restart:
            return
        running.outcome = outcome
        if running.timer is not None:
            running.timer.cancel()
        try:
            self._write(running, outcome)
        finally:
            running.wake()
            if self._stopping and not self._unfinished():
                self._all_ended.set()

    def _write(self, running: _RunningCall, outcome: CallOutcome) -> None:
        key, now = running.job.key, self._clock.now()
        try:
            match outcome:
                case ZoneCallSucceeded(result):
                    self._store.finish(key, now, result=result)
                case ZoneCallErrored(error):
                    self._store.finish(key, now, error=error)
        except Unavailable as exc:
            # It stays in memory, where the next poll finds it, until it can be stored.
            log.error(log_events.ZONE_NOT_WRITTEN, method=running.job.method, error=exc.message)
        else:
            del self._running[key]

    def _write_unwritten(self) -> None:
        for running in list(self._running.values()):
            if running.outcome is not None:
                self._write(running, running.outcome)

    def _mark_long(self, running: _RunningCall) -> None:
        running.is_long = True
        rest = running.job.deadline - self._accept_after
        running.timer = asyncio.get_running_loop().call_later(rest, self._time_out, running)
        running.wake()

    def _time_out(self, running: _RunningCall) -> None:
        job = running.job
        log.warning(log_events.ZONE_CALL_TIMED_OUT, method=job.method, correlation_id=job.correlation_id)
        data: JsonObject = {"deadline_seconds": job.deadline}
        self._end(running, ZoneCallErrored(error_text(ZoneFault(TIMEOUT, data=data), job.correlation_id)))
        if running.task is not None:
            running.task.cancel()

    async def _wait_for_first_answer(self, running: _RunningCall) -> None:
        """Returns when the call has ended or is accepted."""
        if not running.is_long:
            await self._wait_for_change(running)
        if running.has_answer:
            return
        try:
            await self._store.accept(running.job.key)
        except Unavailable as exc:
            # What is not on disk must not be promised; the caller can still wait for the outcome.
            log.error(log_events.ZONE_NOT_WRITTEN, method=running.job.method, error=exc.message)
            if not running.has_answer:
                await self._wait_for_change(running)
        else:
            running.accepted = True

    async def _wait_for_change(self, running: _RunningCall) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        running.waiters.append(waiter)
        await waiter

    async def _resume_call(self, call: ZoneCall, restart_job: RestartJob) -> None:
        job = self._restartable_job(call, restart_job)
        if job is None:
            log.warning(
                log_events.ZONE_CALL_INTERRUPTED, method=call.method, correlation_id=call.correlation_id
            )
            self._store.finish(
                call.key, self._clock.now(), error=_interrupted(call.correlation_id, call.runs).error
            )
            return
        log.info(log_events.ZONE_CALL_RUN_AGAIN, method=call.method, correlation_id=call.correlation_id)
        self._store.begin_again(call.key)
        if not call.accepted:
            await self._store.accept(call.key)
        self._launch(job, call.task_id).accepted = True

    def _restartable_job(self, call: ZoneCall, restart_job: RestartJob) -> ZoneCallJob | None:
        if call.params is None or call.runs >= MAX_RUNS:
            return None
        try:
            return restart_job(call, self._vault.open(call.params, owner=_owner(call.key)))
        except (ConfigurationError, ZoneFault) as exc:
            # Encrypted with another key, or params that today's schema does not accept.
            log.error(log_events.ZONE_CALL_NOT_REVIVED, method=call.method, error=type(exc).__name__)
            return None

    async def _interrupt(self, running: _RunningCall) -> None:
        if running.outcome is not None:
            # It ended while another one was interrupted.
            return
        job = running.job
        log.warning(log_events.ZONE_CALL_INTERRUPTED, method=job.method, correlation_id=job.correlation_id)
        if not job.restartable:
            self._end(running, _interrupted(job.correlation_id))
            return
        running.left_to_restart = True
        del self._running[job.key]
        if running.timer is not None:
            running.timer.cancel()
        if not running.accepted:
            try:
                await self._store.accept(job.key)
            except Unavailable as exc:
                log.error(log_events.ZONE_NOT_WRITTEN, method=job.method, error=exc.message)
                running.outcome = _stopped(job.correlation_id)
            running.accepted = True
        running.wake()

    def _unfinished(self) -> Sequence[_RunningCall]:
        return [running for running in self._running.values() if running.outcome is None]

    async def _remove_expired_forever(self) -> None:
        while True:
            await asyncio.sleep(_CLEANUP_INTERVAL.total_seconds())
            try:
                await self.remove_expired()
            except Unavailable as exc:
                log.error(log_events.STORE_UNAVAILABLE, error=exc.message)


def _owner(key: CallKey) -> str:
    return f"zone call {key.caller} {key.id.decode(errors='replace')}"


def _outcome(call: ZoneCall) -> CallOutcome | None:
    if call.result is not None:
        return ZoneCallSucceeded(call.result)
    return None if call.error is None else ZoneCallErrored(call.error)


def _errored(message: str, reason: str, correlation_id: str | None) -> ZoneCallErrored:
    return ZoneCallErrored(error_text(ZoneFault(OTHER, message, {"reason": reason}), correlation_id))


def _stopped(correlation_id: str | None) -> ZoneCallErrored:
    return _errored(
        "The zone is stopping and has no answer yet. Send the same request again later, with the same id.",
        "stopping",
        correlation_id,
    )


def _other_params(correlation_id: str | None) -> ZoneCallErrored:
    return _errored(
        "This id was used for a call with another method or other params. Nothing was run: send it with a new id.",
        "id_reused",
        correlation_id,
    )


def _interrupted(correlation_id: str | None, runs: int = 1) -> ZoneCallErrored:
    again = f" It was started {runs} times and is not started again." if runs > 1 else ""
    return _errored(
        f"The work was interrupted by a restart of the zone; it may have been done in part.{again}",
        "interrupted",
        correlation_id,
    )
