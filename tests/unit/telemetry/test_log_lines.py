"""Log lines reach the stream, together where they can, at once where they must."""

from __future__ import annotations

import asyncio
import io
import threading

import pytest
import structlog

from trunkline.telemetry.logs import LogLineWriter, json_line

pytestmark = pytest.mark.anyio


class _Stream(io.BytesIO):
    """Counts what would be system calls."""

    def __init__(self) -> None:
        super().__init__()
        self.flushes = 0

    def flush(self) -> None:
        self.flushes += 1


async def test_lines_of_one_turn_of_the_loop_are_written_together() -> None:
    stream = _Stream()
    writer = LogLineWriter(stream)
    for number in range(3):
        writer.info(b"line %d" % number)
    assert stream.getvalue() == b""
    await asyncio.sleep(0)
    assert (stream.getvalue(), stream.flushes) == (b"line 0\nline 1\nline 2\n", 1)


async def test_a_warning_is_written_at_once_with_all_before_it() -> None:
    stream = _Stream()
    writer = LogLineWriter(stream)
    writer.info(b"before")
    writer.warning(b"danger")
    assert stream.getvalue() == b"before\ndanger\n"
    await asyncio.sleep(0)
    assert stream.getvalue() == b"before\ndanger\n"


def test_without_a_loop_a_line_is_written_at_once() -> None:
    stream = _Stream()
    writer = LogLineWriter(stream)
    writer.info(b"early")
    thread = threading.Thread(target=writer.info, args=(b"elsewhere",))
    thread.start()
    thread.join()
    assert stream.getvalue() == b"early\nelsewhere\n"


def test_a_reader_of_the_log_that_has_gone_stops_nothing() -> None:
    stream = _Stream()
    writer = LogLineWriter(stream)
    stream.close()
    writer.error(b"into the void")


def test_a_line_that_json_cannot_hold_is_written_all_the_same() -> None:
    line = json_line(
        None, "info", {"event": "odd", "text": "half \ud800", "number": 2**80, "object": structlog}
    )
    assert b'"event": "odd"' in line
    assert b"1208925819614629174706176" in line


def test_a_line_has_its_level_and_its_time() -> None:
    line = json_line(None, "info", {"event": "fine"})
    assert line.startswith(b'{"event":"fine","level":"info","timestamp":"')
    assert line.endswith(b'Z"}')
