"""What is known of a run, line by line."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from trunkline.api.schemas.common import NextCursor, Shape, Time


class LogLine(Shape):
    at: Time = Field(description="When it happened; of an exchange, when it had ended.")
    level: Literal["info", "warning", "error"]
    source: Literal["run", "agent", "wire"] = Field(
        description="`run`: its history; `agent`: what an agent has said meanwhile; `wire`: an exchange with one."
    )
    event: str = Field(description="The type of the event, or what the exchange was for.")
    step: str | None
    attempt: int | None
    text: str = Field(description="What there is to say; it may have several lines.")


class LogPage(Shape):
    items: list[LogLine]
    next_cursor: NextCursor
