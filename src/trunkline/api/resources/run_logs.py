"""The log of a run, line by line."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from msgspec import Meta

from trunkline.api.resources.common import NextCursor, Timestamp
from trunkline.clock import rfc3339
from trunkline.services.runs.logs import RunLogLine


class LogLineResource(TypedDict):
    at: Annotated[Timestamp, Meta(description="When it happened. For an exchange, when it ended.")]
    level: Literal["info", "warning", "error"]
    source: Annotated[
        Literal["run", "agent", "wire"],
        Meta(
            description="`run`: an event of the run. `agent`: a progress message of an agent. `wire`: an "
            "exchange with an agent."
        ),
    ]
    event: Annotated[str, Meta(description="Type of the event, or purpose of the exchange.")]
    step: str | None
    attempt: int | None
    text: Annotated[str, Meta(description="The message. It can have several lines.")]


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
