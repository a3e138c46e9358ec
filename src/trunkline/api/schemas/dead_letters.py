"""Dead letters as the API shows them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from trunkline.api.schemas.common import NextCursor, Shape, Time

Encoding = Literal["utf-8", "base64"]


class DeadLetterSummary(Shape):
    id: str
    topic: str = Field(description="Where the record was, and where a replay sends it.")
    partition: int
    offset: int
    key: str | None = Field(description="The record's key; null: it has none.")
    key_encoding: Encoding = Field(description="`base64` where the key is no text.")
    size: int = Field(description="The value's length in bytes.")
    reason: str = Field(description="Why it is here, and what to do about it.")
    at: Time = Field(description="When it was put here.")


class LetterHeader(Shape):
    name: str
    value: str
    encoding: Encoding


class DeadLetter(DeadLetterSummary):
    value: str | None = Field(description="The record's value; null: it has none.")
    encoding: Encoding = Field(description="`base64` where the value is no text.")
    cut: bool = Field(description="Whether `value` is only the beginning of it.")
    headers: list[LetterHeader] = Field(description="Those that may hold secrets are redacted.")


class DeadLetterPage(Shape):
    items: list[DeadLetterSummary]
    next_cursor: NextCursor
