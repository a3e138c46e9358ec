"""The same thing has the same form in every command: verbs, durations and options. Older names keep working."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from cyclopts import App
from docstring_parser import parse
from tests.unit.cli.scripted_server import ScriptedServer, run

from trunkline.cli.app import build_app, load_commands, run_command_line
from trunkline.errors import ConfigurationError
from trunkline.jsontypes import JsonObject
from trunkline.settings import Settings, load_settings

AGENT = {"name": "a", "url": "http://a", "dialect": None, "auth_type": "none"}
RUN = {"id": "r1", "status": "RUNNING"}
# The older verb of each command.
OLDER_VERBS = {
    "agents add": "agents create",
    "agents remove": "agents delete",
    "secrets remove": "secrets delete",
    "dead-letters discard": "dead-letters delete",
    "config view": "config show",
}
DURATIONS = (
    ["run", "report", "--wait"],
    ["runs", "watch", "r1", "--wait"],
    ["agents", "create", "a", "http://a", "--timeout"],
    ["agents", "update", "a", "--timeout"],
    ["agents", "try", "a", "--text", "hi", "--timeout"],
    ["agents", "check", "http://127.0.0.1:9", "--timeout"],
    ["agents", "migrate", "canary", "a", "--percent", "5", "--slowest"],
    ["keys", "create", "a", "--role", "viewer", "--expires-in"],
    ["inbox", "link", "r1", "a", "--for", "ada", "--expires-in"],
)


def commands(app: App, path: tuple[str, ...] = ()) -> Iterator[tuple[str, App]]:
    for name in app:
        if not name.startswith("-"):
            yield " ".join((*path, name)), app[name]
            yield from commands(app[name], (*path, name))


@pytest.fixture(scope="module")
def by_name() -> dict[str, App]:
    app = build_app()
    load_commands(app)
    return dict(commands(app))


def test_the_overview_of_a_group_says_what_each_command_does(
    by_name: dict[str, App], capsys: pytest.CaptureFixture[str]
) -> None:
    groups = {name for name, command in by_name.items() if command.default_command is None}
    assert groups >= {"agents", "agents migrate", "runs", "inbox"}
    for group in groups:
        assert run_command_line([*group.split(), "--help"]) == 0
        rows = capsys.readouterr().out.split("Commands")[1].splitlines()
        names = {
            name.rpartition(" ")[2]
            for name in by_name
            if name.rpartition(" ")[0] == group and by_name[name].show
        }
        summaries = {
            words[1]: words[2:-1] for row in rows if len(words := row.split()) > 2 and words[1] in names
        }
        assert summaries.keys() == names
        assert all(summaries.values()), (group, summaries)


def test_an_older_verb_is_the_same_command_and_not_in_the_help(by_name: dict[str, App]) -> None:
    for older, verb in OLDER_VERBS.items():
        assert by_name[older].default_command is by_name[verb].default_command
        assert (by_name[older].show, by_name[verb].show) == (False, True)


def test_only_older_verbs_are_hidden(by_name: dict[str, App]) -> None:
    assert {name for name, command in by_name.items() if not command.show} == OLDER_VERBS.keys()


def test_every_list_has_a_limit_and_a_cursor(by_name: dict[str, App]) -> None:
    # The keys are read from the store, all of them.
    lists = [name for name in by_name if name.endswith(" list") and name != "keys list"]
    assert len(lists) == 11
    for name in (*lists, "audit", "runs items", "runs logs", "workflows versions", "agents migrate history"):
        names = {argument.name for argument in by_name[name].assemble_argument_collection()}
        assert {"--limit", "--cursor", "--json"} <= names, name


def test_an_answer_has_the_same_options_in_both_places(by_name: dict[str, App]) -> None:
    for name in ("inbox answer", "runs reply"):
        arguments = by_name[name].assemble_argument_collection(parse_docstring=True)
        shown = {argument.name: argument.parameter.help for argument in arguments if argument.show}
        assert shown.keys() >= {
            "--answer", "--comment", "--text", "--data", "--parts", "--function-response", "--approve", "--reject"
        }  # fmt: skip
        assert str(shown["--parts"]).startswith("JSON file with a list of message parts")


def test_help_shows_what_a_command_says_about_its_options(by_name: dict[str, App]) -> None:
    described = 0
    for name, command in by_name.items():
        if command.default_command is None:
            continue
        arguments = command.assemble_argument_collection(parse_docstring=True)
        shown = {argument.field_info.name: argument.parameter.help for argument in arguments}
        for parameter in parse(inspect.getdoc(command.default_command) or "").params:
            assert shown[parameter.arg_name] == parameter.description, f"{name} {parameter.arg_name}"
            described += 1
        assert all(argument.parameter.help for argument in arguments if argument.show), name
    assert described > 100


@pytest.mark.parametrize(
    "command",
    [
        ["runs", "list", "--status", "running", "--status", "Waiting"],
        ["inbox", "list", "--kind", "INPUT"],
        ["agents", "create", "a", "http://a", "--transport", "HTTPS", "--resend", "Never"],
        ["agents", "create", "a", "http://a", "--auth-type", "NONE"],
        ["runs", "resolve", "r1", "a", "--outcome", "Failed"],
        ["runs", "resolve", "r1", "a", "FAILED"],
        ["audit", "--kind", "Trigger"],
    ],
    ids=" ".join,
)
def test_a_choice_ignores_case(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    page: JsonObject = {"items": [], "next_cursor": None}
    server.on("GET /api/v1/runs?status=RUNNING&status=WAITING&limit=50", page)
    server.on("GET /api/v1/inbox?kind=input&limit=1000", page)
    server.on("GET /api/v1/audit?kind=trigger&limit=50", page)
    server.on("POST /api/v1/agents", AGENT, status=201)
    server.on("POST /api/v1/runs/r1/steps/a/resolve", RUN, status=202)
    code, _, err = run(capsys, server, *command)
    assert (code, len(server.seen)) == (0, 1), err


def test_another_word_is_refused_with_the_choices(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, server, "inbox", "list", "--kind", "all")
    assert (code, server.seen) == (2, [])
    assert err.startswith(
        'error: Invalid value for --kind: "all" is not one of: "input", "auth", "outcome", "person", "compensation".'
    )
    code, _, err = run(capsys, server, "runs", "list", "--status", "failed", "--status", "ended")
    assert code == 2
    assert err.startswith('error: Invalid value for --status: "ended" is not one of: "PENDING", ')


def test_a_list_of_nothing_is_refused(server: ScriptedServer, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, server, "agents", "list", "--limit", "0")
    assert (code, server.seen) == (2, [])
    assert "Must be at least 1." in err


@pytest.mark.parametrize("command", DURATIONS, ids=" ".join)
@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("30", "'30' has no unit; write 30s for seconds"),
        ("soon", "'soon' is not a duration; use a number and a unit"),
        ("0s", "it must be greater than zero"),
    ],
)
def test_a_duration_needs_a_unit_everywhere(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str], command: list[str], written: str, said: str
) -> None:
    code, _, err = run(capsys, server, *command, written)
    assert (code, server.seen) == (2, [])
    assert err.startswith(f"error: Invalid value for {command[-1]}: {said}")


@pytest.mark.parametrize(("command", "maximum"), [("try", "1m"), ("check", "10m")])
def test_a_timeout_has_a_maximum(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str], command: str, maximum: str
) -> None:
    text = ("--text", "hi") if command == "try" else ()
    code, _, err = run(capsys, server, "agents", command, "a", *text, "--timeout", "601s")
    assert (code, server.seen) == (2, [])
    assert f"fix: Use {maximum} or less" in err


def test_a_duration_in_the_settings_needs_a_unit_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "trunkline.toml"
    file.write_text("stop_timeout = 30\n")
    with pytest.raises(ConfigurationError, match="stop_timeout: '30' has no unit; write 30s"):
        load_settings({})
    file.write_text('stop_timeout = "30s"\n')
    assert load_settings({}).stop_timeout == timedelta(seconds=30)


def test_every_setting_that_is_a_duration_is_written_like_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    durations = [
        name for name, field in Settings.model_fields.items() if "timedelta" in str(field.annotation)
    ]
    assert {"stop_timeout", "retention", "topic_retention"} <= set(durations)
    for name in durations:
        with pytest.raises(ConfigurationError, match=f"{name}: '7' has no unit"):
            load_settings({name: "7"})


def test_an_update_sends_only_what_is_named(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_TOKEN", "t0ken")
    server.on("PATCH /api/v1/agents/a", AGENT)
    code, out, _ = run(
        capsys, server, "agents", "update", "a", "--agent-url", "http://b", "--timeout", "2m",
        "--config", "method=null", "--no-breaker", "--auth-type", "bearer", "--auth-env", "AGENT_TOKEN",
    )  # fmt: skip
    assert (code, "t0ken" in out) == (0, False)
    assert server.seen[0].json == {
        "url": "http://b",
        "timeout_ms": 120_000,
        "protocol_config": {"method": None},
        "breaker": False,
        "auth_type": "bearer",
        "auth_config": {"token": "t0ken"},
    }


def test_an_update_of_nothing_is_refused(server: ScriptedServer, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, server, "agents", "update", "a")
    assert (code, server.seen) == (2, [])
    assert "There is nothing to update" in err


def test_the_older_forms_of_options_still_work(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    parts = tmp_path / "parts.json"
    parts.write_text('[{"kind": "text", "text": "hi"}]')
    server.on("POST /api/v1/runs/r1/steps/a/reply", RUN, status=202)
    server.on("POST /api/v1/runs/r1/steps/a/resolve", RUN, status=202)
    change = {"agent": "a", "event": None, "migration": MIGRATION}
    server.on("POST /api/v1/migration/agents/a/rollback", change)
    server.on("POST /api/v1/migration/agents/a/canary", change)
    assert run(capsys, server, "runs", "reply", "r1", "a", "Formal", "--parts-file", str(parts))[0] == 0
    assert run(capsys, server, "runs", "resolve", "r1", "a", "failed")[0] == 0
    assert run(capsys, server, "agents", "migrate", "rollback", "a", "--why", "wrong")[0] == 0
    canary = ("agents", "migrate", "canary", "a", "--percent", "5")
    assert run(capsys, server, *canary, "--slowest-ms", "1500", "--why", "try")[0] == 0
    assert run(capsys, server, *canary, "--slowest", "1.5s", "--note", "try")[0] == 0
    reply, resolution, rollback, *canaries = (seen.json for seen in server.seen)
    assert reply == {"text": "Formal", "parts": [{"kind": "text", "text": "hi"}]}
    assert resolution == {"outcome": "failed"}
    assert isinstance(rollback, dict)
    assert rollback["why"] == "wrong"
    older, newer = canaries
    assert older == newer
    assert isinstance(newer, dict)
    assert (newer["limits"], newer["why"]) == ({"slowest_ms": 1500}, "try")


def test_a_period_has_the_same_options_everywhere(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.on("POST /api/v1/triggers/nightly/backfill", {"items": []}, status=202)
    backfill = ("triggers", "backfill", "nightly")
    first, last = "2026-03-01T00:00:00Z", "2026-03-08T00:00:00Z"
    assert run(capsys, server, *backfill, "--since", first, "--until", last)[0] == 0
    assert run(capsys, server, *backfill, "--from", first, "--to", last)[0] == 0
    assert [seen.json for seen in server.seen] == [{"from": first, "to": last}] * 2
    code, _, err = run(capsys, server, *backfill, "--since", first)
    assert code == 2
    assert "fix: trunkline triggers backfill nightly --since TIME --until TIME" in err


MIGRATION = {
    "stage": "rolled_back",
    "target": None,
    "percent": 0,
    "ready": None,
    "forced": False,
}


def test_a_rollback_needs_a_reason(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["agents", "migrate", "rollback", "a"]) == 2
    assert "fix: Add it: --note" in capsys.readouterr().err


def test_an_outcome_is_needed_to_resolve_a_call(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, server, "runs", "resolve", "r1", "a step")
    assert (code, server.seen) == (2, [])
    assert "trunkline runs resolve r1 'a step' --outcome succeeded|failed|call_again" in err


def test_the_versions_of_a_workflow_are_listed(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    versions = [{"version": number, "created_at": "2026-03-01T12:00:00Z"} for number in (2, 1)]
    server.on("GET /api/v1/workflows/report/versions?limit=50", {"items": versions, "next_cursor": "n"})
    server.on("GET /api/v1/workflows/report/versions?limit=48&cursor=n", {"items": [], "next_cursor": None})
    code, out, _ = run(capsys, server, "workflows", "versions", "report")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == ["VERSION", "2", "1"]
