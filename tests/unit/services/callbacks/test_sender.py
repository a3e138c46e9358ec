"""Callbacks are sent in order, again until they are accepted, and given up when they are too old."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from urllib.parse import urlsplit

import pytest
from aiohttp import web

from trunkline.clock import Instant, after
from trunkline.services.callbacks.sender import (
    CLAIM_LASTS,
    MAX_BODY_MEMORY,
    MAX_PAUSE,
    MAX_QUEUES_OF_A_HOST,
    RETRY_FOR,
    CallbackSender,
)
from trunkline.services.callbacks.sources import (
    CallbackNotReady,
    CallbackReport,
    CallbackRequest,
    signed_headers,
)
from trunkline.stores.base import Store, Transaction
from trunkline.stores.port.automation.callbacks import CallbackQueue, NewCallback, StoredCallback
from trunkline.telemetry.metrics import Metrics
from trunkline.testing import FakeClock
from trunkline.transports.address_policy import AddressPolicy
from trunkline.transports.https import HttpTransport
from trunkline.triggers.signatures import WebhookDelivery, is_signed

pytestmark = pytest.mark.anyio


class Receiver:
    """A real HTTP server that keeps what it gets."""

    def __init__(self) -> None:
        self.status = 200
        self.bodies: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.open = asyncio.Event()
        self.open.set()
        self.under_way = 0
        self.most_under_way = 0
        self.url = ""
        self._changed = asyncio.Condition()

    async def take(self, request: web.Request) -> web.Response:
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        body = await request.text()
        async with self._changed:
            self.bodies.append(body)
            self.headers.append({name.lower(): value for name, value in request.headers.items()})
            self._changed.notify_all()
        await self.open.wait()
        self.under_way -= 1
        return web.Response(status=self.status, headers={"Location": f"{self.url}elsewhere"})

    async def got(self, number: int) -> list[str]:
        async with asyncio.timeout(20), self._changed:
            await self._changed.wait_for(lambda: len(self.bodies) >= number)
        return self.bodies


class Source:
    """Payloads are bodies. `name`s of queues are paths of the receiver."""

    def __init__(self, url: str, *, disable_after: int = 1_000_000) -> None:
        self.url = url
        self.is_enabled = True
        self.exists = True
        self.reports: list[CallbackReport] = []
        self.requests_each = 1
        # How often requests were made.
        self.made = 0
        self.is_ready = True
        self.dropped: list[StoredCallback] = []
        self._disable_after = disable_after

    async def receiver(self, queue: str) -> Source | None:
        del queue
        return self if self.exists else None

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc

    async def requests(self, callback: StoredCallback, now: Instant) -> Sequence[CallbackRequest]:
        if not self.is_ready:
            raise CallbackNotReady("The secret is missing.")
        self.made += 1
        headers = signed_headers(["secret"], str(callback.id), now, callback.payload)
        request = CallbackRequest(url=self.url, headers=headers, body=callback.payload)
        return [request] * self.requests_each

    async def note(self, tx: Transaction, queue: str, report: CallbackReport) -> bool:
        del tx, queue
        self.reports.append(report)
        if report.failures >= self._disable_after:
            self.is_enabled = False
        return not self.is_enabled

    async def note_dropped(self, tx: Transaction, queue: str, dropped: Sequence[StoredCallback]) -> None:
        del tx, queue
        self.dropped += dropped


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    taking = Receiver()
    app = web.Application()
    app.router.add_post("/{path:.*}", taking.take)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    taking.url = f"http://127.0.0.1:{runner.addresses[0][1]}/"
    yield taking
    taking.open.set()
    await runner.cleanup()


@pytest.fixture
def source(receiver: Receiver) -> Source:
    return Source(receiver.url)


@asynccontextmanager
async def sending(
    store: Store,
    source: Source,
    clock: FakeClock,
    *,
    allow_loopback: bool = True,
    metrics: Metrics | None = None,
    one_by_one: Sequence[str] = (),
    claim_lasts: timedelta = CLAIM_LASTS,
    max_body_memory: int = MAX_BODY_MEMORY,
) -> AsyncGenerator[CallbackSender]:
    async with HttpTransport(AddressPolicy(allow_loopback=allow_loopback)) as transport:
        sender = CallbackSender(
            store,
            transport,
            {"k": source},
            clock,
            metrics or Metrics(),
            claim_lasts=claim_lasts,
            one_by_one=one_by_one,
            max_body_memory=max_body_memory,
        )
        async with sender.running():
            yield sender


async def put(store: Store, *payloads: str, queue: str = "q") -> None:
    async with store.transaction() as tx:
        await tx.callbacks.put(
            [NewCallback(queue=queue, kind="k", payload=payload.encode()) for payload in payloads]
        )


async def settled(store: Store, *, failures: int = 0, queue: str = "q") -> CallbackQueue | None:
    """The queue when no process sends from it, after so many failures; without any, when it is empty."""
    async with asyncio.timeout(20):
        while (found := await store.callbacks.queue(queue)) is not None and (
            found.is_claimed or found.failures < max(failures, 1)
        ):
            await asyncio.sleep(0.01)
    assert (0 if found is None else found.failures) == failures
    return found


async def test_callbacks_of_a_queue_are_sent_in_their_order(
    store: Store, clock: FakeClock, receiver: Receiver, source: Source
) -> None:
    numbers = [str(number) for number in range(50)]
    await put(store, *numbers)
    async with sending(store, source, clock):
        assert await receiver.got(50) == numbers
        await settled(store)
    assert receiver.most_under_way == 1
    assert sum(report.accepted for report in source.reports) == 50


async def test_a_failed_callback_is_sent_again_before_those_behind_it(
    store: Store, clock: FakeClock, receiver: Receiver, source: Source
) -> None:
    receiver.status = 503
    await put(store, "1", "2")
    async with sending(store, source, clock) as sender:
        await receiver.got(1)
        found = await settled(store, failures=1)
        assert found is not None
        assert clock.now() < found.next_attempt_at <= after(clock.now(), timedelta(seconds=1))
        receiver.status = 200
        clock.advance(timedelta(seconds=1))
        sender.wake()
        assert await receiver.got(3) == ["1", "1", "2"]
        await settled(store)
    assert source.reports[0].error == "The receiver answered with HTTP 503."
    assert source.reports[-1].failures == 0


async def test_callbacks_of_some_kinds_are_settled_one_by_one(
    store: Store, clock: FakeClock, receiver: Receiver, source: Source
) -> None:
    await put(store, "1", "2", "3")
    async with sending(store, source, clock, one_by_one=["k"]):
        assert await receiver.got(3) == ["1", "2", "3"]
        await settled(store)
    assert [report.accepted for report in source.reports] == [1, 1, 1]


async def test_a_receiver_may_take_longer_than_a_claim_for_the_requests_of_one_callback(
    store: Store, clock: FakeClock, receiver: Receiver, source: Source
) -> None:
    source.requests_each = 3
    receiver.open.clear()
    await put(store, "1")
    claim_lasts = timedelta(seconds=1)
    async with sending(store, source, clock, claim_lasts=claim_lasts) as sender:
        await receiver.got(1)
        # The time for requests is over, but the claim is not: its clock stands still until it is extended.
        ended = asyncio.get_running_loop().time() + claim_lasts.total_seconds() / 2
        while asyncio.get_running_loop().time() < ended:
            await asyncio.sleep(0.01)
        clock.advance(claim_lasts * 0.9)
        receiver.open.set()
        await receiver.got(2)
        clock.advance(claim_lasts * 0.9)
        # Another process cannot claim it now.
        sender.wake()
        await settled(store)
    assert receiver.bodies == ["1", "1", "1"]
    assert [report.accepted for report in source.reports] == [1]


async def test_a_claim_that_was_lost_to_another_process_is_not_extended(
    store: Store, clock: FakeClock, receiver: Receiver, source: Source
) -> None:
    source.requests_each = 2
    receiver.open.clear()
    await put(store, "1")
    claim_lasts = timedelta(seconds=1)
    async with sending(store, source, clock, claim_lasts=claim_lasts):
        await receiver.got(1)
        clock.advance(claim_lasts)
        async with store.transaction() as tx:
            assert await tx.callbacks.claim("other", limit=1, each=1, lasts=timedelta(hours=1))
        ended = asyncio.get_running_loop().time() + claim_lasts.total_seconds()
        while asyncio.get_running_loop().time() < ended:
            await asyncio.sleep(0.01)
        receiver.open.set()
    # The second request is the other one's.
    assert (receiver.bodies, source.reports) == (["1"], [])


async def test_requests_are_not_made_before_the_host_has_a_share_left(
    store: Store, clock: FakeClock, receiver: Receiver, source: Source
) -> None:
    receiver.open.clear()
    for number in range(MAX_QUEUES_OF_A_HOST + 5):
        await put(store, "1", queue=f"q{number:02}")
    async with sending(store, source, clock):
        await receiver.got(MAX_QUEUES_OF_A_HOST)
        await settled_without_claim(store, f"q{MAX_QUEUES_OF_A_HOST + 4:02}")
        assert source.made == MAX_QUEUES_OF_A_HOST
        receiver.open.set()


async def test_the_pauses_grow_to_a_minute(
    store: Store, clock: FakeClock, receiver: Receiver, source: Source
) -> None:
    receiver.status = 500
    await put(store, "1")
    pauses: list[float] = []
    async with sending(store, source, clock) as sender:
        for failures in range(1, 10):
            found = await settled(store, failures=failures)
            assert found is not None
            pauses.append((found.next_attempt_at - clock.now()) / 1_000_000)
            clock.advance(MAX_PAUSE)
            sender.wake()
    longest = [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert all(0.8 * most <= pause <= most for most, pause in zip(longest, pauses, strict=True))


async def test_a_callback_that_is_a_day_old_is_given_up_after_one_more_failure(
    store: Store, clock: FakeClock, receiver: Receiver, source: Source
) -> None:
    receiver.status = 500
    metrics = Metrics()
    await put(store, "old")
    clock.advance(RETRY_FOR)
    await put(store, "new")
    async with sending(store, source, clock, metrics=metrics) as sender:
        await settled(store, failures=1)
        receiver.status = 200
        clock.advance(timedelta(seconds=1))
        sender.wake()
        assert await receiver.got(2) == ["old", "new"]
        await settled(store)
    assert source.reports[0].given_up == 1
    assert b'trunkline_callbacks_total{kind="k",outcome="given_up"} 1.0' in metrics.render()
    assert b'trunkline_callbacks_total{kind="k",outcome="accepted"} 1.0' in metrics.render()


async def test_what_was_claimed_by_a_process_that_died_is_sent_when_its_claim_has_ended(
    store: Store, clock: FakeClock, receiver: Receiver, source: Source
) -> None:
    await put(store, "1")
    async with store.transaction() as tx:
        await tx.callbacks.claim("dead", limit=1, each=1, lasts=CLAIM_LASTS)
    async with sending(store, source, clock) as sender:
        sender.wake()
        clock.advance(CLAIM_LASTS)
        sender.wake()
        assert await receiver.got(1) == ["1"]
        await settled(store)


async def test_nothing_is_sent_to_a_disabled_receiver_until_it_is_resumed(
    store: Store, clock: FakeClock, receiver: Receiver
) -> None:
    source = Source(receiver.url, disable_after=1)
    receiver.status = 500
    await put(store, "1")
    async with sending(store, source, clock) as sender:
        await settled(store, failures=1)
        clock.advance(timedelta(hours=1))
        sender.wake()
        receiver.status = 200
        source.is_enabled = True
        async with store.transaction() as tx:
            await tx.callbacks.resume(["q"])
        # The sender may have had it claimed.
        clock.advance(MAX_PAUSE)
        sender.wake()
        await settled(store)
    assert receiver.bodies == ["1", "1"]


async def test_a_callback_whose_request_cannot_be_made_is_tried_again(
    store: Store, clock: FakeClock, receiver: Receiver, source: Source
) -> None:
    source.is_ready = False
    await put(store, "1")
    async with sending(store, source, clock) as sender:
        await settled(store, failures=1)
        assert receiver.bodies == []
        source.is_ready = True
        clock.advance(MAX_PAUSE)
        sender.wake()
        assert await receiver.got(1) == ["1"]
        await settled(store)
    assert source.reports[0].error == "The secret is missing."


async def test_callbacks_for_a_disabled_receiver_are_dropped_when_they_are_too_old(
    store: Store, clock: FakeClock, receiver: Receiver, source: Source
) -> None:
    source.is_enabled = False
    await put(store, "1")
    clock.advance(RETRY_FOR)
    async with sending(store, source, clock):
        await settled(store)
    assert receiver.bodies == []
    assert [callback.payload for callback in source.dropped] == [b"1"]


async def test_callbacks_for_a_receiver_that_is_gone_are_dropped(
    store: Store, clock: FakeClock, receiver: Receiver, source: Source
) -> None:
    source.exists = False
    await put(store, "1", "2")
    async with sending(store, source, clock):
        await settled(store)
    assert receiver.bodies == []


async def test_an_address_that_may_not_be_called_is_not_called(
    store: Store, clock: FakeClock, receiver: Receiver, source: Source
) -> None:
    await put(store, "1")
    async with sending(store, source, clock, allow_loopback=False):
        await settled(store, failures=1)
    assert receiver.bodies == []
    assert "a loopback address" in str(source.reports[0].error)


async def test_a_local_program_is_not_called(store: Store, clock: FakeClock) -> None:
    source = Source("stdio:true")
    await put(store, "1")
    async with sending(store, source, clock):
        await settled(store, failures=1)
    assert str(source.reports[0].error).startswith("The address cannot be called")


async def test_redirects_are_not_followed(
    store: Store, clock: FakeClock, receiver: Receiver, source: Source
) -> None:
    receiver.status = 307
    await put(store, "1")
    async with sending(store, source, clock):
        await settled(store, failures=1)
    assert receiver.bodies == ["1"]


async def test_one_host_gets_a_share_of_the_requests(
    store: Store, clock: FakeClock, receiver: Receiver, source: Source
) -> None:
    receiver.open.clear()
    for number in range(MAX_QUEUES_OF_A_HOST + 5):
        await put(store, "1", queue=f"q{number:02}")
    async with sending(store, source, clock):
        await receiver.got(MAX_QUEUES_OF_A_HOST)
        # The others are put off without a failure.
        await settled_without_claim(store, f"q{MAX_QUEUES_OF_A_HOST + 4:02}")
        assert len(receiver.bodies) == MAX_QUEUES_OF_A_HOST
        receiver.open.set()
        clock.advance(timedelta(seconds=1))
        await receiver.got(MAX_QUEUES_OF_A_HOST + 5)
    assert receiver.most_under_way <= MAX_QUEUES_OF_A_HOST


async def settled_without_claim(store: Store, queue: str) -> None:
    async with asyncio.timeout(20):
        while (found := await store.callbacks.queue(queue)) is None or found.is_claimed:
            await asyncio.sleep(0.01)
    assert found.failures == 0


async def test_a_stop_lets_the_request_under_way_end_and_begins_no_other(
    store: Store, clock: FakeClock, receiver: Receiver, source: Source
) -> None:
    receiver.open.clear()
    await put(store, "1", "2")

    async def run() -> None:
        async with sending(store, source, clock):
            await receiver.got(1)

    running = asyncio.create_task(run())
    await receiver.got(1)
    receiver.open.set()
    await running
    found = await store.callbacks.queue("q")
    assert found is not None
    assert (found.waiting, found.is_claimed, receiver.bodies) == (1, False, ["1"])


async def test_a_signature_can_be_verified_with_each_of_the_secrets() -> None:
    at, body = Instant(1_767_225_600_000_000), b"{}"
    headers = signed_headers(["old", "new"], "id", at, body)
    delivery = WebhookDelivery(headers=headers, body=body, now=at)
    assert is_signed(delivery, "standard-webhooks", ["old"])
    assert is_signed(delivery, "standard-webhooks", ["new"])
    assert not is_signed(delivery, "standard-webhooks", ["other"])
    assert not is_signed(with_body(delivery, b"{ }"), "standard-webhooks", ["new"])


def with_body(delivery: WebhookDelivery, body: bytes) -> WebhookDelivery:
    return delivery._replace(body=body)


async def test_large_bodies_wait_for_memory(
    store: Store, source: Source, receiver: Receiver, clock: FakeClock
) -> None:
    body = "x" * 100_000
    for number in range(5):
        await put(store, body, queue=f"q{number}")
    receiver.open.clear()
    async with sending(store, source, clock, max_body_memory=250_000) as sender:
        await receiver.got(2)
        async with asyncio.timeout(20):
            while sender.memory.has_room:
                await asyncio.sleep(0.01)
        assert sender.memory.taken_bytes == 200_000
        receiver.open.set()
        assert await receiver.got(5) == [body] * 5
    assert receiver.most_under_way == 2
    assert sender.memory.taken_bytes == 0
