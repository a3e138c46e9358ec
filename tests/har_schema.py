"""The HTTP Archive format, version 1.2, as a schema: what the specification requires, allows and forbids."""

from __future__ import annotations

import jsonschema_rs

from trunkline.jsontypes import Json, JsonObject

_TEXT: JsonObject = {"type": "string"}
_FLAG: JsonObject = {"type": "boolean"}
_DATE: JsonObject = {"type": "string", "format": "date-time"}
_COUNT: JsonObject = {"type": "integer"}
# -1: not known, or it does not apply.
_SIZE: JsonObject = {"type": "integer", "minimum": -1}
_TIME: JsonObject = {"type": "number", "minimum": 0}
_OPTIONAL_TIME: JsonObject = {"type": "number", "minimum": -1}


def _object(required: JsonObject, optional: JsonObject | None = None) -> JsonObject:
    """Everything may have a comment, and fields of one's own that begin with an underscore."""
    names: list[Json] = list(required)
    return {
        "type": "object",
        "properties": {**required, **(optional or {}), "comment": _TEXT},
        "required": names,
        "patternProperties": {"^_": True},
        "additionalProperties": False,
    }


def _list(items: JsonObject) -> JsonObject:
    return {"type": "array", "items": items}


_NAMED = _object({"name": _TEXT, "version": _TEXT})
_PAIRS = _list(_object({"name": _TEXT, "value": _TEXT}))
_COOKIES = _list(
    _object(
        {"name": _TEXT, "value": _TEXT},
        {"path": _TEXT, "domain": _TEXT, "expires": _DATE, "httpOnly": _FLAG, "secure": _FLAG},
    )
)
_PARAMS = _list(_object({"name": _TEXT}, {"value": _TEXT, "fileName": _TEXT, "contentType": _TEXT}))
_POST_DATA: JsonObject = {
    "oneOf": [
        _object({"mimeType": _TEXT, "text": _TEXT}),
        _object({"mimeType": _TEXT, "params": _PARAMS}, {"text": _TEXT}),
    ]
}
_REQUEST = _object(
    {
        "method": _TEXT,
        "url": {"type": "string", "format": "uri"},
        "httpVersion": _TEXT,
        "cookies": _COOKIES,
        "headers": _PAIRS,
        "queryString": _PAIRS,
        "headersSize": _SIZE,
        "bodySize": _SIZE,
    },
    {"postData": _POST_DATA},
)
_RESPONSE = _object(
    {
        "status": _COUNT,
        "statusText": _TEXT,
        "httpVersion": _TEXT,
        "cookies": _COOKIES,
        "headers": _PAIRS,
        "content": _object(
            {"size": _COUNT, "mimeType": _TEXT}, {"compression": _COUNT, "text": _TEXT, "encoding": _TEXT}
        ),
        "redirectURL": _TEXT,
        "headersSize": _SIZE,
        "bodySize": _SIZE,
    }
)
_CACHED: JsonObject = {
    "oneOf": [
        {"type": "null"},
        _object({"lastAccess": _TEXT, "eTag": _TEXT, "hitCount": _COUNT}, {"expires": _TEXT}),
    ]
}
_TIMINGS = _object(
    {"send": _TIME, "wait": _TIME, "receive": _TIME},
    {"blocked": _OPTIONAL_TIME, "dns": _OPTIONAL_TIME, "connect": _OPTIONAL_TIME, "ssl": _OPTIONAL_TIME},
)
_ENTRY = _object(
    {
        "startedDateTime": _DATE,
        "time": _TIME,
        "request": _REQUEST,
        "response": _RESPONSE,
        "cache": _object({}, {"beforeRequest": _CACHED, "afterRequest": _CACHED}),
        "timings": _TIMINGS,
    },
    {"pageref": _TEXT, "serverIPAddress": _TEXT, "connection": _TEXT},
)
_PAGE = _object(
    {
        "startedDateTime": _DATE,
        "id": _TEXT,
        "title": _TEXT,
        "pageTimings": _object({}, {"onContentLoad": _OPTIONAL_TIME, "onLoad": _OPTIONAL_TIME}),
    }
)
HAR: JsonObject = {
    "type": "object",
    "properties": {
        "log": _object(
            {"version": {"const": "1.2"}, "creator": _NAMED, "entries": _list(_ENTRY)},
            {"browser": _NAMED, "pages": _list(_PAGE)},
        )
    },
    "required": ["log"],
    "additionalProperties": False,
}


def check_har(archive: Json) -> None:
    """That it is one, and that its times and its pages fit together."""
    jsonschema_rs.validator_for(HAR, validate_formats=True).validate(archive)
    assert isinstance(archive, dict)
    log = archive["log"]
    assert isinstance(log, dict)
    pages = {str(page["id"]) for page in _objects(log.get("pages", []))}
    for entry in _objects(log["entries"]):
        timings = entry["timings"]
        assert isinstance(timings, dict)
        parts = [value for value in timings.values() if isinstance(value, int | float) and value > 0]
        assert abs(sum(parts) - float(str(entry["time"]))) < 0.01, entry["time"]
        assert "pageref" not in entry or entry["pageref"] in pages


def _objects(value: Json) -> list[JsonObject]:
    assert isinstance(value, list)
    return [item for item in value if isinstance(item, dict)]
