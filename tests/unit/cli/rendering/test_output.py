from __future__ import annotations

from datetime import timedelta
from typing import cast

import pytest
from tests.unit.cli.exchanges import exchange

from trunkline.api.resources.runs import RunResource
from trunkline.cli.rendering.exchanges import exchange_lines
from trunkline.cli.rendering.output import Cell, aligned, note, print_fields, print_table, print_value
from trunkline.cli.rendering.run import error_lines, question_lines, show_run
from trunkline.cli.rendering.times import duration_between, duration_text
from trunkline.cli.rendering.workflow_graph import Node, as_mermaid, as_text


def test_a_piped_table_has_aligned_columns_and_one_line_per_row() -> None:
    text = aligned(("STEP", "WHY"), [["research", "two\nlines"], ["a", ""]])
    assert text == "STEP      WHY\nresearch  two lines\na         -"


def test_a_piped_table_has_no_colours(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("RUN", "STATUS"), [["r1", Cell("FAILED", "red")]])
    assert capsys.readouterr().out == "RUN  STATUS\nr1   FAILED\n"


def test_fields_without_a_value_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    print_fields([("run", "r1"), ("retry of", None), ("status", "FAILED")])
    assert capsys.readouterr().out == "run     r1\nstatus  FAILED\n"


STEERING = "a\x1b]0;title\x07\x1b[2Jb\x9b31mc\r\u202ed\ud800"
SHOWN = r"a\x1b]0;title\x07\x1b[2Jb\x9b31mc\r\u202ed\ud800"


def test_what_an_agent_says_does_not_steer_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    print_value(STEERING)
    print_fields([("error", STEERING)])
    print_table(("WHY",), [[STEERING]])
    note(STEERING)
    told = capsys.readouterr()
    assert [told.out.count(SHOWN), told.err] == [3, f"{SHOWN}\n"]


def test_words_of_every_language_stay_as_they_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    text = "deux\xa0mots\n\t\U0001f469\u200d\U0001f680 \u05e9\u200f"
    print_value(text)
    assert capsys.readouterr().out == f"{text}\n"


def test_a_pipe_gets_what_an_agent_says_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    print_value("a\x1b[2J")
    assert capsys.readouterr().out == "a\x1b[2J\n"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 ms"),
        (0.0421, "42 ms"),
        (0.4, "0.4 s"),
        (59.9, "59.9 s"),
        (61, "1 m 01 s"),
        (7260, "2 h 01 m"),
    ],
)
def test_durations_are_short(seconds: float, text: str) -> None:
    assert duration_text(timedelta(seconds=seconds)) == text


def test_what_is_not_over_has_no_duration() -> None:
    assert duration_between("2026-03-01T12:00:00.5Z", None) == ""
    assert duration_between("2026-03-01T12:00:00.5Z", "2026-03-01T12:00:02.5Z") == "2.0 s"


def a_step(name: str, **fields: object) -> dict[str, object]:
    return {"name": name, "status": "PENDING", "error": None, "waiting_for": None, **fields}


def a_run(*steps: dict[str, object], error: object = None) -> RunResource:
    return cast("RunResource", {"id": "r1", "status": "FAILED", "steps": list(steps), "error": error})


def test_an_error_is_shown_once_with_a_fix_that_can_be_typed() -> None:
    error = {
        "code": "agent_http_error",
        "message": "HTTP 500",
        "fix": "Look: trunkline runs wire r1 write.",
        "fix_command": "trunkline runs wire r1 write",
    }
    assert error_lines(a_run(a_step("write", error=error), error=error)) == [
        "",
        "write failed with agent_http_error: HTTP 500",
        "fix: Look: trunkline runs wire r1 write.",
    ]


def test_a_question_comes_with_the_command_that_answers_it() -> None:
    waiting = a_step(
        "write", status="WAITING", waiting_for={"kind": "input", "text": "Which tone?", "until": None}
    )
    unknown = a_step("pay", status="OUTCOME_UNKNOWN")
    lines = question_lines(a_run(waiting, unknown))
    assert "write asks: Which tone?" in lines
    assert "reply: trunkline runs reply r1 write --text 'YOUR ANSWER'" in lines
    assert "resolve: trunkline runs resolve r1 pay --outcome succeeded|failed|call_again" in lines


def test_a_step_that_only_waits_for_its_next_attempt_asks_nothing() -> None:
    waiting = a_step("write", waiting_for={"kind": "retry", "text": "HTTP 503", "until": None})
    assert question_lines(a_run(waiting)) == []


def test_an_exchange_shows_both_sides_with_their_json_laid_out() -> None:
    refused = exchange(
        duration_ms=12.4,
        response={"status": 503, "headers": {}, "body": "busy"},
        error={"code": "agent_http_error", "message": "HTTP 503"},
        notes=["cut"],
    )
    lines = exchange_lines(refused)
    assert lines[0].endswith("write attempt 2: send (12 ms)")
    assert lines[1:] == [
        "> POST http://host/agent",
        "> A: b",
        ">",
        "> {",
        '>   "q": 1',
        "> }",
        "< 503",
        "<",
        "< busy",
        "! agent_http_error: HTTP 503",
        "# cut",
    ]


NODES = (
    Node("research", "Researcher"),
    Node("figures", "Statistician"),
    Node("check", "Checker", ("research",), 'a < "b"'),
    Node("write", "Writer", ("check", "figures")),
    Node("sorry", "Writer", ("write",), None, ("write",)),
)


def test_steps_that_can_run_side_by_side_are_bracketed() -> None:
    assert as_text(NODES).splitlines() == [
        "┌ research  Researcher",
        "└ figures   Statistician",
        "  │",
        '─ check     Checker       after research  when a < "b"',
        "  │",
        "─ write     Writer        after check, figures",
        "  │",
        "─ sorry     Writer        if write failed",
    ]


def test_mermaid_gets_labels_that_it_can_read() -> None:
    text = as_mermaid(NODES)
    assert '    check["check<br/>Checker<br/>when a &lt; #quot;b#quot;"]' in text
    assert "    research --> check" in text
    assert "    write -. on error .-> sorry" in text


def test_a_long_chain_is_drawn_without_recursion() -> None:
    chain = [Node(f"s{n}", "A", (f"s{n - 1}",) if n else ()) for n in range(5_000)]
    assert len(as_text(chain).splitlines()) == 9_999
    assert as_text(list(reversed(chain))).splitlines()[0] == f"─ s0{' ' * 3}  A"


def test_a_run_is_shown_with_its_parent_and_its_children(capsys: pytest.CaptureFixture[str]) -> None:
    rest = dict.fromkeys(("protocol", "started_at", "finished_at"))
    below = a_step("below", kind="workflow", agent="", attempts=1, warnings=[], workflow="study", **rest)
    run = a_run(
        {**below, "child": {"run_id": "r2", "status": "WAITING"}},
        {**below, "name": "gone", "child": {"run_id": "r3"}},
    )
    times = dict.fromkeys(("created_at", "started_at", "finished_at", "output"))
    more = {"workflow": {"name": "w", "version": 1}, "correlation_id": "c", **times}
    show_run(cast("RunResource", {**run, **more, "parent": {"run_id": "r0", "step": "each[3]"}}))
    text = capsys.readouterr().out
    assert "parent          r0, step each[3]\n" in text
    rows = [" ".join(line.split()) for line in text.splitlines()]
    assert "below PENDING workflow study 1 - - run r2 is WAITING" in rows
    assert "gone PENDING workflow study 1 - - run r3" in rows
