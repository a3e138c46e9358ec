from __future__ import annotations

import pytest

from trunkline.cli.exit_codes import Exit, exit_for_error, exit_for_run, exit_for_status
from trunkline.errors import (
    AlreadyExists,
    ConfigurationError,
    DataInUse,
    Invalid,
    NotAllowed,
    NotFound,
    StaleVersion,
    TrunklineError,
    Unavailable,
)


def test_the_numbers_are_those_that_scripts_rely_on() -> None:
    assert {code.name: int(code) for code in Exit} == {
        "OK": 0,
        "UNEXPECTED": 1,
        "USAGE": 2,
        "NOT_FOUND": 3,
        "CONFLICT": 4,
        "NOT_ALLOWED": 5,
        "UNREACHABLE": 6,
        "INVALID": 7,
        "INCONCLUSIVE": 8,
        "RUN_FAILED": 10,
        "RUN_CANCELLED": 11,
        "TIMED_OUT": 12,
        "INPUT_REQUIRED": 13,
        "INTERRUPTED": 130,
    }


@pytest.mark.parametrize(
    ("status", "code"),
    [(400, 7), (401, 5), (403, 5), (404, 3), (409, 4), (412, 4), (413, 7), (422, 7), (500, 1), (503, 6)],
)
def test_a_refusal_ends_with_the_code_of_its_status(status: int, code: int) -> None:
    assert exit_for_status(status) == code


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (NotFound(), 3),
        (AlreadyExists(), 4),
        (StaleVersion(), 4),
        (DataInUse(), 4),
        (NotAllowed(), 5),
        (Unavailable(), 6),
        (Invalid(), 7),
        (ConfigurationError(), 7),
        (TrunklineError(), 1),
    ],
)
def test_an_error_ends_with_the_code_of_its_closest_class(error: TrunklineError, code: int) -> None:
    assert exit_for_error(error) == code


@pytest.mark.parametrize(
    ("status", "error_code", "code"),
    [
        ("COMPLETED", None, 0),
        ("FAILED", "agent_http_error", 10),
        ("FAILED", "deadline_exceeded", 12),
        ("CANCELLED", None, 11),
        ("WAITING", None, 13),
        ("RUNNING", None, 12),
        ("PAUSED", None, 12),
    ],
)
def test_a_watched_run_ends_with_the_code_of_its_state(
    status: str, error_code: str | None, code: int
) -> None:
    assert exit_for_run(status, error_code) == code
