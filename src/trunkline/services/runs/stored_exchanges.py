"""
An exchange with an agent as it is stored, for reading; `bridge.wire.exchanges` writes them.

    {"step", "attempt", "started_at", "duration_ms", "request", "response", "error", "notes", "kind", "frames",
     "connect_ms", "first_byte_ms"}
"""

from __future__ import annotations

import msgspec


class StoredRequest(msgspec.Struct):
    method: str
    url: str
    headers: dict[str, str]
    body: str


class StoredResponse(msgspec.Struct):
    status: int
    headers: dict[str, str]
    body: str


class StoredFrame(msgspec.Struct):
    at_ms: float
    data: str


class StoredExchange(msgspec.Struct, kw_only=True):
    step: str
    attempt: int
    started_at: str
    duration_ms: float
    request: StoredRequest
    response: StoredResponse | None = None
    error: str | None = None
    notes: list[str] = []
    kind: str = "send"
    frames: list[StoredFrame] | None = None
    connect_ms: float | None = None
    first_byte_ms: float | None = None


_records: msgspec.json.Decoder[StoredExchange] = msgspec.json.Decoder(StoredExchange)


def decode_exchange(record: bytes) -> StoredExchange:
    """An exchange as the store has it."""
    return _records.decode(record)


def convert_exchange(exchange: object) -> StoredExchange:
    """An exchange as the REST interface gives it."""
    return msgspec.convert(exchange, StoredExchange)
