"""
Where callbacks come from: a source puts them with `tx.callbacks.put`, and makes the requests when they are sent.

Each kind of callback has one source, such as the push notifications of published tasks. A payload need not be the
request: a reference to an event is enough, if the source can always make the same request of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from email.message import EmailMessage
from typing import Protocol
from urllib.parse import urlsplit

import msgspec

from trunkline.clock import Instant
from trunkline.errors import TrunklineError
from trunkline.stores.base import Transaction
from trunkline.stores.port.automation.callbacks import StoredCallback
from trunkline.triggers.signatures import standard_signature

MAIL_HOST = "smtp"


class CallbackRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A POST. It may be sent again after a crash: what identifies it must be in it."""

    url: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc


class CallbackMail(msgspec.Struct, frozen=True, kw_only=True):
    """A mail to one recipient. It may be sent again after a crash, with the same Message-ID."""

    to: str
    message: EmailMessage

    @property
    def body(self) -> bytes:
        return self.message.as_bytes()

    @property
    def host(self) -> str:
        """All go to one server."""
        return MAIL_HOST


OutgoingCallback = CallbackRequest | CallbackMail


class MailSender(Protocol):
    async def send(self, mail: CallbackMail) -> str | None:
        """Why it was not accepted."""
        ...


class CallbackNotReady(TrunklineError):
    """No request can be made at the moment. It counts as an attempt that has failed."""


class AttemptedCallback(msgspec.Struct, frozen=True, kw_only=True):
    callback: StoredCallback
    # None: it was accepted.
    error: str | None = None
    is_given_up: bool = False


class CallbackReport(msgspec.Struct, frozen=True, kw_only=True):
    """What has come of some attempts from one queue."""

    at: Instant
    # How many callbacks were accepted.
    accepted: int = 0
    # How many were given up after an attempt that failed: they were too old.
    given_up: int = 0
    # Attempts in a row that have failed, up to now.
    failures: int = 0
    # Why the last one failed.
    error: str | None = None
    # One by one, in their order.
    attempted: Sequence[AttemptedCallback] = ()


class CallbackReceiver(Protocol):
    """Who gets the callbacks of one queue."""

    @property
    def is_enabled(self) -> bool:
        """If not, nothing is sent: its callbacks wait until they are resumed or too old."""
        ...

    @property
    def host(self) -> str:
        """Of all that is sent to it."""
        ...

    async def requests(self, callback: StoredCallback, now: Instant) -> Sequence[OutgoingCallback]:
        """
        In the order in which they are sent; none: there is nothing to say. All must be accepted.

        Raises `CallbackNotReady`.
        """
        ...


class CallbackSource(Protocol):
    async def receiver(self, queue: str) -> CallbackReceiver | None:
        """None: it no longer exists, and its callbacks are dropped."""
        ...

    async def note(self, tx: Transaction, queue: str, report: CallbackReport) -> bool:
        """In the transaction that settles the queue. True: the receiver is disabled from now on."""
        ...

    async def note_dropped(self, tx: Transaction, queue: str, dropped: Sequence[StoredCallback]) -> None:
        """They became too old while the receiver was disabled."""
        ...


def signed_headers(secrets: Sequence[str], message_id: str, at: Instant, body: bytes) -> dict[str, str]:
    """The headers of Standard Webhooks, with a signature for each secret. The id stays the same when it is repeated."""
    seconds = at // 1_000_000
    signatures = [standard_signature(secret, message_id, seconds, body) for secret in secrets]
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(seconds),
        "webhook-signature": " ".join(signatures),
    }
