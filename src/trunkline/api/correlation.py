"""The correlation id of a request: the caller's own, where it is sane, or one made here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from trunkline.ids import new_id

HEADER = "X-Correlation-ID"
RAW_HEADER = HEADER.lower().encode()
SCOPE_KEY = "trunkline.correlation_id"
# Visible ASCII: what comes from outside ends up in log lines and in the headers of other requests.
_SANE = re.compile(rb"[\x21-\x7e]{1,128}")


def correlation_id_of(scope: Mapping[str, object]) -> str:
    """The id of the request that this scope belongs to."""
    return str(scope[SCOPE_KEY])


def choose_correlation_id(headers: Iterable[tuple[bytes, bytes]]) -> str:
    for name, value in headers:
        if name == RAW_HEADER and _SANE.fullmatch(value):
            return value.decode("ascii")
    return new_id()
