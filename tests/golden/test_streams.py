"""
Streams, two files for each case.

    streams/<protocol>/<case>.sse    the bytes as an agent sends them
    streams/<protocol>/<case>.json   what each event says, and what all of them mean when the stream has ended

A file says only what differs from the defaults.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.golden.test_wire import adapter_for, as_json

from trunkline.jsontypes import JsonObject, decode, encode
from trunkline.messages import AgentTask
from trunkline.protocols import ProtocolTranslationError, StreamUpdate, TaskStreamReader
from trunkline.sse import SseParser

HERE = Path(__file__).parent / "streams"
MEGABYTE = 1024 * 1024


class StreamCase(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    about: str
    protocol: str
    protocol_config: JsonObject | None = None
    task: AgentTask = msgspec.field(default_factory=lambda: AgentTask(task_id="task-123"))
    news: list[JsonObject]
    outcome: JsonObject


def cases() -> list[str]:
    return sorted(path.relative_to(HERE).with_suffix("").as_posix() for path in HERE.rglob("*.json"))


def events(name: str, chunk_bytes: int) -> Iterator[bytes]:
    stream = (HERE / f"{name}.sse").read_bytes()
    parser = SseParser(max_line_bytes=MEGABYTE, max_event_bytes=MEGABYTE)
    for start in range(0, len(stream), chunk_bytes):
        for event in parser.feed(stream[start : start + chunk_bytes]):
            yield event.data


def refusal(exc: ProtocolTranslationError) -> JsonObject:
    return {"kind": "ProtocolTranslationError", "code": exc.code, "message": str(exc)}


def taken(reading: TaskStreamReader, data: bytes) -> JsonObject:
    try:
        return shown(reading.take(data))
    except ProtocolTranslationError as exc:
        return refusal(exc)


def shown(news: StreamUpdate) -> JsonObject:
    values: JsonObject = {}
    for field in msgspec.structs.fields(news):
        value: object = getattr(news, field.name)
        if value not in (None, False):
            values[field.name] = decode(encode(value))
    return values


def meaning(reading: TaskStreamReader) -> JsonObject:
    try:
        return as_json(reading.outcome())
    except ProtocolTranslationError as exc:
        return refusal(exc)


@pytest.mark.parametrize("chunk_bytes", [MEGABYTE, 7])
@pytest.mark.parametrize("name", cases())
def test_a_stream_says_what_is_in_the_file(name: str, chunk_bytes: int) -> None:
    case = msgspec.json.decode((HERE / f"{name}.json").read_bytes(), type=StreamCase)
    reading = adapter_for(case.protocol, case.protocol_config).read_stream(case.task)
    assert [taken(reading, data) for data in events(name, chunk_bytes)] == case.news
    assert meaning(reading) == case.outcome
