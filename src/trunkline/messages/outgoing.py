"""A message on its way to a topic, as the outbox keeps it, and a record as it came from one."""

from __future__ import annotations

import msgspec


class Outgoing(msgspec.Struct, frozen=True, array_like=True):
    """One message for one topic. Messages with the same key keep their order."""

    topic: str
    key: str
    value: bytes
    headers: tuple[tuple[str, bytes], ...] = ()


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What a broker delivered, before anybody has read it."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()
