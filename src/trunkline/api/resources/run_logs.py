"""The log of a run, line by line."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from msgspec import Meta

from trunkline.api.resources.common import NextCursor, Timestamp
from trunkline.clock import rfc3339
from trunkline.services.runs.logs import RunLogLine


class LogLineResource(TypedDict):
    at: Annotated[Timestamp, Meta(description="When it happened; of an exchange, when it had ended.")]
    level: Literal["info", "warning", "error"]
    source: Annotated[
        Literal["run", "agent", "wire"],
        Meta(
            description="`run`: its history; `agent`: what an agent has said meanwhile; `wire`: an exchange with one."
        ),
    ]
    event: Annotated[str, Meta(description="The type of the event, or what the exchange was for.")]
    step: str | None
    attempt: int | None
    text: Annotated[str, Meta(description="What there is to say; it may have several lines.")]


class LogPage(TypedDict):
    items: list[LogLineResource]
    next_cursor: NextCursor


def log_line(line: RunLogLine) -> LogLineResource:
    return {
        "at": rfc3339(line.at),
        "level": line.level,
        "source": line.source,
        "event": line.event,
        "step": line.step,
        "attempt": line.attempt,
        "text": line.text,
    }
