"""
What a request to execute a workflow says: its query and headers, read by hand.

This is the hottest door, and the framework's own parameters would cost more than the rest of the answer.
"""

from __future__ import annotations

import math
import re
from urllib.parse import parse_qsl

import msgspec
from starlette.requests import Request

from trunkline.api.headers import find_header
from trunkline.errors import Finding, Invalid

IDEMPOTENCY_KEY = "Idempotency-Key"
# A call that waits holds a connection; whoever wants to wait longer asks again.
MAX_WAIT_SECONDS = 300.0
MAX_VERSION = 2**31 - 1

_RAW_KEY = IDEMPOTENCY_KEY.lower().encode()
_KEY = re.compile(rb"[\x20-\x7e]{1,255}")


class Execution(msgspec.Struct, frozen=True):
    version: int | None = None
    wait: float | None = None
    idempotency_key: str | None = None


def read_key(request: Request) -> str | None:
    given = find_header(request.scope["headers"], _RAW_KEY)
    if given is not None and not _KEY.fullmatch(given):
        raise _invalid("header.idempotency-key", "must be 1 to 255 printable ASCII characters")
    return None if given is None else given.decode("ascii")


def read_execution(request: Request) -> Execution:
    key = read_key(request)
    if not request.scope["query_string"]:
        return Execution(idempotency_key=key)
    query = dict(parse_qsl(request.scope["query_string"].decode("latin-1"), keep_blank_values=True))
    return Execution(_version(query.get("version")), _wait(query.get("wait")), key)


def _version(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= 10 and 1 <= int(text) <= MAX_VERSION):
        raise _invalid("query.version", f"must be a whole number from 1 to {MAX_VERSION}")
    return int(text)


def _wait(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise _invalid("query.wait", "must be a number of seconds, 0 or more")
    return min(seconds, MAX_WAIT_SECONDS)


def _invalid(path: str, message: str) -> Invalid:
    return Invalid(f"{path}: {message}", findings=[Finding(path=path, message=message)])
