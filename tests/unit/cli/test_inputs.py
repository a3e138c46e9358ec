from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.certificates import made

from trunkline.cli.agent_secrets import auth_config, resolve_references
from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import CliError
from trunkline.cli.inputs import parse_pairs, parse_value, run_input


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("0.5", 0.5),
        ("true", True),
        ("null", None),
        ('"3"', "3"),
        ('{"a": [1]}', {"a": [1]}),
        ("Climate change", "Climate change"),
        ("", ""),
        ("NaN", "NaN"),
        ("-Infinity", "-Infinity"),
        ("{not json", "{not json"),
    ],
)
def test_a_value_is_json_when_it_is_json_and_text_otherwise(text: str, value: object) -> None:
    assert parse_value(text) == value


@given(st.text())
def test_every_text_is_some_value_that_json_can_hold(text: str) -> None:
    json.dumps(parse_value(text), allow_nan=False)


def test_a_pair_may_have_more_equals_signs_in_its_value() -> None:
    assert parse_pairs(["formula=a=b"]) == {"formula": "a=b"}


def test_a_pair_can_take_its_value_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("Line one\nLine two\n")
    assert parse_pairs([f"text=@{tmp_path / 'notes.txt'}"]) == {"text": "Line one\nLine two\n"}


@pytest.mark.parametrize("pair", ["topic", "=value", ""])
def test_what_is_no_pair_is_a_usage_error_that_shows_the_form(pair: str) -> None:
    with pytest.raises(CliError, match="key=value") as caught:
        parse_pairs([pair])
    assert caught.value.exit_code == Exit.USAGE
    assert "-i topic=" in (caught.value.fix or "")


def test_pairs_are_put_over_the_files_input(tmp_path: Path) -> None:
    file = tmp_path / "input.json"
    file.write_text('{"topic": "a", "depth": 1}')
    assert run_input(["depth=2"], str(file)) == {"topic": "a", "depth": 2}


def test_the_whole_input_may_be_anything_that_is_json(tmp_path: Path) -> None:
    file = tmp_path / "input.json"
    file.write_text("[1, 2]")
    assert run_input([], str(file)) == [1, 2]
    with pytest.raises(CliError, match="does not contain a JSON object"):
        run_input(["depth=2"], str(file))


def test_a_missing_file_is_named() -> None:
    with pytest.raises(CliError, match=r"no-such\.json"):
        run_input([], "no-such.json")


def test_a_secret_comes_from_the_environment_or_a_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AGENT_TOKEN", "t0ken")
    (tmp_path / "login").write_text("ann:pass:word\n")
    assert auth_config("bearer", env="AGENT_TOKEN", file=None) == {"token": "t0ken"}
    assert auth_config("basic", env=None, file=str(tmp_path / "login")) == {
        "username": "ann",
        "password": "pass:word",
    }
    assert auth_config("api_key", env="AGENT_TOKEN", file=None) == {
        "name": "X-API-Key",
        "value": "t0ken",
        "in": "header",
    }


def test_headers_are_one_per_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_HEADERS", "X-One: 1\nX-Two: a:b")
    assert auth_config("headers", env="AGENT_HEADERS", file=None) == {"X-One": "1", "X-Two": "a:b"}


def test_a_signer_is_one_json_object(tmp_path: Path) -> None:
    (tmp_path / "signer.json").write_text('{"key": "PEM", "issuer": "verification", "lifetime_seconds": 30}')
    assert auth_config("signed", env=None, file=str(tmp_path / "signer.json")) == {
        "key": "PEM",
        "issuer": "verification",
        "lifetime_seconds": 30,
    }
    (tmp_path / "signer.json").write_text("-----BEGIN PRIVATE KEY-----")
    with pytest.raises(CliError, match="The secret for signed is not a JSON object") as caught:
        auth_config("signed", env=None, file=str(tmp_path / "signer.json"))
    assert "PRIVATE KEY" not in str(caught.value)


def test_a_client_of_oauth2_is_one_json_object(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLIENT", '{"client_id": "me", "client_secret": "s"}')
    assert auth_config("oauth2", env="CLIENT", file=None) == {"client_id": "me", "client_secret": "s"}
    for text in ("s3cr3t", "[]", '"s3cr3t"'):
        monkeypatch.setenv("CLIENT", text)
        with pytest.raises(CliError, match="not a JSON object") as caught:
            auth_config("oauth2", env="CLIENT", file=None)
        assert "s3cr3t" not in str(caught.value)


def test_a_certificate_and_its_key_stand_in_one_file(tmp_path: Path) -> None:
    certificate, key = made("ours")
    chain = made("another")[0]
    (tmp_path / "both.pem").write_text(f"Bag attributes\n{key}{certificate}{chain}")
    assert auth_config("mtls", env=None, file=str(tmp_path / "both.pem")) == {
        "certificate": f"{certificate.strip()}\n{chain.strip()}",
        "key": key.strip(),
    }
    for text in (certificate, key, certificate + key + key, "nothing"):
        (tmp_path / "both.pem").write_text(text)
        with pytest.raises(CliError, match="mtls"):
            auth_config("mtls", env=None, file=str(tmp_path / "both.pem"))


def test_a_secret_that_is_not_there_is_a_usage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_VARIABLE", raising=False)
    for arguments in ({"env": "NO_SUCH_VARIABLE", "file": None}, {"env": None, "file": None}):
        with pytest.raises(CliError) as caught:
            auth_config("bearer", **arguments)
        assert caught.value.exit_code == Exit.USAGE


def test_a_file_can_name_a_secret_instead_of_holding_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_TOKEN", "t0ken")
    assert resolve_references({"token": {"env": "AGENT_TOKEN"}}) == {"token": "t0ken"}
    assert resolve_references({"token": "as it is"}) == {"token": "as it is"}
    assert resolve_references({"tls": {"authority": {"env": "AGENT_TOKEN"}}}) == {
        "tls": {"authority": "t0ken"}
    }
