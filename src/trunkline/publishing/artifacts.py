"""
A run's output as artifacts, in the form of 1.0.

    a string                                 one artifact with a text part
    an object with a list `artifacts`        those, as agents wrote them in 0.x or 1.0, with their files
    null                                     none
    any other value                          one artifact with a data part

An artifact that `publish` names is made of its value in the same way: an object with `parts`, or with `artifacts`, has
its parts, and null is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from trunkline.jsontypes import Json, JsonObject

_NAME = "output"
_ARTIFACT_FIELDS = ("name", "description", "metadata", "extensions")


def artifacts_of(output: Json) -> list[JsonObject]:
    match output:
        case None:
            return []
        case str():
            return [_artifact({"text": output})]
        case {"artifacts": list(listed)}:
            found = [_read_artifact(number, each) for number, each in enumerate(listed, 1)]
            return [artifact for artifact in found if artifact is not None]
        case _:
            return [_artifact({"data": output})]


def named_artifacts(values: Mapping[str, Json]) -> list[JsonObject]:
    """In the form of agents: their files are still references."""
    return [
        {"artifactId": name, "name": name, "parts": parts}
        for name, value in values.items()
        if (parts := parts_of(value))
    ]


def parts_of(value: Json) -> list[Json]:
    match value:
        case None:
            return []
        case str():
            return [{"text": value}]
        case {"parts": list(parts)}:
            return parts
        case {"artifacts": list(artifacts)}:
            return list(chain.from_iterable(map(parts_of, artifacts)))
        case _:
            return [{"data": value}]


def _artifact(part: JsonObject) -> JsonObject:
    return {"artifactId": _NAME, "name": _NAME, "parts": [part]}


def _read_artifact(number: int, value: Json) -> JsonObject | None:
    """An artifact with the fields that 1.0 knows; None if it has no parts, which 1.0 does not allow."""
    if not isinstance(value, dict):
        return None
    listed = value.get("parts")
    parts = (
        [part for each in listed if (part := part_v1(each)) is not None] if isinstance(listed, list) else []
    )
    if not parts:
        return None
    identity = value.get("artifactId")
    named = identity if isinstance(identity, str) and identity else f"{_NAME}-{number}"
    artifact: JsonObject = {"artifactId": named, "parts": [*parts]}
    return artifact | {name: value[name] for name in _ARTIFACT_FIELDS if value.get(name) is not None}


def part_v1(value: Json) -> JsonObject | None:
    """A part in any form that agents use, in that of 1.0; None if it has no content."""
    if not isinstance(value, dict):
        return {"text": value} if isinstance(value, str) else None
    part: JsonObject = {}
    file = value.get("file")
    if isinstance(file, dict):
        names = (("bytes", "raw"), ("uri", "url"), ("mimeType", "mediaType"), ("name", "filename"))
        part = {ours: file[theirs] for theirs, ours in names if isinstance(file.get(theirs), str)}
    else:
        for name in ("text", "raw", "url"):
            if isinstance(value.get(name), str):
                part[name] = value[name]
                break
        else:
            if "data" in value:
                part["data"] = value["data"]
        part |= {name: value[name] for name in ("filename", "mediaType") if isinstance(value.get(name), str)}
    if not part.keys() & {"text", "raw", "url", "data"}:
        return None
    if isinstance(value.get("metadata"), dict) and value["metadata"]:
        part["metadata"] = value["metadata"]
    return part
