"""Settings that are one of a few words: upper and lower case mean the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from trunkline.cli.app import build_app, run_command_line
from trunkline.cli.setting_flags import SettingFlags
from trunkline.errors import ConfigurationError
from trunkline.settings import Settings, load_settings

IN_OTHER_CASE = {
    # Digits alone.
    "a2a_http_statuses": ("1.0.0", "1.0.0"),
    "log_level": ("WARNING", "warning"),
    "log_format": ("Json", "json"),
    "kafka_security_protocol": ("SASL_SSL", "sasl_ssl"),
    "kafka_sasl_mechanism": ("scram-sha-256", "SCRAM-SHA-256"),
}


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", IN_OTHER_CASE)
def test_a_variable_ignores_case(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    written, meant = IN_OTHER_CASE[name]
    monkeypatch.setenv(f"TRUNKLINE_{name.upper()}", written)
    assert getattr(load_settings({}), name) == meant


@pytest.mark.parametrize("name", IN_OTHER_CASE)
def test_a_key_of_the_file_ignores_case(folder: Path, name: str) -> None:
    written, meant = IN_OTHER_CASE[name]
    (folder / "trunkline.toml").write_text(f'{name} = "{written}"\n')
    assert getattr(load_settings({}), name) == meant


@pytest.mark.parametrize("name", IN_OTHER_CASE)
def test_a_flag_ignores_case(name: str) -> None:
    written, meant = IN_OTHER_CASE[name]
    app = build_app()
    arguments = ["up", f"--{name.replace('_', '-')}", written]
    _, bound, _ = app.parse_args(arguments, exit_on_error=False, print_error=False)
    flags = bound.arguments["flags"]
    assert isinstance(flags, SettingFlags)
    assert getattr(flags, name) == meant
    assert getattr(flags.settings(), name) == meant


def test_every_setting_with_choices_is_covered() -> None:
    schema = Settings.model_json_schema()["properties"]
    with_choices = {name for name, described in schema.items() if "enum" in str(described)}
    assert with_choices == IN_OTHER_CASE.keys()


def test_another_word_is_refused_with_the_choices() -> None:
    with pytest.raises(
        ConfigurationError, match="log_level: must be 'debug', 'info', 'warning' or 'error', but it is 'loud'"
    ):
        load_settings({"log_level": "loud"})


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        ({"port": 99_999}, "port: must be less than or equal to 65535, but it is '99999'"),
        ({"port": "abc"}, "port: must be a valid integer, but it is 'abc'"),
    ],
)
def test_an_error_contains_the_value(flags: dict[str, object], error: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_settings(flags)
    assert caught.value.message == error


def test_an_error_does_not_contain_a_secret() -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_settings({"kafka_sasl_password": 12_345})
    assert caught.value.message == "kafka_sasl_password: must be a valid string"


def test_another_word_as_a_flag_is_refused_with_the_choices(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["up", "--log-level", "LOUD"]) == 2
    error = capsys.readouterr().err
    choices = '"debug", "info", "warning", "error"'
    assert error.splitlines()[0] == f'error: Invalid value for --log-level: "LOUD" is not one of: {choices}.'
