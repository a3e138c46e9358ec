"""Logging: structlog, as JSON or for a person's eyes, on stderr."""

from __future__ import annotations

import logging
import sys
from typing import Literal

import structlog

LogFormat = Literal["json", "console", "auto"]
LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def configure_logs(level: str, log_format: LogFormat) -> None:
    """`auto` is for people on a terminal and JSON anywhere else."""
    for_people = log_format == "console" or (log_format == "auto" and sys.stderr.isatty())
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    if for_people:
        renderer: structlog.typing.Processor = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
        shared.pop()
    else:
        renderer = structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    # Libraries log through the standard library; only what is wrong with them is of interest.
    logging.basicConfig(
        level=max(LEVELS[level], logging.WARNING), stream=sys.stderr, format="%(levelname)s %(message)s"
    )
