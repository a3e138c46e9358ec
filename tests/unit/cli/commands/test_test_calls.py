"""`agents try`: what is sent, and what is shown of what came back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.cli.exchanges import exchange
from tests.unit.cli.scripted_server import Piped, ScriptedServer, run

TRY = "POST /api/v1/agents/A/try"


def trial(outcome: str = "success", **fields: object) -> dict[str, object]:
    known: dict[str, object] = {
        "outcome": outcome,
        "output": None,
        "error": None,
        "question": None,
        "warnings": [],
    }
    spoken = {"protocol": "simple-a2a", "started_at": "2026-03-01T12:00:00Z", "duration_ms": 1_234.5}
    return {**known, **spoken, "exchanges": [exchange(step="try", attempt=1)], **fields}


def test_the_answer_of_an_agent_is_all_that_is_on_stdout(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.on(TRY, trial(output={"text": "hi"}, warnings=["It is odd."]))
    code, out, err = run(capsys, server, "agents", "try", "A", "--text", "hello", "--timeout", "1.5s")
    assert (code, json.loads(out)) == (0, {"text": "hi"})
    assert err == "warning: It is odd.\nTook 1,234 ms over simple-a2a\n"
    assert server.seen[0].json == {"text": "hello", "timeout_ms": 1_500}


def test_the_wire_comes_before_the_answer(server: ScriptedServer, capsys: pytest.CaptureFixture[str]) -> None:
    server.on(TRY, trial(output="hi"))
    code, out, _ = run(capsys, server, "agents", "try", "A", "--data", '{"n": [1]}', "--wire")
    assert code == 0
    assert server.seen[0].json == {"input": {"n": [1]}}
    lines = out.splitlines()
    assert lines[0].endswith("try attempt 1: send (1,234 ms)")
    assert "> POST http://host/agent" in lines
    assert lines[-2:] == ["", "hi"]


def test_a_text_can_be_read_from_a_file_or_from_stdin(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str], tmp_path: Path, piped: Piped
) -> None:
    server.on(TRY, trial(output="hi"))
    (tmp_path / "said").write_text("hello\n")
    assert run(capsys, server, "agents", "try", "A", "--text", f"@{tmp_path / 'said'}")[0] == 0
    piped("hello too\n")
    assert run(capsys, server, "agents", "try", "A", "--text", "-")[0] == 0
    assert [seen.json for seen in server.seen] == [{"text": "hello"}, {"text": "hello too"}]


def test_an_agent_that_fails_is_exit_10_with_a_fix_that_is_no_runs(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    error = {
        "code": "agent_http_error",
        "message": "HTTP 500\n\x1b[2J",
        "fix": "See the request and the response.",
    }
    server.on(TRY, trial("error", error=error))
    code, out, err = run(capsys, server, "agents", "try", "A", "--text", "hello")
    assert (code, out) == (10, "")
    assert err.splitlines() == [
        "A failed with agent_http_error: HTTP 500",
        r"\x1b[2J",
        "fix: See the request and the response.",
        "wire: trunkline agents try A … --wire",
        "Took 1,234 ms over simple-a2a",
    ]


def test_an_agent_that_asks_is_exit_13(server: ScriptedServer, capsys: pytest.CaptureFixture[str]) -> None:
    answer = trial("interrupted", question={"kind": "input", "text": "Which tone?", "data": None})
    server.on(TRY, answer)
    code, out, err = run(capsys, server, "agents", "try", "A", "--text", "hello")
    assert (code, out) == (13, "")
    assert err.startswith("A asks: Which tone?\n")
    code, out, err = run(capsys, server, "agents", "try", "A", "--text", "hello", "--json")
    assert (code, json.loads(out), err) == (13, answer, "")


@pytest.mark.parametrize(
    ("flags", "code", "words"),
    [
        ((), 2, "The message is missing"),
        (("--text", "a", "--data", "{}"), 2, "--text and --data cannot be combined"),
        (("--data", "no json"), 7, "is not valid JSON"),
        (("--text", "a", "--timeout", "61s"), 2, "timeout"),
    ],
)
def test_what_is_no_message_is_not_sent(
    server: ScriptedServer,
    capsys: pytest.CaptureFixture[str],
    flags: tuple[str, ...],
    code: int,
    words: str,
) -> None:
    found, out, err = run(capsys, server, "agents", "try", "A", *flags)
    assert (found, out, server.seen) == (code, "", [])
    assert words in err
