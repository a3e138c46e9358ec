"""The list of error codes."""

from __future__ import annotations

from trunkline.api.resources.runs import error_codes


def test_a_code_has_the_command_that_its_fix_names() -> None:
    commands = {each["code"]: (each["fix"], each["fix_command"]) for each in error_codes()["items"]}
    fix, command = commands["secret_missing"]
    assert command == "trunkline secrets set SECRET"
    assert command in fix
