"""
Push notifications of agents: the address and token for each task, and what happens when one arrives.

The address names its task and proves that we made it:

    /hooks/a2a/<base64url(task id NUL attempt)>.<base64url(HMAC-SHA256)>

A second value, made in the same way, is the token that the agent has to send along. Both come from a key that is
derived from the vault's, which every process of a system has: nothing is stored, nothing expires, nothing can be
guessed. A notification carries no information and may come twice: the bridge polls the agent at once.
"""

from __future__ import annotations

import asyncio
import binascii
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import OrderedDict
from collections.abc import Callable
from hashlib import sha256
from typing import Literal

import structlog

from trunkline.clock import Instant, rfc3339
from trunkline.ids import RunId
from trunkline.jsontypes import encode
from trunkline.messages import TaskKey
from trunkline.protocols import PushTarget
from trunkline.services.runs.stored_exchanges import StoredExchange, StoredRequest, StoredResponse
from trunkline.stores.base import ExchangeRecord, PollsDue, Store
from trunkline.telemetry import log_events
from trunkline.telemetry.metrics import Metrics
from trunkline.telemetry.redaction import REDACTED

# An agent that sends notifications without pause costs one transaction in this time.
MIN_INTERVAL_SECONDS = 1.0

log = structlog.stdlib.get_logger()

PUSH_PATH = "/hooks/a2a"

# Longer than any valid token: a task's id contains a run's id, a step's name and two numbers.
MAX_TOKEN_CHARACTERS = 512

_DERIVED = b"trunkline push notifications, version 1"
_PUSH_NOTE = "The agent sent a push notification. Its content is ignored, and the agent is polled."
_FOR_THE_PATH = b"path\x00"
_FOR_THE_HEADER = b"header\x00"

# `asked`: the bridge asks the agent now. `over`: the task does not wait to be asked, or is not known any more.
PushResult = Literal["asked", "over", "refused"]


class PushTokenKey:
    """Signs the addresses of tasks; the vault's own keys never leave this constructor."""

    def __init__(self, vault_key: bytes, *previous: bytes) -> None:
        """`previous`: addresses that were signed with these are still accepted."""
        self._key = hmac.digest(vault_key, _DERIVED, sha256)
        self._accepted = [self._key, *(hmac.digest(key, _DERIVED, sha256) for key in previous)]

    def address_of(self, key: TaskKey) -> str:
        """The part of the path that names the task."""
        named = _named(key)
        return f"{_text(named)}.{_text(_signed(self._key, _FOR_THE_PATH, named))}"

    def token_of(self, key: TaskKey) -> str:
        return _text(_signed(self._key, _FOR_THE_HEADER, _named(key)))

    def opened(self, address: str, token: str) -> TaskKey | None:
        """The task, if both are ours. Takes as long whichever of the two is wrong."""
        named_text, _, signature = address.partition(".")
        named = _bytes(named_text)
        ours = False
        for key in self._accepted:
            has_path = hmac.compare_digest(_text(_signed(key, _FOR_THE_PATH, named)), _ascii(signature))
            has_token = hmac.compare_digest(_text(_signed(key, _FOR_THE_HEADER, named)), _ascii(token))
            ours |= has_path & has_token
        # Each task has exactly one valid text. Another text that decodes to the same bytes is rejected.
        if not ours or _text(named) != named_text:
            return None
        task_id, _, attempt = named.decode().partition("\x00")
        return TaskKey(task_id, int(attempt))


def _signed(key: bytes, purpose: bytes, named: bytes) -> bytes:
    return hmac.digest(key, purpose + named, sha256)


def _named(key: TaskKey) -> bytes:
    return f"{key.task_id}\x00{key.attempt}".encode()


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


def _ascii(text: str) -> str:
    # compare_digest needs ASCII, and valid tokens are ASCII.
    return text if text.isascii() else ""


def _bytes(text: str) -> bytes:
    try:
        return urlsafe_b64decode(_ascii(text) + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        return b""


def _record_of(key: TaskKey, public_url: str, at: Instant) -> ExchangeRecord:
    """For the wire. Nothing of what the agent has sent: it may repeat its secret, and it is not believed anyway."""
    run_id, step, _ = key.task_id.split("/", 2)
    exchange = StoredExchange(
        step=step,
        attempt=key.attempt,
        started_at=rfc3339(at),
        duration_ms=0,
        request=StoredRequest("POST", f"{public_url}{PUSH_PATH}/{REDACTED}", {}, ""),
        response=StoredResponse(204, {}, ""),
        notes=[_PUSH_NOTE],
        kind="push",
    )
    return ExchangeRecord(RunId(run_id), step, key.attempt, encode(exchange))


class PushNotifications:
    def __init__(
        self,
        key: PushTokenKey,
        store: Store,
        metrics: Metrics,
        *,
        public_url: str | None,
        min_interval_seconds: float = MIN_INTERVAL_SECONDS,
    ) -> None:
        self._key = key
        self._store = store
        self._metrics = metrics
        self._public_url = public_url
        self._min_interval_seconds = min_interval_seconds
        # When the last notification of a task was written; older than the interval, it is forgotten.
        self._written_at: OrderedDict[TaskKey, float] = OrderedDict()
        # Each writes one notification, for all that arrive before it does.
        self._pending: dict[TaskKey, asyncio.Task[bool]] = {}
        self._wakes: list[Callable[[], None]] = []

    def on_push(self, wake: Callable[[], None]) -> None:
        """`wake` wakes the bridge of this process; other bridges are notified through the store."""
        self._wakes.append(wake)

    def target(self, key: TaskKey) -> PushTarget | None:
        """Where the agent sends notifications for this task; None: agents cannot reach Trunkline."""
        if self._public_url is None:
            return None
        return PushTarget(
            url=f"{self._public_url}{PUSH_PATH}/{self._key.address_of(key)}", token=self._key.token_of(key)
        )

    async def receive(self, address: str, token: str) -> PushResult:
        """
        Durable when it returns: whichever bridge has the task asks for it.

        Notifications that arrive within `min_interval_seconds` after another one of the task wait, and become one.
        """
        key = self._key.opened(address, token) if len(address) <= MAX_TOKEN_CHARACTERS else None
        if key is None:
            self._metrics.agent_pushes.labels("refused").inc()
            return "refused"
        pending = self._pending.get(key)
        if pending is None:
            pending = self._pending[key] = asyncio.create_task(self._write_when_due(key))
        # A sender that leaves must not take the notification of the others with it.
        asked = await asyncio.shield(pending)
        result: PushResult = "asked" if asked else "over"
        self._metrics.agent_pushes.labels(result).inc()
        return result

    async def _write_when_due(self, key: TaskKey) -> bool:
        loop = asyncio.get_running_loop()
        written_at = self._written_at.get(key)
        if written_at is not None:
            await asyncio.sleep(written_at + self._min_interval_seconds - loop.time())
        # What arrives from here on may tell of something that the poll does not see any more.
        del self._pending[key]
        self._remember(key, loop.time())
        return await self._write(key)

    def _remember(self, key: TaskKey, now: float) -> None:
        self._written_at.pop(key, None)
        self._written_at[key] = now
        while next(iter(self._written_at.values())) <= now - self._min_interval_seconds:
            self._written_at.popitem(last=False)

    async def _write(self, key: TaskKey) -> bool:
        """Whether a bridge asks for the task; False: it is over."""
        async with self._store.transaction() as tx:
            asked = await tx.tasks.poll_soon(key)
            if asked:
                await tx.exchanges.put([_record_of(key, self._public_url or "", tx.now)])
                await tx.notify(PollsDue())
        if asked:
            for wake in self._wakes:
                wake()
        log.info(
            log_events.PUSH_NOTIFICATION_RECEIVED,
            task_id=key.task_id,
            attempt=key.attempt,
            result="asked" if asked else "over",
        )
        return asked
