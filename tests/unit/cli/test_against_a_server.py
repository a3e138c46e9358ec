"""The client and the commands against a server whose answers each test writes down."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import pytest
from tests.har_schema import check_har
from tests.unit.cli.exchanges import exchange
from tests.unit.cli.scripted_server import ScriptedServer, page, run

from trunkline.cli.app import run_command_line
from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import ApiError, CliError, ServerUnreachable
from trunkline.cli.rest import client as client_module
from trunkline.cli.rest.client import Client


def a_run(status: str = "RUNNING", **fields: object) -> dict[str, object]:
    times = {"created_at": "2026-03-01T12:00:00Z", "started_at": "2026-03-01T12:00:00Z", "finished_at": None}
    return {
        "id": "r1",
        "workflow": {"name": "report", "version": 1},
        "status": status,
        "input": {},
        "output": None,
        "error": None,
        "correlation_id": "c1",
        "steps": [],
        **times,
        **fields,
    }


def stream(*events: tuple[int, str, object]) -> bytes:
    text = ""
    for seq, kind, data in events:
        event = {"seq": seq, "type": kind, "at": "2026-03-01T12:00:00Z", "data": data}
        text += f"id: {seq}\nevent: {kind}\ndata: {json.dumps(event)}\n\n"
    return b": hello\n\n" + text.encode()


# --- the client


def test_a_list_is_read_over_all_its_pages(server: ScriptedServer) -> None:
    server.on("GET /api/v1/agents?limit=1000", page({"name": "a"}, next_cursor="n"))
    server.on("GET /api/v1/agents?limit=1000&cursor=n", page({"name": "b"}))
    found = Client(server.url).agents()
    assert [agent["name"] for agent in found.items] == ["a", "b"]
    assert found.next_cursor is None


def test_a_limited_list_ends_where_it_should(server: ScriptedServer) -> None:
    server.on("GET /api/v1/runs?limit=1", page(a_run(), next_cursor="n"))
    found = Client(server.url).runs(limit=1)
    assert len(found.items) == 1
    assert found.next_cursor == "n"


def test_a_refusal_keeps_the_servers_words(server: ScriptedServer) -> None:
    problem = {
        "title": "Invalid",
        "detail": "url: cannot be called",
        "fix": "Correct it.",
        "errors": [{"path": "url", "message": "cannot be called", "line": 3, "column": 5}],
    }
    server.on("POST /api/v1/agents", problem, status=422)
    with pytest.raises(ApiError) as caught:
        Client(server.url).create_agent({"name": "a"})
    assert caught.value.exit_code == Exit.INVALID
    assert caught.value.lines() == ["error: url: cannot be called", "fix: Correct it."]
    caught.value.source = "agents.yaml"
    assert "  agents.yaml:3:5: cannot be called (url)" in caught.value.lines()


def test_a_page_of_html_is_no_answer(server: ScriptedServer) -> None:
    server.on("GET /api/v1/runs/r1", b"<html>", Content_Type="text/html")
    server.on("GET /api/v1/runs/r2", b"<html>", status=502)
    with pytest.raises(CliError, match="text/html"):
        Client(server.url).run("r1")
    with pytest.raises(ApiError, match="HTTP 502") as caught:
        Client(server.url).run("r2")
    assert "--url" in (caught.value.fix or "")


def test_names_are_one_part_of_a_path(server: ScriptedServer) -> None:
    server.on("GET /api/v1/agents/a%2Fb%20c%3F", {"name": "a/b c?"}, ETag='"1"')
    agent, etag = Client(server.url).agent("a/b c?")
    assert (agent["name"], etag) == ("a/b c?", '"1"')


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "ftp://a", "http://", "http://a:b", "http://a:0"])
def test_what_is_no_address_is_a_usage_error(url: str) -> None:
    with pytest.raises(CliError) as caught:
        Client(url)
    assert caught.value.exit_code == Exit.USAGE


def test_a_cut_stream_goes_on_after_the_last_event(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "RECONNECT_PAUSE_SECONDS", 0)
    server.on("GET /api/v1/runs/r1/events", stream((1, "RunStarted", {}), (2, "StepStarted", {"step": "a"})))
    server.on("GET /api/v1/runs/r1/events", stream((3, "RunCompleted", {})) + b"id: 4\ndata: {")
    events = list(Client(server.url).follow("r1"))
    assert [event["seq"] for event in events] == [1, 2, 3]
    first, second = server.asked("GET /api/v1/runs/r1/events")
    assert "Last-Event-ID" not in first.headers
    assert second.headers["Last-Event-ID"] == "2"
    assert second.headers["Accept"] == "text/event-stream"


def test_a_server_that_stays_away_ends_the_following(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "RECONNECT_PAUSE_SECONDS", 0)
    monkeypatch.setattr(client_module, "RECONNECT_SECONDS", 0)
    with pytest.raises(ServerUnreachable):
        list(Client("http://127.0.0.1:9").follow("r1"))


def test_a_server_that_breaks_off_is_not_said_to_be_missing() -> None:
    def break_off() -> None:
        taken, _ = listener.accept()
        taken.close()

    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor() as pool:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        done = pool.submit(break_off)
        with pytest.raises(ServerUnreachable, match=f"^The connection to {url} was lost"):
            Client(url).run("r1")
        done.result()
    with pytest.raises(ServerUnreachable, match="Cannot connect to Trunkline at"):
        Client(url).run("r1")


# --- the commands


def test_runs_are_listed_as_aligned_text(server: ScriptedServer, capsys: pytest.CaptureFixture[str]) -> None:
    server.on(
        "GET /api/v1/runs?limit=50",
        page(a_run("COMPLETED", finished_at="2026-03-01T12:00:02Z", started_by="ann")),
    )
    code, out, err = run(capsys, server, "runs", "list")
    assert (code, err) == (0, "")
    header, row = out.splitlines()
    assert header.split() == ["RUN", "WORKFLOW", "STATUS", "CREATED", "TIME", "STARTED", "BY"]
    assert row.startswith("r1   report v1  COMPLETED")
    assert row.endswith("2.0 s  ann")


def test_a_list_that_goes_on_says_how_to_ask_for_the_rest(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    path = "GET /api/v1/runs?status=FAILED&workflow=a+report&limit=1"
    server.on(path, page(a_run("FAILED"), next_cursor="n"))
    asked = ("runs", "list", "--status", "FAILED", "--workflow", "a report")
    _, _, err = run(capsys, server, *asked, "--limit", "1")
    assert err == "Next page: trunkline runs list --status FAILED --workflow 'a report' --cursor n\n"


def test_a_list_may_be_asked_for_by_everything_that_the_server_knows(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    path = "status=FAILED&status=PAUSED&agent=A&q=re&since=2026-03-01T12%3A00%3A00Z&parent=r0&children=false&limit=1"
    server.on(f"GET /api/v1/runs?{path}", page(a_run("FAILED"), next_cursor="n"))
    asked = (
        "--status FAILED --status PAUSED --agent A --search re --since 2026-03-01T12:00:00Z --parent r0 "
        "--no-children"
    )
    code, _, err = run(capsys, server, "runs", "list", *asked.split(), "--limit", "1")
    assert (code, err) == (0, f"Next page: trunkline runs list {asked} --cursor n\n")


def test_the_wire_of_a_step_that_the_run_does_not_have_is_exit_3(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.on("GET /api/v1/runs/r1/wire?step=wriet&limit=1000", page())
    server.on("GET /api/v1/runs/r1", a_run(steps=[{"name": "research"}, {"name": "write"}]))
    code, out, err = run(capsys, server, "runs", "wire", "r1", "wriet")
    assert (code, out) == (3, "")
    assert err == "error: Run r1 has no step wriet.\nfix: Choose one of: research, write\n"


def test_the_wire_of_a_step_that_has_not_begun_is_empty(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.on("GET /api/v1/runs/r1/wire?step=write&limit=1000", page())
    server.on("GET /api/v1/runs/r1", a_run(steps=[{"name": "write"}]))
    assert run(capsys, server, "runs", "wire", "r1", "write") == (
        0, "", "No requests yet.\n",
    )  # fmt: skip


def test_the_wire_is_printed_in_one_form_at_a_time(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, server, "runs", "wire", "r1", "--har", "--curl")
    assert (code, out) == (2, "")
    assert "--curl, --har and --json cannot be combined" in err


def test_the_wire_can_be_printed_as_an_archive(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.on(
        "GET /api/v1/runs/r1/wire?limit=1000",
        page(exchange(response=None, error="The agent did not answer.")),
    )
    code, out, _ = run(capsys, server, "runs", "wire", "r1", "--har")
    assert code == 0
    check_har(json.loads(out))
    assert "The agent did not answer." in out


def test_json_has_the_form_of_the_api(server: ScriptedServer, capsys: pytest.CaptureFixture[str]) -> None:
    server.on("GET /api/v1/runs?status=FAILED&limit=50", page(a_run("FAILED")))
    code, out, _ = run(capsys, server, "runs", "list", "--status", "FAILED", "--json")
    assert code == 0
    assert json.loads(out) == page(a_run("FAILED"))


def test_an_unknown_run_is_exit_3_with_nothing_on_stdout(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, server, "runs", "show", "nope")
    assert (code, out) == (3, "")
    assert err == "error: No /api/v1/runs/nope\nfix: List them.\n"


def test_with_json_the_problem_is_json_on_stderr(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, server, "runs", "show", "nope", "--json")
    assert (code, out) == (3, "")
    problem = json.loads(err)
    assert (problem["detail"], problem["exit_code"]) == ("No /api/v1/runs/nope", 3)


def test_a_server_that_is_away_is_exit_6(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["runs", "list", "--url", "http://127.0.0.1:9"]) == 6
    assert "fix: Start it with: trunkline up" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["runs", "lst"], ["runs", "show"], ["nope"], ["runs", "list", "--nope"]]
)
def test_a_wrong_command_is_exit_2_and_names_the_help(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(arguments) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: ")
    assert "--help" in err


AGENTS_FILE = """
agents:
  - name: "LegacyAgent"
    url: "http://legacy:8080"
    protocol: "simple-a2a"

  - name: "ModernAgent"
    url: "http://modern:8001"
    protocol: "jsonrpc-2.0"
    protocol_config:
      method: "message/send"
      version: "2.0"

  - name: "SameAgent"
    url: "http://same:8001"
"""


def test_applying_agents_creates_updates_and_leaves_alone(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "agents.yaml"
    file.write_text(AGENTS_FILE)
    modern = {
        "name": "ModernAgent",
        "url": "http://modern:8001",
        "protocol": "jsonrpc-2.0",
        "protocol_config": {"method": "old", "version": "2.0", "input_mode": "json"},
    }
    server.on("POST /api/v1/agents", {"name": "LegacyAgent"}, status=201)
    server.on("GET /api/v1/agents/ModernAgent", modern, ETag='"1"')
    server.on("PATCH /api/v1/agents/ModernAgent", modern, ETag='"2"')
    server.on("GET /api/v1/agents/SameAgent", {"name": "SameAgent", "url": "http://same:8001"}, ETag='"1"')
    code, out, err = run(capsys, server, "agents", "apply", str(file))
    assert (code, err) == (0, "")
    assert [line.split() for line in out.splitlines()[1:]] == [
        ["LegacyAgent", "created"],
        ["ModernAgent", "updated"],
        ["SameAgent", "unchanged"],
    ]
    (created,) = server.asked("POST /api/v1/agents")
    assert created.json == {"name": "LegacyAgent", "url": "http://legacy:8080", "protocol": "simple-a2a"}
    (patched,) = server.asked("PATCH /api/v1/agents/ModernAgent")
    assert patched.headers["If-Match"] == '"1"'
    assert patched.json == {"protocol_config": {"method": "message/send", "input_mode": None}}


@pytest.mark.parametrize("text", ["- a", "agents: 3", "agents: [{url: x}]", "agents: [", "agents: [x]", ""])
def test_a_file_without_agents_is_exit_7(
    text: str, server: ScriptedServer, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "agents.yaml"
    file.write_text(text)
    code, _, err = run(capsys, server, "agents", "apply", str(file))
    assert code == 7
    assert str(file) in err


def test_an_agent_is_added_without_its_secret_on_the_command_line(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_TOKEN", "t0ken")
    answer = {"name": "a", "url": "http://a", "dialect": None, "auth_type": "bearer"}
    server.on("POST /api/v1/agents", answer, status=201)
    code, out, _ = run(
        capsys, server, "agents", "create", "a", "http://a", "--auth-type", "bearer", "--auth-env", "AGENT_TOKEN",
        "--config", "input_mode=json", "--timeout", "500ms",
    )  # fmt: skip
    assert code == 0
    assert "t0ken" not in out
    assert server.seen[0].json == {
        "name": "a",
        "url": "http://a",
        "auth_type": "bearer",
        "auth_config": {"token": "t0ken"},
        "protocol_config": {"input_mode": "json"},
        "timeout_ms": 500,
    }


def test_what_an_agent_has_inside_is_shown_as_json(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    agent = {"name": "a", "retry": {"jitter": True, "on": ["5xx"]}, "dialect": None}
    server.on("GET /api/v1/agents/a", agent)
    assert run(capsys, server, "agents", "show", "a") == (
        0, 'name   a\nretry  {"jitter": true, "on": ["5xx"]}\n', "",
    )  # fmt: skip


def executed(server: ScriptedServer, *events: tuple[int, str, object], final: dict[str, object]) -> None:
    server.on("POST /api/v1/workflows/report/execute", a_run("PENDING"), status=202)
    server.on("GET /api/v1/runs/r1/events", stream(*events))
    server.on("GET /api/v1/runs/r1", final)


def test_a_followed_run_prints_its_events_then_its_output(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    final = a_run("COMPLETED", output="done")
    executed(server, (1, "RunStarted", {}), (2, "RunCompleted", {}), final=final)
    code, out, _ = run(capsys, server, "run", "report", "-i", "topic=tides", "-i", "depth=3", "--follow")
    assert code == 0
    lines = out.splitlines()
    assert [line.split(" ", 1)[1] for line in lines[:2]] == [
        "run started (report v1, r1)",
        "run completed (0 ms)",
    ]
    assert lines[2:] == ["done"]
    assert server.seen[0].json == {"topic": "tides", "depth": 3}


def test_a_followed_run_with_json_prints_one_document(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    error = {"code": "agent_timeout", "message": "No answer", "fix": "Raise it."}
    executed(server, (1, "RunFailed", {"error": error}), final=a_run("FAILED", error=error))
    code, out, err = run(capsys, server, "run", "report", "--follow", "--json")
    assert code == 10
    assert json.loads(out)["status"] == "FAILED"
    assert "run failed: No answer" in err


def test_a_run_that_waits_for_a_person_is_exit_13_with_the_question(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    waiting_for = {"kind": "input", "text": "Which tone?", "until": None}
    step = {
        "name": "write",
        "agent": "Writer",
        "status": "WAITING",
        "error": None,
        "waiting_for": waiting_for,
    }
    executed(server, (1, "RunWaiting", {"steps": ["write"]}), final=a_run("WAITING", steps=[step]))
    code, _, err = run(capsys, server, "run", "report", "--wait", "60s")
    assert code == 13
    assert "write asks: Which tone?" in err
    assert "trunkline runs reply r1 write" in err


def test_a_run_that_does_not_end_in_time_is_exit_12(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "RECONNECT_PAUSE_SECONDS", 0)
    executed(server, (1, "RunStarted", {}), final=a_run("RUNNING"))
    code, out, _ = run(capsys, server, "run", "report", "--wait", "50ms")
    assert (code, out) == (12, "")


def test_a_file_is_saved_before_it_runs_and_that_version_runs(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "report.yaml"
    file.write_text("name: report\n")
    warning = {"path": "steps.a.agent", "message": "unknown agent", "line": 4, "column": 12}
    saved = {"id": "w", "name": "report", "version": 7, "warnings": [warning]}
    server.on("POST /api/v1/workflows", saved, status=201)
    server.on("POST /api/v1/workflows/report/execute?version=7", a_run("PENDING"), status=202)
    code, out, err = run(capsys, server, "run", str(file), "--idempotency-key", "k")
    assert (code, out) == (0, "r1\n")
    assert f"{file}:4:12: unknown agent (steps.a.agent) [warning]" in err
    assert server.seen[0].headers["Content-Type"] == "application/yaml"
    assert server.seen[1].headers["Idempotency-Key"] == "k"


def test_a_reply_needs_an_answer(server: ScriptedServer, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, server, "runs", "reply", "r1", "write")
    assert code == 2
    assert "trunkline runs reply r1 write --text 'YOUR ANSWER'" in err
    server.on("POST /api/v1/runs/r1/steps/write/reply", a_run(), status=202)
    code, _, _ = run(
        capsys, server, "runs", "reply", "r1", "write", "--text", "Formal", "--data", '{"tone": 1}'
    )
    assert code == 0
    assert server.seen[0].json == {"text": "Formal", "data": {"tone": 1}}


def test_an_approval_is_written_as_the_waiting_step_expects_it(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.on("GET /api/v1/inbox/r1.write", {"id": "r1.write.1.0", "kind": "person", "data": None})
    server.on("POST /api/v1/runs/r1/steps/write/reply", a_run(), status=202)
    code, _, _ = run(capsys, server, "runs", "reply", "r1", "write", "--approve", "--comment", "fine")
    assert code == 0
    assert server.seen[-1].json == {"answer": "approve", "comment": "fine"}


def test_broken_data_is_not_sent_as_a_reply(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, server, "runs", "reply", "r1", "write", "--data", '{"tone": 1')
    assert code == 7
    assert "is not valid JSON" in err
    assert not server.seen


def test_steering_sends_what_was_asked(server: ScriptedServer, capsys: pytest.CaptureFixture[str]) -> None:
    for action in ("cancel", "pause", "resume", "retry"):
        server.on(f"POST /api/v1/runs/r1/{action}", a_run(), status=202)
        arguments = ["--from-step", "write", "-i", "a=1"] if action == "retry" else []
        code, out, _ = run(capsys, server, "runs", action, "r1", *arguments)
        assert (code, out) == (0, "run     r1\nstatus  RUNNING\n")
    assert server.seen[-1].json == {"from_step": "write", "input": {"a": 1}}
    server.on("POST /api/v1/runs/r1/steps/pay/resolve", a_run(), status=202)
    code, _, _ = run(
        capsys, server, "runs", "resolve", "r1", "pay", "--outcome", "succeeded", "--output", '{"id": 1}'
    )
    assert code == 0
    assert server.seen[-1].json == {"outcome": "succeeded", "output": {"id": 1}}


def test_a_conflict_is_exit_4_with_its_reason(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    problem = {"detail": "The run is COMPLETED.", "fix": "Retry it: trunkline runs retry r1"}
    server.on("POST /api/v1/runs/r1/cancel", problem, status=409)
    code, out, err = run(capsys, server, "runs", "cancel", "r1")
    assert (code, out) == (4, "")
    assert "The run is COMPLETED." in err


def test_watching_with_json_prints_one_event_per_line(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.on("GET /api/v1/runs/r1", a_run("CANCELLED"))
    server.on("GET /api/v1/runs/r1/events", stream((1, "RunStarted", {}), (2, "RunCancelled", {})))
    code, out, _ = run(capsys, server, "runs", "watch", "r1", "--json")
    assert code == 11
    events = [cast("dict[str, object]", json.loads(line)) for line in out.splitlines()]
    assert [event["type"] for event in events] == ["RunStarted", "RunCancelled"]


def test_the_url_can_come_from_the_environment(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRUNKLINE_URL", server.url + "/")
    server.on("GET /api/v1/workflows?limit=1000", page())
    assert run_command_line(["workflows", "list"]) == 0
    assert "trunkline workflows apply FILE" in capsys.readouterr().err


def test_a_piped_list_imports_nothing_heavy(server: ScriptedServer) -> None:
    server.on("GET /api/v1/runs?limit=50", page(a_run()))
    program = (
        "import sys; from trunkline.cli.app import run_command_line; "
        f"run_command_line(['runs', 'list', '--url', '{server.url}']); "
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    imported = set(done.stdout.splitlines()[-1].split())
    assert "cyclopts" in imported
    assert not imported & {
        "rich",
        "msgspec",
        "pydantic",
        "starlette",
        "aiohttp",
        "asyncio",
        "yaml",
        "sqlalchemy",
    }


def test_an_agent_is_reset(server: ScriptedServer, capsys: pytest.CaptureFixture[str]) -> None:
    server.on("POST /api/v1/agents/Writer/reset", {"name": "Writer"})
    assert run(capsys, server, "agents", "reset", "Writer") == (0, "", "Reset agent Writer\n")
    code, out, _ = run(capsys, server, "agents", "reset", "Writer", "--json")
    assert (code, json.loads(out)) == (0, {"name": "Writer"})
    code, _, err = run(capsys, server, "agents", "reset", "Nobody")
    assert (code, err) == (3, "error: No /api/v1/agents/Nobody/reset\nfix: List them.\n")
