"""
The trace that a request belongs to, as W3C Trace Context has it.

    traceparent  00-<trace id>-<span id>-<flags>
    tracestate   what other tracing systems want to know further down, as it came

A caller that starts a run may send both. The requests to its agents carry them.
"""

from __future__ import annotations

import re
from typing import Self

import msgspec

TRACEPARENT = "traceparent"
TRACESTATE = "tracestate"
RAW_TRACEPARENT = TRACEPARENT.encode()
RAW_TRACESTATE = TRACESTATE.encode()

# A version that is not known yet may say more after the flags; ff is none, and ids of zeros alone are none.
_TRACEPARENT = re.compile(
    rb"(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2})(-.*)?"
)
_VERSION = b"00"
# What everybody has to pass on; the rest may be dropped.
_LONGEST_STATE = 512
_STATE = re.compile(rb"[\x20-\x7e]+")


class TraceContext(msgspec.Struct, frozen=True, omit_defaults=True):
    traceparent: str
    tracestate: str | None = None

    @classmethod
    def read(cls, traceparent: bytes | None, tracestate: bytes | None = None) -> Self | None:
        """None: there is none, or it is broken. What is broken begins no error, only another trace."""
        if traceparent is None:
            return None
        read = _TRACEPARENT.fullmatch(traceparent.strip())
        if read is None or (read[1] == _VERSION and read[3]):
            return None
        return cls(f"00-{read[2].decode()}", _state(tracestate))

    @property
    def trace_id(self) -> str:
        return self.traceparent.split("-")[1]


def _state(tracestate: bytes | None) -> str | None:
    if tracestate is None or len(tracestate) > _LONGEST_STATE or not _STATE.fullmatch(tracestate):
        return None
    return tracestate.decode().strip() or None
