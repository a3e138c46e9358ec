"""
What the program's exit code says, and the one table that turns a problem or a run's end into it.

Errors are named by their class names, so that looking one up never imports the modules that define them.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class Exit(IntEnum):
    OK = 0
    UNEXPECTED = 1
    USAGE = 2
    NOT_FOUND = 3
    CONFLICT = 4
    NOT_ALLOWED = 5
    UNREACHABLE = 6
    INVALID = 7
    # A check that could not find out enough, and nothing that is wrong.
    INCONCLUSIVE = 8
    RUN_FAILED = 10
    RUN_CANCELLED = 11
    TIMED_OUT = 12
    INPUT_REQUIRED = 13
    # What a shell reports for a program that Ctrl-C ended.
    INTERRUPTED = 130


class _Row(NamedTuple):
    exit: Exit
    statuses: tuple[int, ...] = ()
    errors: tuple[str, ...] = ()
    run_statuses: tuple[str, ...] = ()


_TABLE = (
    _Row(Exit.OK, run_statuses=("COMPLETED",)),
    _Row(Exit.NOT_FOUND, statuses=(404, 410), errors=("NotFound",)),
    _Row(Exit.CONFLICT, statuses=(409, 412), errors=("Conflict",)),
    _Row(Exit.NOT_ALLOWED, statuses=(401, 403), errors=("NotAllowed",)),
    _Row(Exit.UNREACHABLE, statuses=(502, 503, 504), errors=("Unavailable",)),
    _Row(Exit.INVALID, statuses=(400, 413, 415, 422), errors=("Invalid", "ConfigurationError")),
    _Row(Exit.RUN_FAILED, run_statuses=("FAILED",)),
    _Row(Exit.RUN_CANCELLED, run_statuses=("CANCELLED",)),
    _Row(Exit.INPUT_REQUIRED, run_statuses=("WAITING",)),
)

_BY_STATUS = {status: row.exit for row in _TABLE for status in row.statuses}
_BY_ERROR = {name: row.exit for row in _TABLE for name in row.errors}
_BY_RUN_STATUS = {status: row.exit for row in _TABLE for status in row.run_statuses}

# A run that failed for lack of time did not fail for what it is: scripts tell the two apart.
_TIMED_OUT_CODES = frozenset({"deadline_exceeded"})


def exit_for_status(status: int) -> Exit:
    """The exit code for a problem that the server answered with this HTTP status."""
    return _BY_STATUS.get(status, Exit.UNEXPECTED)


def exit_for_error(error: BaseException) -> Exit:
    """The exit code for one of `trunkline.errors`; the closest class in the table decides."""
    for cls in type(error).__mro__:
        if cls.__name__ in _BY_ERROR:
            return _BY_ERROR[cls.__name__]
    return Exit.UNEXPECTED


def exit_for_run(status: str, error_code: str | None = None) -> Exit:
    """The exit code for a run that is watched no longer; one that still runs has used up the time to wait."""
    if error_code in _TIMED_OUT_CODES:
        return Exit.TIMED_OUT
    return _BY_RUN_STATUS.get(status, Exit.TIMED_OUT)
