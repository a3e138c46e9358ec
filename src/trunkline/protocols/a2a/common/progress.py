"""
What an agent says while it works, as much as is worth showing.

    Progress {"kind": "status" | "artifact", "text", "artifact_id", "name", "append", "last", "parts"}

`parts` are those that are no text, in the form in which the agent sent them. A long string in one (the bytes of
a file) is cut; a part that is long all the same is only named.
"""

from __future__ import annotations

from trunkline.jsontypes import Json, JsonObject, encode

# A name, an address, a small table. The whole is in the step's output.
_SHOWN_BYTES = 4_096
_SHOWN_CHARACTERS = 200


def shown_part(part: JsonObject) -> JsonObject:
    """The part as a run's events may show it."""
    size = len(encode(part))
    if size <= _SHOWN_BYTES:
        return part
    cut = {name: _cut(value) for name, value in part.items()}
    if len(encode(cut)) <= _SHOWN_BYTES:
        return cut
    return {"kind": _cut(part.get("kind")), "omitted_bytes": size}


def _cut(value: Json) -> Json:
    match value:
        case str():
            return value if len(value) <= _SHOWN_CHARACTERS else value[:_SHOWN_CHARACTERS] + "…"
        case dict():
            return {name: _cut(inner) for name, inner in value.items()}
        case list():
            return [_cut(inner) for inner in value]
        case _:
            return value
