"""A message on its way to a topic, as the outbox keeps it, and a record as it came from one."""

from __future__ import annotations

import msgspec


class OutgoingMessage(msgspec.Struct, frozen=True, array_like=True):
    """One message for one topic. Messages with the same key keep their order; an empty one is none."""

    topic: str
    key: str
    value: bytes
    headers: tuple[tuple[str, bytes], ...] = ()
    # Of somebody else's record that is sent on, where the key is no text; `key` is empty then.
    raw_key: bytes | None = None

    @property
    def record_key(self) -> bytes | None:
        """The key as the broker gets it."""
        return self.raw_key or self.key.encode() or None


class BrokerRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a broker delivered, before anybody has read it."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()
