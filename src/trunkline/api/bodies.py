"""
Request bodies: read up to a limit, decoded once.

The content type does not matter: a body is parsed as JSON, because curl sends a form's content type by default.
"""

from __future__ import annotations

from functools import cache
from typing import TypeVar, cast

import msgspec
from starlette.requests import ClientDisconnect, Request

from trunkline.api.correlation_ids import find_header
from trunkline.api.problems import BodyTooLarge, MalformedBody, finding_of
from trunkline.errors import Invalid
from trunkline.jsontypes import (
    MAX_CONTAINERS,
    MAX_DEPTH,
    Json,
    JsonObject,
    decode,
    has_too_many_containers,
    is_too_deep,
)

T = TypeVar("T")


async def read_body(request: Request, limit: int) -> bytes:
    """The complete body. Rejected as soon as it is known to be larger than `limit` bytes."""
    declared = find_header(request.scope["headers"], b"content-length")
    if declared is not None and int(declared) > limit:
        raise _too_large(limit)
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunk: bytes = message.get("body", b"")
        size += len(chunk)
        if size > limit:
            raise _too_large(limit)
        chunks.append(chunk)
        if not message.get("more_body", False):
            return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _too_large(limit: int) -> BodyTooLarge:
    return BodyTooLarge(
        f"The body is larger than {limit} bytes.",
        fix=f"Send at most {limit} bytes, or raise TRUNKLINE_MAX_BODY_BYTES.",
    )


def decode_json(body: bytes) -> Json:
    """
    The value of a JSON text; `MalformedBody` says where it is broken.

    Raises `BodyTooLarge` for more objects and arrays than the event loop can decode at once.
    """
    if has_too_many_containers(body):
        raise BodyTooLarge(
            f"The body has more than {MAX_CONTAINERS:,} objects and arrays.",
            fix="Send it in several requests, or large content as a string or a URL.",
        )
    try:
        value = decode(body)
    except RecursionError:
        raise _too_deep() from None
    except UnicodeDecodeError as error:
        raise MalformedBody(f"The body is not valid UTF-8: {error.reason}.") from error
    except (msgspec.DecodeError, ValueError) as error:
        # ValueError: an integer with more digits than Python converts.
        raise MalformedBody(f"The body is not valid JSON: {error}.") from error
    if body.count(b"[") + body.count(b"{") > MAX_DEPTH and is_too_deep(value):
        raise _too_deep()
    return value


def decode_object(body: bytes) -> JsonObject:
    """The JSON object of a body."""
    value = decode_json(body)
    if not isinstance(value, dict):
        raise Invalid("The body must be a JSON object.", fix="Send an object: {…}.")
    return value


def with_whole_numbers(body: JsonObject, form: type[msgspec.Struct]) -> JsonObject:
    """`body` with 434.0 as 434 where `form` has an integer: both are integers to JSON Schema, but not to msgspec."""
    names = _integer_fields(form)
    whole = {
        name: int(value)
        for name in names
        if isinstance(value := body.get(name), float) and value.is_integer()
    }
    return {**body, **whole} if whole else body


@cache
def _integer_fields(form: type[msgspec.Struct]) -> frozenset[str]:
    fields = msgspec.json.schema(form)["$defs"][form.__name__]["properties"]
    return frozenset(name for name, schema in fields.items() if _is_integer(schema))


def _is_integer(schema: dict[str, object]) -> bool:
    kinds = [schema, *cast("list[dict[str, object]]", schema.get("anyOf", []))]
    return any(kind.get("type") == "integer" for kind in kinds)


def convert(value: Json, type_: type[T]) -> T:
    """`value` as a msgspec struct; `Invalid` says which field is wrong."""
    try:
        return msgspec.convert(value, type_)
    except msgspec.ValidationError as error:
        finding = finding_of(error)
        where = f"{finding.path}: " if finding.path else ""
        raise Invalid(f"{where}{finding.message}", findings=[finding]) from error


def _too_deep() -> MalformedBody:
    return MalformedBody(
        f"The body is nested more than {MAX_DEPTH} levels deep.",
        fix="Flatten it, or send the nested part as a string.",
    )
