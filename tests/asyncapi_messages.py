"""The AsyncAPI document as a judge of records: which of a channel's messages is this one?"""

from __future__ import annotations

from collections.abc import Mapping

import jsonschema_rs

from trunkline.jsontypes import Json, JsonObject, decode


def at(document: JsonObject, *path: str) -> JsonObject:
    """The object under those names; it must be there."""
    found: Json = document
    for part in path:
        assert isinstance(found, dict)
        found = found[part]
    assert isinstance(found, dict)
    return found


def validator(document: JsonObject, schema: JsonObject) -> jsonschema_rs.Validator:
    """Of one schema of the document, whose references lead to the others in it."""
    whole = {**schema, "components": at(document, "components")}
    return jsonschema_rs.validator_for(whole, validate_formats=True)


def matching_messages(
    document: JsonObject, channel: str, headers: Mapping[str, bytes], value: bytes
) -> list[str]:
    """The names of the channel's messages whose headers and payload these are."""
    told = {name: content.decode() for name, content in headers.items()}
    found: list[str] = []
    for name in at(document, "channels", channel, "messages"):
        message = at(document, "components", "messages", name)
        headers_fit = validator(document, at(message, "headers")).is_valid(told)
        if headers_fit and validator(document, at(message, "payload")).is_valid(decode(value)):
            found.append(name)
    return found
