"""The shapes of named secrets; no answer ever has a value."""

from __future__ import annotations

from pydantic import Field

from trunkline.api.schemas.common import NextCursor, Shape, Time


class Secret(Shape):
    """A named secret, without its value."""

    name: str
    version: int = Field(description="How often it has been set.")
    created_at: Time
    updated_at: Time


class SecretPage(Shape):
    items: list[Secret]
    next_cursor: NextCursor


class SecretValue(Shape):
    value: str = Field(
        description="Kept encrypted; nobody can read it again. A shorter one could not be hidden in records.",
        min_length=4,
        max_length=65_536,
        json_schema_extra={"writeOnly": True},
    )
