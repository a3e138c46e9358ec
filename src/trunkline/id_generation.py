"""Generates new ids from the time and from random numbers. Ids that are derived from others are in `ids.py`."""

from __future__ import annotations

import os
import time

from trunkline.ids import RunId

# The last id that this process has made, as a number.
_last = 0


def new_id() -> str:
    """
    A UUID of version 7: it begins with the time, so ids sort by creation and lists page by id.

    In one process each is greater than the one before, also within a millisecond. CPython has `uuid.uuid7` from 3.14 on
    only.
    """
    global _last  # noqa: PLW0603 - an id made before is what the next one has to be greater than
    milliseconds = time.time_ns() // 1_000_000
    value = milliseconds << 80 | int.from_bytes(os.urandom(10), "big")
    value = value & ~(0xF000 << 64) | 0x7000 << 64
    value = value & ~(0xC000 << 48) | 0x8000 << 48
    if value <= _last:
        value = _last + 1 + int.from_bytes(os.urandom(4), "big")
    _last = value
    digits = f"{value:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def new_run_id() -> RunId:
    return RunId(new_id())
