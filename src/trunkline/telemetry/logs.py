"""Logging: structlog, as JSON or for a person's eyes, on stderr."""

from __future__ import annotations

import asyncio
import atexit
import json
import logging
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO, Literal

import msgspec
import structlog
from structlog.typing import EventDict, WrappedLogger

from trunkline.clock import Instant, rfc3339

LogFormat = Literal["json", "console", "auto"]
LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def configure_logs(level: str, log_format: LogFormat) -> None:
    """`auto` is for people on a terminal and JSON anywhere else."""
    for_people = log_format == "console" or (log_format == "auto" and sys.stderr.isatty())
    wrapper = structlog.make_filtering_bound_logger(LEVELS[level])
    if for_people:
        structlog.configure(
            processors=[
                structlog.processors.add_log_level,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                # Not the usual way to show an exception: that shows what every variable held, secrets too.
                structlog.dev.ConsoleRenderer(
                    colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
                ),
            ],
            wrapper_class=wrapper,
            logger_factory=structlog.PrintLoggerFactory(sys.stderr),
            cache_logger_on_first_use=True,
        )
    else:
        structlog.configure(
            processors=[json_line],
            wrapper_class=type(wrapper.__name__, (_SingleStepLogger, wrapper), {}),
            logger_factory=_shared_writer(LogLineWriter(sys.stderr.buffer)),
            cache_logger_on_first_use=True,
        )
    # Libraries log through the standard library; only what is wrong with them is of interest.
    logging.basicConfig(
        level=max(LEVELS[level], logging.WARNING), stream=sys.stderr, format="%(levelname)s %(message)s"
    )


class _SingleStepLogger(structlog.BoundLoggerBase):
    """Does without structlog's walk along a list of processors that has one member."""

    def _proxy_to_logger(self, method_name: str, event: str | None = None, **event_kw: object) -> None:
        line = json_line(self._logger, method_name, {**self._context, **event_kw, "event": event})
        getattr(self._logger, method_name)(line)


def _shared_writer(writer: LogLineWriter) -> Callable[..., LogLineWriter]:
    return lambda *_: writer


_encoder = msgspec.json.Encoder(enc_hook=repr)


def json_line(logger: WrappedLogger, method: str, event: EventDict) -> bytes:
    """All that structlog's own processors do for such a line, in one: several lines are written for each step."""
    event["level"] = method
    event["timestamp"] = rfc3339(Instant(time.time_ns() // 1_000))
    if "exc_info" in event:
        event = structlog.processors.format_exc_info(logger, method, event)
    try:
        return _encoder.encode(event)
    except (TypeError, ValueError, OverflowError):
        # An unpaired surrogate, a key that is not a string: the line is written in any case.
        return json.dumps(event, default=repr, skipkeys=True).encode()


class LogLineWriter:
    """What structlog calls a logger: a method for each level."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._lines: list[bytes] = []
        self._lock = threading.Lock()
        atexit.register(self.flush)

    def _soon(self, line: bytes) -> None:
        with self._lock:
            self._lines.append(line)
            is_first = len(self._lines) == 1
        if is_first:
            try:
                asyncio.get_running_loop().call_soon(self.flush)
            except RuntimeError:
                # In a thread, or before the loop runs.
                self.flush()

    def _now(self, line: bytes) -> None:
        with self._lock:
            self._lines.append(line)
        self.flush()

    debug = info = _soon
    warning = error = critical = _now

    def flush(self) -> None:
        with self._lock:
            lines, self._lines = self._lines, []
            if lines:
                # The reader of the log is gone: the process continues without a log.
                with suppress(OSError, ValueError):
                    self._stream.write(b"\n".join([*lines, b""]))
                    self._stream.flush()
