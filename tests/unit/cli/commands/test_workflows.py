from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.cli.scripted_server import Piped

from trunkline.cli.app import run_command_line

GOOD = "name: good\nsteps:\n  a: {agent: A}\n  b: {agent: B, needs: [a]}\n"
BAD = "name: bad\nsteps:\n  a: {agent: A, neds: [b]}\n  b: {agent: B, needs: [zz]}\n"


def write(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def test_every_mistake_in_every_file_is_reported_with_its_position(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = write(tmp_path, "good.yaml", GOOD), write(tmp_path, "bad.yaml", BAD)
    assert run_command_line(["workflows", "validate", bad, good]) == 7
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{bad}:3:17: ")
    assert lines[1].startswith(f"{bad}:4:25: ")
    assert lines[2:] == [f"{good}: good is valid"]


def test_validation_as_json_is_one_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = write(tmp_path, "bad.yaml", BAD)
    assert run_command_line(["workflows", "validate", bad, "--json"]) == 7
    (report,) = json.loads(capsys.readouterr().out)["items"]
    assert [(error["line"], error["column"]) for error in report["errors"]] == [(3, 17), (4, 25)]


def test_a_file_that_is_not_yaml_is_reported_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.yaml").write_bytes(b"\xff\xfe\x00")
    assert run_command_line(["workflows", "validate", str(tmp_path / "x.yaml")]) == 7
    assert capsys.readouterr().out.startswith(str(tmp_path / "x.yaml"))


def test_a_hyphen_is_stdin_wherever_a_file_may_stand(
    piped: Piped, capsys: pytest.CaptureFixture[str]
) -> None:
    piped(BAD)
    assert run_command_line(["workflows", "validate", "-"]) == 7
    assert capsys.readouterr().out.startswith("/dev/stdin:3:17: ")
    piped(GOOD)
    assert run_command_line(["workflows", "graph", "-"]) == 0
    assert capsys.readouterr().out.startswith("─ a  A\n")
    piped("[]")
    # Read, and then there is nobody to send it to.
    assert run_command_line(["run", "x", "--input-file", "-", "--url", "http://127.0.0.1:9"]) == 6


def test_a_graph_of_a_file_needs_no_server(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = write(tmp_path, "good.yaml", GOOD)
    assert run_command_line(["workflows", "graph", good]) == 0
    assert capsys.readouterr().out == "─ a  A\n  │\n─ b  B  after a\n"
    assert run_command_line(["workflows", "graph", good, "--format", "mermaid"]) == 0
    assert "    a --> b" in capsys.readouterr().out


def test_the_schema_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["workflows", "schema"]) == 0
    assert "$schema" in json.loads(capsys.readouterr().out)


def test_the_settings_show_where_they_come_from_and_no_secret(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRUNKLINE_SECRET_KEY", "c2VjcmV0")
    (tmp_path / "trunkline.toml").write_text('retention = "12h"\nport = 1\n')
    monkeypatch.setenv("TRUNKLINE_PORT", "8123")
    assert run_command_line(["config", "show", "--json"]) == 0
    out = capsys.readouterr().out
    shown = json.loads(out)
    assert shown["port"] == {"value": "8123", "source": "environment"}
    assert shown["retention"] == {"value": "12h", "source": "trunkline.toml"}
    assert shown["host"]["source"] == "default"
    assert "c2VjcmV0" not in out


def test_a_setting_that_makes_no_sense_is_named_in_plain_words(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRUNKLINE_RETENTION", "forever")
    assert run_command_line(["config", "show"]) == 7
    assert capsys.readouterr().err.startswith("error: retention: 'forever' is not a duration; use a number")


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("trunkline.example", "it must have the form http://host:port/path"),
        ("ftp://trunkline.example", "ftp"),
        ("https://ann:secret@trunkline.example", "it contains a user name or password"),
        ("https://trunkline.example/?a=b", "it has a query"),
        ("https://trunkline.example/#here", "it has a fragment"),
    ],
)
def test_a_public_url_that_no_agent_could_reach_is_refused(
    url: str,
    why: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRUNKLINE_PUBLIC_URL", url)
    assert run_command_line(["config", "show"]) == 7
    said = capsys.readouterr().err
    assert said.startswith("error: public_url: ")
    assert why in said
    assert "secret" not in said


def test_a_public_url_needs_no_slash_at_its_end(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trunkline.toml").write_text('public_url = "https://trunkline.example/base/"\n')
    assert run_command_line(["config", "show", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["public_url"] == {"value": "https://trunkline.example/base", "source": "trunkline.toml"}


BRANCHES = """
name: branches
steps:
  fast: {agent: A}
  slow: {workflow: study, version: 2}
  first: {workflow: "sum up", needs: [fast, slow], join: any}
  all: {agent: B, for_each: "${ steps.first.output }", when: item.ok}
"""


def test_a_graph_shows_joins_loops_and_workflows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path, "branches.yaml", BRANCHES)
    assert run_command_line(["workflows", "graph", file]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "┌ fast   A",
        "└ slow   workflow study v2",
        "  │",
        "─ first  workflow sum up    after any 1 of 2: fast, slow",
        "  │",
        "─ all    B                  after first  for each ${ steps.first.output }  when item.ok",
    ]
    assert run_command_line(["workflows", "graph", file, "--format", "mermaid"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "flowchart TD",
        '    fast["fast<br/>A"]',
        '    slow[["slow<br/>workflow study v2"]]',
        '    first[["first<br/>workflow sum up<br/>any 1 of 2"]]',
        '    all["all<br/>B<br/>for each ${ steps.first.output }<br/>when item.ok"]',
        "    fast --> first",
        "    slow --> first",
        "    first --> all",
    ]
    assert run_command_line(["workflows", "graph", file, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[1]["workflow"] == "study v2"
