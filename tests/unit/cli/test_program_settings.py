"""The programs that agents may be, as the settings name them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trunkline.agents.stdio_programs import StdioProgram
from trunkline.cli.app import run_command_line
from trunkline.errors import ConfigurationError
from trunkline.settings import load_settings

ZONE = ("python", "-m", "zone")


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_command_is_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUNKLINE_STDIO_COMMANDS", '{"worker": ["python", "-m", "zone"]}')
    assert load_settings({}).stdio_commands == {"worker": StdioProgram(ZONE)}


def test_commands_are_not_read_from_files_that_merely_are_in_the_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = '{"worker": ["python", "-m", "zone"]}'
    (folder / ".env").write_text(f"TRUNKLINE_STDIO_COMMANDS={commands}\n")
    with pytest.raises(ConfigurationError, match=r"not read from \.env of the current folder") as in_env:
        load_settings({})
    (folder / ".env").write_text("TRUNKLINE_CONFIG=trunkline.toml\n")
    (folder / "trunkline.toml").write_text('stdio_commands = {worker = ["python", "-m", "zone"]}\n')
    with pytest.raises(ConfigurationError, match=r"not read from trunkline\.toml") as in_toml:
        load_settings({})
    assert "TRUNKLINE_STDIO_COMMANDS" in in_env.value.fix
    assert "TRUNKLINE_CONFIG=trunkline.toml" in in_toml.value.fix
    monkeypatch.setenv("TRUNKLINE_CONFIG", "trunkline.toml")
    assert load_settings({}).stdio_commands == {"worker": StdioProgram(ZONE)}


def test_a_file_that_is_named_but_missing_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUNKLINE_CONFIG", "missing.toml")
    with pytest.raises(
        ConfigurationError, match=r"TRUNKLINE_CONFIG names missing\.toml, which does not exist"
    ):
        load_settings({})


def test_a_command_may_have_variables_of_its_own(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUNKLINE_CONFIG", str(folder / "trunkline.toml"))
    (folder / "trunkline.toml").write_text(
        "[stdio_commands]\n"
        'plain = ["python", "-m", "zone"]\n'
        'worker = { command = ["python", "-m", "zone"], environment = ["WORKER_KEY"] }\n'
    )
    assert load_settings({}).stdio_commands == {
        "plain": StdioProgram(ZONE),
        "worker": StdioProgram(ZONE, ("WORKER_KEY",)),
    }


def test_a_flag_has_the_same_form() -> None:
    flags = {"stdio_commands": '{"worker": ["python", "-m", "zone"]}'}
    assert load_settings(flags).stdio_commands == {"worker": StdioProgram(ZONE)}


def test_the_commands_are_shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("TRUNKLINE_STDIO_COMMANDS", '{"worker": ["python", "-m", "zone"]}')
    assert run_command_line(["config", "show", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)["stdio_commands"]
    assert shown == {
        "value": '{"worker":{"command":["python","-m","zone"],"environment":[]}}',
        "source": "environment",
    }


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("python -m zone", 'use an object of commands by name, such as {"worker": ["python", "-m", "zone"]}'),
        ("[]", "stdio_commands: must be a valid dictionary"),
        ('{"worker": "python -m zone"}', "stdio_commands.worker: a command must be a list of arguments"),
        ('{"worker": []}', "the command is empty"),
        ('{"worker": [""]}', "the command is empty"),
        ('{"worker": ["python", 1]}', "stdio_commands.worker.command.1: must be a valid string"),
        ('{"../worker": ["python"]}', "it must have the form stdio:NAME"),
        (
            '{"worker": {"command": ["python"], "env": ["A"]}}',
            "worker: unknown key env",
        ),
    ],
)
def test_what_is_no_command_is_refused_with_the_reason(
    text: str, why: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRUNKLINE_STDIO_COMMANDS", text)
    assert run_command_line(["config", "show"]) == 7
    said = capsys.readouterr().err
    assert said.startswith("error: stdio_commands")
    assert why in said


def test_our_own_settings_are_for_no_program(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = '{"worker": {"command": ["python"], "environment": ["TRUNKLINE_SECRET_KEY"]}}'
    monkeypatch.setenv("TRUNKLINE_STDIO_COMMANDS", text)
    assert run_command_line(["config", "show"]) == 7
    said = capsys.readouterr().err
    assert "TRUNKLINE_SECRET_KEY is reserved for Trunkline's own settings" in said
