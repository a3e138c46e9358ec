"""What every description of a shape is made of."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, JsonValue
from pydantic.fields import FieldInfo

Time = Annotated[datetime, Field(description="RFC 3339, UTC.", examples=["2026-03-01T12:00:00.123456Z"])]
NextCursor = Annotated[str | None, Field(description="`cursor` of the next page; null: there is none.")]
Duration = Annotated[
    str,
    Field(
        description="A number and a unit: `100ms`, `25s`, `5m`, `1h`, `2d`.",
        pattern=r"^[0-9]{1,12}(\.[0-9]{1,3})?(ms|s|m|h|d)$",
        examples=["25s"],
    ),
]


JsonObject = dict[str, JsonValue]


def optional(description: str | None = None) -> FieldInfo:
    """A field that may be left out, but not be null; its default is nobody's business."""
    return Field(description=description, json_schema_extra=_without_default)


def _without_default(schema: dict[str, JsonValue]) -> None:
    schema.pop("default", None)


class Shape(BaseModel):
    """A JSON object with these fields and no others."""

    model_config = ConfigDict(extra="forbid")


class Finding(Shape):
    """One thing that is wrong, and where."""

    path: str = Field(description="Where in the input, as a dotted path.")
    line: int | None = Field(default=None, description="Where in the text, from 1.")
    column: int | None = Field(default=None, description="Where in the line, from 1.")
    message: str
    missing: str | None = Field(
        default=None, description="The required property that the object at `path` lacks."
    )
