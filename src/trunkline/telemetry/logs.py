"""Logging: structlog, as JSON or for a person's eyes, on stderr."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable
from typing import Literal

import msgspec
import structlog
from structlog.typing import EventDict, WrappedLogger

from trunkline.clock import Instant, rfc3339
from trunkline.telemetry.lines import LineWriter

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
            wrapper_class=type(wrapper.__name__, (_InOneStep, wrapper), {}),
            logger_factory=_one_for_all(LineWriter(sys.stderr.buffer)),
            cache_logger_on_first_use=True,
        )
    # Libraries log through the standard library; only what is wrong with them is of interest.
    logging.basicConfig(
        level=max(LEVELS[level], logging.WARNING), stream=sys.stderr, format="%(levelname)s %(message)s"
    )


class _InOneStep(structlog.BoundLoggerBase):
    """Does without structlog's walk along a list of processors that has one member."""

    def _proxy_to_logger(self, method_name: str, event: str | None = None, **event_kw: object) -> None:
        line = json_line(self._logger, method_name, {**self._context, **event_kw, "event": event})
        getattr(self._logger, method_name)(line)


def _one_for_all(writer: LineWriter) -> Callable[..., LineWriter]:
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
        # Half a surrogate pair, a key that is no text: whatever it is, the line is written.
        return json.dumps(event, default=repr, skipkeys=True).encode()
