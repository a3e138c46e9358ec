"""
The work of a zone: each call is run once, whatever happens to its caller and to us.

A call is written down before its handler runs, and again when it has ended. In between it is found after a restart,
and run again where its method allows that, or else reported as failed. So the same id never runs twice, and none is
forgotten.

Work that takes longer than `accept_after` is answered `Accepted` and goes on. At its deadline it is answered with a
timeout and cancelled; a handler that runs in a thread cannot be cancelled, and what it returns later is dropped.
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
from trunkline.telemetry import names
from trunkline.zones.faults import INTERNAL_ERROR, OTHER, TIMEOUT, ZoneFault, error_text

log = structlog.stdlib.get_logger(__name__)

# A call that was under way whenever the process died is likely to be what kills it.
MOST_RUNS = 5
# How often old answers are forgotten.
_SWEEP = timedelta(minutes=1)
# For what handlers do when they are cancelled.
_FAREWELL_SECONDS = 1.0


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A call that may be run."""

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


class Done(msgspec.Struct, frozen=True):
    """The JSON text of the answer's `result`."""

    result: bytes


class Broke(msgspec.Struct, frozen=True):
    """The JSON text of the answer's `error`."""

    error: bytes


class Accepted(msgspec.Struct, frozen=True):
    task_id: str


Outcome: TypeAlias = Done | Broke
Answer: TypeAlias = Outcome | Accepted
# What a call that a restart has interrupted is now, with its params; None where its method may not run again.
Revival: TypeAlias = Callable[[ZoneCall, JsonObject], Job | None]


class _Running:
    """A call under way, or one that has ended and could not be written down yet."""

    __slots__ = ("accepted", "is_long", "job", "let_go", "outcome", "task", "task_id", "timer", "waiters")

    def __init__(self, job: Job, task_id: str) -> None:
        self.job = job
        self.task_id = task_id
        # It has taken longer than `accept_after`; once that is on the disk, it is accepted.
        self.is_long = False
        self.accepted = False
        # A stop has left it to the next start: whatever it ends with now is not its end.
        self.let_go = False
        self.outcome: Outcome | None = None
        self.waiters: list[asyncio.Future[None]] = []
        self.task: asyncio.Task[None] | None = None
        self.timer: asyncio.TimerHandle | None = None

    @property
    def has_news(self) -> bool:
        """Whether there is something to answer."""
        return self.outcome is not None or self.accepted

    def wake(self) -> None:
        waiters, self.waiters = self.waiters, []
        for waiter in waiters:
            # Done: its caller has gone away.
            if not waiter.done():
                waiter.set_result(None)


class Work:
    """Started before its first call, and stopped before its store is closed."""

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
        self._running: dict[CallKey, _Running] = {}
        # Those that have been answered with a timeout too: a task that nobody holds may be collected while it runs.
        self._tasks: set[asyncio.Task[None]] = set()
        self._sweeping: asyncio.Task[None] | None = None
        self._stopping = False
        self._all_ended = asyncio.Event()

    @property
    def is_busy(self) -> bool:
        """Whether anything goes on whose caller has been answered."""
        return any(each.accepted and each.outcome is None for each in self._running.values())

    @property
    def _is_ending(self) -> bool:
        """Whether everything is being cancelled: a loop that ends begins with all tasks at once, also this one."""
        return self._sweeping is None or self._sweeping.cancelling() > 0

    async def start(self, revival: Revival) -> None:
        """Takes up what an earlier process has left."""
        for call in self._store.running():
            await self._take_up(call, revival)
        self._sweeping = asyncio.create_task(self._keep_sweeping())

    async def run(self, job: Job) -> Answer:
        """The first answer to a call. Whoever asks goes away without harm: the work goes on."""
        running = self._running.get(job.key)
        if running is None:
            begun = self._begin(job)
            if not isinstance(begun, _Running):
                return begun
            running = begun
        elif running.job.digest != job.digest:
            return _other_params(job.correlation_id)
        if not running.has_news:
            await self._first_news(running)
        return running.outcome or Accepted(running.task_id)

    def result_of(self, caller: str, task_id: str) -> Answer | None:
        """None: nothing is known of such a task."""
        try:
            call = self._store.call(caller, task_id)
        except Unavailable as exc:
            return _broke(
                f"The answer could not be read: {exc.message} Ask again.", "store_unavailable", None
            )
        if call is None:
            return None
        running = self._running.get(call.key)
        if running is not None:
            return running.outcome or Accepted(task_id)
        return _outcome(call) or Accepted(task_id)

    async def stop(self, seconds: float) -> None:
        """Lets what runs end within the time. The rest is run again after the next start, or has failed."""
        self._stopping = True
        if self._sweeping is not None:
            self._sweeping.cancel()
        left = self._unfinished()
        if left:
            self._all_ended.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._all_ended.wait()
        for running in self._unfinished():
            await self._interrupt(running)
        self._write_rest()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_FAREWELL_SECONDS)

    async def sweep(self) -> None:
        """Writes down what could not be written before, and forgets what is old."""
        self._write_rest()
        now = self._clock.now()
        before = Instant(now - self._keep // timedelta(microseconds=1))
        forgotten = 1
        while forgotten:
            forgotten = self._store.forget(before, now)
            # Calls have their turn in between.
            await asyncio.sleep(0)

    def _begin(self, job: Job) -> _Running | Outcome:
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
            log.error(names.ZONE_NOT_WRITTEN, method=job.method, error=exc.message)
            return _broke(
                f"The call could not be written down, so it was not run: {exc.message} Send it again later.",
                "store_unavailable",
                job.correlation_id,
            )
        if known is None:
            return self._launch(job, call.task_id)
        if known.digest != job.digest:
            return _other_params(job.correlation_id)
        return _outcome(known) or _interrupted(known.correlation_id)

    def _launch(self, job: Job, task_id: str) -> _Running:
        running = self._running[job.key] = _Running(job, task_id)
        running.task = asyncio.create_task(self._perform(running))
        self._tasks.add(running.task)
        running.task.add_done_callback(self._tasks.discard)
        # One timer for both moments: most calls end before either.
        loop = asyncio.get_running_loop()
        if job.deadline <= self._accept_after:
            running.timer = loop.call_later(job.deadline, self._time_out, running)
        else:
            running.timer = loop.call_later(self._accept_after, self._take_long, running)
        return running

    async def _perform(self, running: _Running) -> None:
        job = running.job
        try:
            outcome: Outcome = Done(await job.perform())
        except ZoneFault as fault:
            outcome = Broke(error_text(fault, job.correlation_id))
        except asyncio.CancelledError:
            if running.outcome is not None or running.let_go or self._is_ending:
                # Ours, or the end of the loop: after the restart it is found as it was.
                raise
            # The handler's own, which may even have cancelled the task that it runs in.
            log.error(names.ZONE_HANDLER_FAILED, method=job.method, error=asyncio.CancelledError.__name__)
            outcome = Broke(error_text(ZoneFault(INTERNAL_ERROR), job.correlation_id))
        # Whatever else it is: a call without an end would be waited for until its deadline.
        except Exception as exc:  # noqa: BLE001
            log.error(names.ZONE_HANDLER_FAILED, method=job.method, error=type(exc).__name__)
            outcome = Broke(error_text(ZoneFault(INTERNAL_ERROR), job.correlation_id))
        self._end(running, outcome)

    def _end(self, running: _Running, outcome: Outcome) -> None:
        """The first end counts."""
        if running.outcome is not None or running.let_go:
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

    def _write(self, running: _Running, outcome: Outcome) -> None:
        key, now = running.job.key, self._clock.now()
        try:
            match outcome:
                case Done(result):
                    self._store.finish(key, now, result=result)
                case Broke(error):
                    self._store.finish(key, now, error=error)
        except Unavailable as exc:
            # It stays in memory, where whoever asks again finds it, until it can be written.
            log.error(names.ZONE_NOT_WRITTEN, method=running.job.method, error=exc.message)
        else:
            del self._running[key]

    def _write_rest(self) -> None:
        for running in list(self._running.values()):
            if running.outcome is not None:
                self._write(running, running.outcome)

    def _take_long(self, running: _Running) -> None:
        running.is_long = True
        rest = running.job.deadline - self._accept_after
        running.timer = asyncio.get_running_loop().call_later(rest, self._time_out, running)
        running.wake()

    def _time_out(self, running: _Running) -> None:
        job = running.job
        log.warning(names.ZONE_CALL_TIMED_OUT, method=job.method, correlation_id=job.correlation_id)
        data: JsonObject = {"deadline_seconds": job.deadline}
        self._end(running, Broke(error_text(ZoneFault(TIMEOUT, data=data), job.correlation_id)))
        if running.task is not None:
            running.task.cancel()

    async def _first_news(self, running: _Running) -> None:
        """Returns when it has ended or is accepted."""
        if not running.is_long:
            await self._news(running)
        if running.has_news:
            return
        try:
            await self._store.accept(running.job.key)
        except Unavailable as exc:
            # What is not on the disk must not be promised; the caller can still wait for the end.
            log.error(names.ZONE_NOT_WRITTEN, method=running.job.method, error=exc.message)
            if not running.has_news:
                await self._news(running)
        else:
            running.accepted = True

    async def _news(self, running: _Running) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        running.waiters.append(waiter)
        await waiter

    async def _take_up(self, call: ZoneCall, revival: Revival) -> None:
        job = self._revived(call, revival)
        if job is None:
            log.warning(names.ZONE_CALL_INTERRUPTED, method=call.method, correlation_id=call.correlation_id)
            self._store.finish(
                call.key, self._clock.now(), error=_interrupted(call.correlation_id, call.runs).error
            )
            return
        log.info(names.ZONE_CALL_RUN_AGAIN, method=call.method, correlation_id=call.correlation_id)
        self._store.begin_again(call.key)
        if not call.accepted:
            await self._store.accept(call.key)
        self._launch(job, call.task_id).accepted = True

    def _revived(self, call: ZoneCall, revival: Revival) -> Job | None:
        if call.params is None or call.runs >= MOST_RUNS:
            return None
        try:
            return revival(call, self._vault.open(call.params, owner=_owner(call.key)))
        except (ConfigurationError, ZoneFault) as exc:
            # Another key, or params that today's schema does not take.
            log.error(names.ZONE_CALL_NOT_REVIVED, method=call.method, error=type(exc).__name__)
            return None

    async def _interrupt(self, running: _Running) -> None:
        if running.outcome is not None:
            # It has ended while another one was seen to.
            return
        job = running.job
        log.warning(names.ZONE_CALL_INTERRUPTED, method=job.method, correlation_id=job.correlation_id)
        if not job.restartable:
            self._end(running, _interrupted(job.correlation_id))
            return
        running.let_go = True
        del self._running[job.key]
        if running.timer is not None:
            running.timer.cancel()
        if not running.accepted:
            try:
                await self._store.accept(job.key)
            except Unavailable as exc:
                log.error(names.ZONE_NOT_WRITTEN, method=job.method, error=exc.message)
                running.outcome = _stopped(job.correlation_id)
            running.accepted = True
        running.wake()

    def _unfinished(self) -> Sequence[_Running]:
        return [running for running in self._running.values() if running.outcome is None]

    async def _keep_sweeping(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP.total_seconds())
            try:
                await self.sweep()
            except Unavailable as exc:
                log.error(names.STORE_UNAVAILABLE, error=exc.message)


def _owner(key: CallKey) -> str:
    return f"zone call {key.caller} {key.id.decode(errors='replace')}"


def _outcome(call: ZoneCall) -> Outcome | None:
    if call.result is not None:
        return Done(call.result)
    return None if call.error is None else Broke(call.error)


def _broke(message: str, reason: str, correlation_id: str | None) -> Broke:
    return Broke(error_text(ZoneFault(OTHER, message, {"reason": reason}), correlation_id))


def _stopped(correlation_id: str | None) -> Broke:
    return _broke(
        "The zone is stopping and has no answer yet. Send the same request again later, with the same id.",
        "stopping",
        correlation_id,
    )


def _other_params(correlation_id: str | None) -> Broke:
    return _broke(
        "This id was used for a call with another method or other params. Nothing was run: send it with a new id.",
        "id_reused",
        correlation_id,
    )


def _interrupted(correlation_id: str | None, runs: int = 1) -> Broke:
    again = f" It was begun {runs} times and is not begun again." if runs > 1 else ""
    return _broke(
        f"The work was interrupted by a restart of the zone; it may have been done in part.{again}",
        "interrupted",
        correlation_id,
    )
