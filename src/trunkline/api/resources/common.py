"""What many resources are made of: times, stored JSON, findings, problems."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, NotRequired, TypedDict, cast

import msgspec

from trunkline.clock import Instant, rfc3339
from trunkline.errors import Finding
from trunkline.jsontypes import Json, JsonObject

_ANY_JSON = {"$ref": "#/components/schemas/JsonValue"}

JsonValue = Annotated[Json, msgspec.Meta(extra_json_schema=_ANY_JSON)]
JsonMapping = Annotated[JsonObject, msgspec.Meta(extra_json_schema={"additionalProperties": _ANY_JSON})]
Timestamp = Annotated[
    str,
    msgspec.Meta(
        description="RFC 3339, UTC.",
        examples=["2026-03-01T12:00:00.123456Z"],
        extra_json_schema={"format": "date-time"},
    ),
]
NextCursor = Annotated[
    str | None, msgspec.Meta(description="`cursor` of the next page; null: there is none.")
]

# Its type is that of the value that a client decodes.
_raw = cast("Callable[[bytes], Json]", msgspec.Raw)


class FindingResource(TypedDict):
    """One thing that is wrong, and where."""

    path: Annotated[str, msgspec.Meta(description="Where in the input, as a dotted path.")]
    line: NotRequired[Annotated[int | None, msgspec.Meta(description="Where in the text, from 1.")]]
    column: NotRequired[Annotated[int | None, msgspec.Meta(description="Where in the line, from 1.")]]
    message: str
    missing: NotRequired[
        Annotated[str, msgspec.Meta(description="The required property that the object at `path` lacks.")]
    ]


class Problem(TypedDict):
    """Why a request was not answered as it wished."""

    type: Annotated[str, msgspec.Meta(examples=["urn:trunkline:problem:not-found"])]
    title: str
    status: int
    detail: Annotated[str, msgspec.Meta(description="What is wrong.")]
    fix: Annotated[str, msgspec.Meta(description="What to do about it.")]
    fix_command: NotRequired[
        Annotated[
            str, msgspec.Meta(description="The command in `fix`, if it has one that can be typed as it is.")
        ]
    ]
    errors: NotRequired[list[FindingResource]]
    correlation_id: Annotated[str, msgspec.Meta(description="The server's log knows the request by it.")]


def finding_resource(finding: Finding) -> FindingResource:
    resource: FindingResource = {
        "path": finding.path,
        "message": finding.message,
        "line": finding.line,
        "column": finding.column,
    }
    if finding.missing is not msgspec.UNSET:
        resource["missing"] = finding.missing
    return resource


def time_or_none(instant: Instant | None) -> str | None:
    return None if instant is None else rfc3339(instant)


def stored_json(text: bytes | None) -> Json:
    """JSON that was encoded when it was stored, to be spliced into an answer as it is."""
    return None if text is None else _raw(text)


def page_of(items: Sequence[object], next_cursor: str | None) -> dict[str, object]:
    """The form of every list."""
    return {"items": items, "next_cursor": next_cursor}
