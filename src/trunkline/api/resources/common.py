"""Types that many resources share: timestamps, stored JSON, findings, problems."""

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
    str | None, msgspec.Meta(description="Pass it as `cursor` to get the next page. Null on the last page.")
]

# Typed as the value that a client decodes.
_raw = cast("Callable[[bytes], Json]", msgspec.Raw)


class FindingResource(TypedDict):
    """One invalid value, and its position."""

    path: Annotated[str, msgspec.Meta(description="Dotted path to the value in the input.")]
    line: NotRequired[Annotated[int | None, msgspec.Meta(description="Line in the source, starting at 1.")]]
    column: NotRequired[Annotated[int | None, msgspec.Meta(description="Column in the line, starting at 1.")]]
    message: str
    missing: NotRequired[
        Annotated[
            str, msgspec.Meta(description="The required property that is missing from the object at `path`.")
        ]
    ]


class Problem(TypedDict):
    """An error response (RFC 9457), with `fix` as an extension."""

    type: Annotated[str, msgspec.Meta(examples=["urn:trunkline:problem:not-found"])]
    title: str
    status: int
    detail: Annotated[str, msgspec.Meta(description="What went wrong.")]
    fix: Annotated[str, msgspec.Meta(description="How to fix it.")]
    fix_command: NotRequired[
        Annotated[
            str, msgspec.Meta(description="The command in `fix`, if there is one that can be run as is.")
        ]
    ]
    errors: NotRequired[list[FindingResource]]
    correlation_id: Annotated[str, msgspec.Meta(description="Identifies the request in the server's log.")]


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
    """JSON that was encoded when it was stored. It is copied into the response without decoding."""
    return None if text is None else _raw(text)


def page_of(items: Sequence[object], next_cursor: str | None) -> dict[str, object]:
    """The shape of every list response."""
    return {"items": items, "next_cursor": next_cursor}
