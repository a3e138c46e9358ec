"""
An exchange with an agent as the store keeps it, for those who only show it; `bridge.exchanges` makes them.

    {"step", "attempt", "started_at", "duration_ms", "request", "response", "error", "notes", "kind", "frames",
     "connect_ms", "first_byte_ms"}
"""

from __future__ import annotations

import msgspec


class RecordedRequest(msgspec.Struct):
    method: str
    url: str
    headers: dict[str, str]
    body: str


class RecordedResponse(msgspec.Struct):
    status: int
    headers: dict[str, str]
    body: str


class RecordedFrame(msgspec.Struct):
    at_ms: float
    data: str


class Recorded(msgspec.Struct, kw_only=True):
    step: str
    attempt: int
    started_at: str
    duration_ms: float
    request: RecordedRequest
    response: RecordedResponse | None = None
    error: str | None = None
    notes: list[str] = []
    kind: str = "send"
    frames: list[RecordedFrame] | None = None
    connect_ms: float | None = None
    first_byte_ms: float | None = None


_records: msgspec.json.Decoder[Recorded] = msgspec.json.Decoder(Recorded)


def read_record(record: bytes) -> Recorded:
    """An exchange as the store has it."""
    return _records.decode(record)


def read_exchange(exchange: object) -> Recorded:
    """An exchange as the REST interface gives it."""
    return msgspec.convert(exchange, Recorded)
