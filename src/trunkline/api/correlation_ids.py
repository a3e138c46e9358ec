"""The correlation id of a request: the caller's own, if it is valid, or a new one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from trunkline.id_generation import new_id

HEADER = "X-Correlation-ID"
RAW_HEADER = HEADER.lower().encode()
SCOPE_KEY = "trunkline.correlation_id"
# Visible ASCII: what comes from outside ends up in log lines and in the headers of other requests.
_VISIBLE_ASCII = re.compile(rb"[\x21-\x7e]{1,128}")


def correlation_id_of(scope: Mapping[str, object]) -> str:
    """The id of the request that this scope belongs to."""
    return str(scope[SCOPE_KEY])


def choose_correlation_id(headers: Iterable[tuple[bytes, bytes]]) -> str:
    given = find_header(headers, RAW_HEADER)
    return given.decode("ascii") if given is not None and _VISIBLE_ASCII.fullmatch(given) else new_id()


def find_header(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> bytes | None:
    """A raw header; `name` is in lower case. Cheaper than Starlette's mapping."""
    for key, value in headers:
        if key == name:
            return value
    return None
