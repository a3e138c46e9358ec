"""
Sends callbacks: claims queues that are due, sends their callbacks in order, and settles what came of it.

A callback is accepted when every request of it was answered with a 2xx status. Otherwise it is tried again, later each
time, until it is too old, and what is behind it in its queue waits. A process that dies leaves its claims to end; what
it has sent and not settled is sent again. Requests leave through the same transport as those to agents, which guards
what may be called and follows no redirects.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from random import Random

import structlog

from trunkline.agents.http_urls import UrlError, parse_url
from trunkline.clock import Clock, Instant, after
from trunkline.errors import TrunklineError, Unavailable
from trunkline.id_generation import new_id
from trunkline.services.callbacks.sources import (
    AttemptedCallback,
    CallbackNotReady,
    CallbackReceiver,
    CallbackReport,
    CallbackRequest,
    CallbackSource,
    MailSender,
    OutgoingCallback,
)
from trunkline.stores.base import Store
from trunkline.stores.port.automation.callbacks import ClaimedQueue, QueueOutcome, StoredCallback
from trunkline.telemetry import log_events
from trunkline.telemetry.metrics import Metrics
from trunkline.transports.answer_memory import FREE_BYTES, MemoryBudget
from trunkline.transports.base import Transport, TransportError

log = structlog.stdlib.get_logger()

# How long a callback is tried.
RETRY_FOR = timedelta(hours=24)
FIRST_PAUSE = timedelta(seconds=1)
# A receiver that comes back is tried again within this.
MAX_PAUSE = timedelta(minutes=1)
# Of the pause, so that receivers that were down together are not all called together.
_JITTER = 0.2
# Each takes a connection.
MAX_QUEUES_AT_ONCE = 64
# So that one slow host leaves room for the others.
MAX_QUEUES_OF_A_HOST = 16
CALLBACKS_A_CLAIM = 20
REQUEST_SECONDS = 10.0
# No request begins later than this after the claim, so the last one ends before the claim does.
_CLAIM_WORKS_SECONDS = 15.0
CLAIM_LASTS = timedelta(seconds=30)
# A queue that cannot be read at the moment, or whose host has its share of requests.
_POSTPONED = timedelta(seconds=1)
# For what other processes have put.
LOOK_EVERY = timedelta(seconds=1)
# Requests are made from runs, with their files. So many are made at a time, and this is what all take together until
# they are sent.
_MADE_AT_ONCE = 4
MAX_BODY_MEMORY = 128 * 1024 * 1024
_MAX_ERROR_CHARACTERS = 500
NO_MAIL_SERVER = "No mail server is configured. Set it: the key mail in trunkline.toml, or TRUNKLINE_MAIL."


async def post_callback(transport: Transport, request: CallbackRequest) -> str | None:
    """Why it was not accepted."""
    try:
        # Agents can be local programs as well; callbacks are HTTP only.
        parse_url(request.url)
    except UrlError as exc:
        return f"The address cannot be called: {exc}."
    try:
        answer = await transport.post(request.url, request.body, request.headers, REQUEST_SECONDS)
    except TransportError as exc:
        return exc.message[:_MAX_ERROR_CHARACTERS]
    return None if 200 <= answer.status < 300 else f"The receiver answered with HTTP {answer.status}."


async def send_callback(
    transport: Transport, mailer: MailSender | None, request: OutgoingCallback
) -> str | None:
    """Why it was not accepted."""
    if isinstance(request, CallbackRequest):
        return await post_callback(transport, request)
    if mailer is None:
        return NO_MAIL_SERVER
    return (await mailer.send(request) or "")[:_MAX_ERROR_CHARACTERS] or None


class CallbackSender:
    """Runs in every process that calls agents, next to the commit loop."""

    def __init__(
        self,
        store: Store,
        transport: Transport,
        sources: Mapping[str, CallbackSource],
        clock: Clock,
        metrics: Metrics,
        *,
        transports: Mapping[str, Transport] | None = None,
        mailer: MailSender | None = None,
        claim_lasts: timedelta = CLAIM_LASTS,
        one_by_one: Collection[str] = (),
        max_body_memory: int = MAX_BODY_MEMORY,
        look_every: timedelta = LOOK_EVERY,
        random: Random | None = None,
    ) -> None:
        """
        `sources`: by the kind of their callbacks. Queues of other kinds are left alone.

        `transports`: by the kinds that do not use `transport`, because others may be called.

        `mailer`: None: there is no mail server.

        `one_by_one`: kinds whose callbacks are each settled before the next one is sent. After a crash, only one of
        them is sent again, so a receiver never sees an order in which it goes back.
        """
        self._store = store
        self._transport = transport
        self._transports = transports or {}
        self._mailer = mailer
        self._sources = sources
        self._clock = clock
        self._metrics = metrics
        self._claim_lasts = claim_lasts
        self._look_every = look_every
        metrics.callbacks_sending.set_function(lambda: len(self._sending))
        self._one_by_one = one_by_one
        # A claim that is shorter, as in tests, leaves less time for requests.
        self._works_seconds = min(_CLAIM_WORKS_SECONDS, claim_lasts.total_seconds() / 2)
        self._making = asyncio.Semaphore(_MADE_AT_ONCE)
        self.memory = MemoryBudget(max_body_memory)
        self._random = random or Random()  # noqa: S311 - spreads load, keeps no secret
        self._sending: set[asyncio.Task[None]] = set()
        self._hosts: dict[str, int] = {}
        self._woken = asyncio.Event()
        self._stopping = asyncio.Event()
        self._trouble: str | None = None

    def wake(self) -> None:
        """Callbacks may be due: look now."""
        self._woken.set()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            self._woken.clear()
            if not await self._try_to_claim():
                await self._wait()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Sends while the block runs. At its end, requests under way may end, and no others begin."""
        work = asyncio.create_task(self.run())
        try:
            yield
        finally:
            self._stopping.set()
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
            if self._sending:
                _, left = await asyncio.wait(self._sending, timeout=REQUEST_SECONDS)
                for task in left:
                    task.cancel()
                await asyncio.gather(*left, return_exceptions=True)

    async def _wait(self) -> None:
        """Until a queue may be due. Another process may have put it, so it is looked for without a call, too."""
        timer = asyncio.get_running_loop().call_later(self._look_every.total_seconds(), self._woken.set)
        await self._woken.wait()
        timer.cancel()

    async def _try_to_claim(self) -> int:
        try:
            claimed = await self._claim()
        except Unavailable as exc:
            # Once for each change: it is tried again every second.
            if self._trouble != exc.message:
                self._trouble = exc.message
                log.error(log_events.STORE_UNAVAILABLE, error=exc.message, fix=exc.fix)
            return 0
        except Exception:
            log.exception(log_events.CALLBACKS_FAILED)
            return 0
        self._trouble = None
        return claimed

    async def _claim(self) -> int:
        room = MAX_QUEUES_AT_ONCE - len(self._sending)
        # Cheaper than a transaction that finds nothing.
        if room <= 0 or not await self._store.callbacks.are_due():
            return 0
        async with self._store.transaction() as tx:
            claimed = await tx.callbacks.claim(
                new_id(), limit=room, each=CALLBACKS_A_CLAIM, lasts=self._claim_lasts
            )
        for queue in claimed:
            task = asyncio.create_task(self._send_from(queue))
            self._sending.add(task)
            task.add_done_callback(self._ended)
        return len(claimed)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._sending.discard(task)
        # Perhaps more of its queue is due, and another one can be taken.
        self._woken.set()

    async def _send_from(self, queue: ClaimedQueue) -> None:
        """One claim, to its end. What it cannot settle is sent again when the claim has ended."""
        try:
            await self._send_claimed(queue)
        except Unavailable as exc:
            log.warning(log_events.CALLBACKS_FAILED, queue=queue.queue, error=exc.message)
        except Exception:
            log.exception(log_events.CALLBACKS_FAILED, queue=queue.queue)

    async def _send_claimed(self, queue: ClaimedQueue) -> None:
        source = self._sources.get(queue.kind)
        if source is None:
            await self._settle_without_attempt(queue, CLAIM_LASTS)
            return
        receiver = await source.receiver(queue.queue)
        if receiver is None:
            async with self._store.transaction() as tx:
                await tx.callbacks.delete([queue.queue])
            return
        if not receiver.is_enabled:
            await self._settle_disabled(queue, source)
            return
        host = receiver.host
        attempts = _Attempts(queue, asyncio.get_running_loop().time() + self._works_seconds)
        for callback in queue.callbacks[: 1 if queue.kind in self._one_by_one else None]:
            if self._stopping.is_set() or attempts.is_time_over:
                break
            # Before the requests are made: that takes memory.
            if self._hosts.get(host, 0) >= MAX_QUEUES_OF_A_HOST:
                attempts.is_postponed = True
                break
            with self._share_of(host):
                if not await self._send(attempts, receiver, callback):
                    break
        await self._settle(queue, source, attempts)

    @contextmanager
    def _share_of(self, host: str) -> Generator[None]:
        self._hosts[host] = self._hosts.get(host, 0) + 1
        try:
            yield
        finally:
            self._hosts[host] -= 1
            if not self._hosts[host]:
                del self._hosts[host]

    async def _send(self, attempts: _Attempts, receiver: CallbackReceiver, callback: StoredCallback) -> bool:
        """Whether the next one may be sent."""
        now = self._clock.now()
        is_too_old = now >= after(callback.created_at, RETRY_FOR)
        async with self._making:
            try:
                requests = await receiver.requests(callback, now)
            except CallbackNotReady as exc:
                attempts.failed(callback, exc.message[:_MAX_ERROR_CHARACTERS], is_too_old=is_too_old)
                return False
            size = sum(len(request.body) for request in requests)
            taken = 0
            if size > FREE_BYTES:
                # Others are not made while these wait for memory.
                taken = await self.memory.take(size)
        try:
            return await self._send_all(attempts, requests, callback, is_too_old=is_too_old)
        finally:
            self.memory.give_back(taken)

    async def _send_all(
        self,
        attempts: _Attempts,
        requests: Sequence[OutgoingCallback],
        callback: StoredCallback,
        *,
        is_too_old: bool,
    ) -> bool:
        for number, request in enumerate(requests):
            if number and attempts.is_time_over:
                # It must be settled while the claim lasts. After other callbacks, it gets a claim of its own.
                if attempts.were_made:
                    attempts.is_postponed = True
                    return False
                await self._extend(attempts)
            transport = self._transports.get(attempts.kind, self._transport)
            error = await send_callback(transport, self._mailer, request)
            if error is not None:
                attempts.failed(callback, error, is_too_old=is_too_old)
                return False
        attempts.accepted(callback)
        return True

    async def _extend(self, attempts: _Attempts) -> None:
        """A receiver takes its time for the requests of one callback. Each of them ends in time."""
        async with self._store.transaction() as tx:
            if not await tx.callbacks.extend(attempts.queue, attempts.claim, lasts=self._claim_lasts):
                raise _ClaimLost(attempts.queue)
        attempts.end = asyncio.get_running_loop().time() + self._works_seconds

    async def _settle(self, queue: ClaimedQueue, source: CallbackSource, attempts: _Attempts) -> None:
        async with self._store.transaction() as tx:
            report = attempts.report(tx.now)
            is_disabled = False
            if attempts.were_made:
                is_disabled = await source.note(tx, queue.queue, report)
            outcome = QueueOutcome(
                queue=queue.queue,
                claim=queue.claim,
                ended=attempts.ended,
                failures=report.failures,
                next_attempt_at=after(tx.now, MAX_PAUSE if is_disabled else self._pause(attempts)),
            )
            if not await tx.callbacks.settle(outcome):
                # Another process has it: what it does is noted there.
                raise _ClaimLost(queue.queue)
        self._count(queue.kind, report)

    def _count(self, kind: str, report: CallbackReport) -> None:
        if report.accepted:
            self._metrics.callbacks.labels(kind, "accepted").inc(report.accepted)
        if report.error is not None:
            self._metrics.callbacks.labels(kind, "failed").inc()
        if report.given_up:
            self._metrics.callbacks.labels(kind, "given_up").inc(report.given_up)

    async def _settle_disabled(self, queue: ClaimedQueue, source: CallbackSource) -> None:
        """Callbacks that wait until they are too old are dropped without an attempt."""
        async with self._store.transaction() as tx:
            old = [each for each in queue.callbacks if tx.now >= after(each.created_at, RETRY_FOR)]
            if old:
                await source.note_dropped(tx, queue.queue, old)
            # Its receiver may have been enabled since it was read, when the queue was claimed and so not resumed.
            pause = _POSTPONED if old else MAX_PAUSE
            await tx.callbacks.settle(
                QueueOutcome(
                    queue=queue.queue,
                    claim=queue.claim,
                    ended=[each.id for each in old],
                    failures=queue.failures,
                    next_attempt_at=after(tx.now, pause),
                )
            )

    async def _settle_without_attempt(self, queue: ClaimedQueue, pause: timedelta) -> None:
        async with self._store.transaction() as tx:
            await tx.callbacks.settle(
                QueueOutcome(
                    queue=queue.queue,
                    claim=queue.claim,
                    failures=queue.failures,
                    next_attempt_at=after(tx.now, pause),
                )
            )

    def _pause(self, attempts: _Attempts) -> timedelta:
        if attempts.is_postponed:
            return _POSTPONED
        if attempts.error is None:
            return timedelta(0)
        longest = min(FIRST_PAUSE * 2 ** min(attempts.failures - 1, 16), MAX_PAUSE)
        return longest * (1 - _JITTER * self._random.random())


class _ClaimLost(TrunklineError):
    """The claim ended before it was settled."""

    def __init__(self, queue: str) -> None:
        super().__init__(f"The claim on the callbacks {queue} has ended before they were settled.")


class _Attempts:
    """What one claim has done so far."""

    def __init__(self, queue: ClaimedQueue, end: float) -> None:
        self.kind = queue.kind
        self.queue = queue.queue
        self.claim = queue.claim
        # No request but the first of a callback begins later than this.
        self.end = end
        self.ended: list[int] = []
        self.failures = queue.failures
        self.error: str | None = None
        self.is_postponed = False
        self._attempted: list[AttemptedCallback] = []

    @property
    def were_made(self) -> bool:
        return bool(self.ended) or self.error is not None

    @property
    def is_time_over(self) -> bool:
        return asyncio.get_running_loop().time() >= self.end

    def accepted(self, callback: StoredCallback) -> None:
        self.ended.append(callback.id)
        self._attempted.append(AttemptedCallback(callback=callback))
        self.failures = 0

    def failed(self, callback: StoredCallback, error: str, *, is_too_old: bool) -> None:
        self.failures += 1
        self.error = error
        self._attempted.append(AttemptedCallback(callback=callback, error=error, is_given_up=is_too_old))
        if is_too_old:
            self.ended.append(callback.id)

    def report(self, at: Instant) -> CallbackReport:
        return CallbackReport(
            at=at,
            accepted=sum(each.error is None for each in self._attempted),
            given_up=sum(each.is_given_up for each in self._attempted),
            failures=self.failures,
            error=self.error,
            attempted=self._attempted,
        )
