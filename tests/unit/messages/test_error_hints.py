"""What to do about a failure: a text for people, and the command in it as a field."""

from __future__ import annotations

import msgspec
import pytest

from trunkline.messages import ERROR_CODES, StepError, complete_fix, fix_for


def test_the_names_of_what_has_failed_stand_in_the_command() -> None:
    error = StepError(code="agent_http_error", message="HTTP 500", fix=fix_for("agent_http_error"))
    complete_fix(error, run="r1", step="each[3]")
    assert error.fix_command == "trunkline runs wire r1 'each[3]'"
    assert error.fix == "See the request and the response: trunkline runs wire r1 'each[3]'."


def test_an_error_without_a_fix_gets_that_of_its_code() -> None:
    error = StepError(code="agent_timeout", message="No answer")
    complete_fix(error, run="r1", step="s")
    assert (error.fix, error.fix_command) == (fix_for("agent_timeout"), None)


def test_a_fix_that_the_place_of_the_failure_knows_stays() -> None:
    error = StepError(code="agent_http_error", message="HTTP 401", fix="Correct the token.")
    complete_fix(error, run="r1", step="s")
    assert (error.fix, error.fix_command) == ("Correct the token.", None)


def test_where_a_name_is_missing_there_is_no_command() -> None:
    error = StepError(code="agent_http_error", message="HTTP 500")
    complete_fix(error, agent="A")
    assert (error.fix, error.fix_command) == ("See the request and the response.", None)


@pytest.mark.parametrize("code", ERROR_CODES)
def test_a_completed_fix_has_no_placeholder(code: str) -> None:
    error = StepError(code=code, message="It failed.")
    complete_fix(error, run="r1", step="s", agent="A", secret="token")
    assert error.fix.endswith(".")
    assert not {"RUN", "STEP", "AGENT", "SECRET"} & set(error.fix.rstrip(".").split())
    assert error.fix_command is None or error.fix == f"{ERROR_CODES[code].advice}: {error.fix_command}."


def test_an_error_of_a_version_before_has_neither_field() -> None:
    old = msgspec.json.decode(b'{"code": "agent_timeout", "message": "m", "fix": "f"}', type=StepError)
    assert (old.fix_command, old.cause_item) == (None, None)
    assert msgspec.json.decode(msgspec.json.encode(old)) == {
        "code": "agent_timeout",
        "message": "m",
        "fix": "f",
    }
