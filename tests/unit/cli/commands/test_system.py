"""The commands that show what a run has logged, how the system stands, and who has changed what."""

from __future__ import annotations

import json

import pytest
from tests.unit.cli.scripted_server import ScriptedServer, page, run

LOGS = "GET /api/v1/runs/r1/logs"
AT = "2026-03-01T12:00:00Z"


def line(text: str, level: str = "info", **fields: object) -> dict[str, object]:
    known = {"at": AT, "level": level, "source": "run", "event": "e", "step": None, "attempt": None}
    return {**known, "text": text, **fields}


def consumers(topic: str, role: str, waiting: int | None, detail: str | None = None) -> dict[str, object]:
    known = {"group": f"trunkline.{role}", "topic": topic, "role": role, "pool": None, "detail": detail}
    return {**known, "waiting": waiting, "partitions": None if waiting is None else 6}


def system(**fields: object) -> dict[str, object]:
    process = {"id": "p", "name": "host-7", "roles": ["api", "bridge"], "pool": "gpu", "version": "1.0"}
    gone = {"name": "host-8", "roles": ["executor"], "pool": None, "alive": False, "this": False}
    known = {"at": AT, "version": "1.0", "mode": "distributed", "store": "postgresql", "broker": "kafka"}
    times = {"started_at": AT, "seen_at": AT}
    return {
        **known,
        "ready": True,
        "dependencies": [{"name": "store", "ok": True, "detail": None}],
        "processes": [
            {**process, **times, "alive": True, "this": True},
            {**process, **times, **gone},
        ],
        "runs": [{"name": "COMPLETED", "count": 10_000, "exact": False}],
        "queues": [{"name": "tasks_queued", "count": 3, "exact": True}],
        "consumers": [consumers("tasks", "bridge", 1_234), consumers("results", "executor", 0)],
        "warnings": [],
        **fields,
    }


def test_the_log_of_a_run_is_one_line_for_each_thing_that_happened(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    failed = line("The step has failed.\n\x1b[31mNo paper", "error", step="print", attempt=2)
    server.on(f"{LOGS}?limit=1000", page(line("The run has started."), failed))
    code, out, err = run(capsys, server, "runs", "logs", "r1")
    assert (code, err) == (0, "")
    header, first, second = out.splitlines()
    assert header.split() == ["AT", "LEVEL", "FROM", "STEP", "ATTEMPT", "TEXT"]
    assert first.split()[2:5] == ["info", "run", "-"]
    assert first.endswith("The run has started.")
    assert second.split()[2:6] == ["error", "run", "print", "2"]
    assert second.endswith(r"The step has failed. \x1b[31mNo paper")


def test_the_log_is_asked_for_by_step_and_attempt_and_goes_on_where_it_ended(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = f"{LOGS}?step=a+step&attempt=2&limit=1&cursor=3.4"
    server.on(asked, page(line("Working"), next_cursor="5.6"))
    arguments = ("runs", "logs", "r1", "a step", "--attempt", "2", "--limit", "1", "--cursor", "3.4")
    code, _, err = run(capsys, server, *arguments)
    assert code == 0
    assert err == "Next page: trunkline runs logs r1 'a step' --attempt 2 --cursor 5.6\n"
    code, out, _ = run(capsys, server, *arguments, "--json")
    assert (code, json.loads(out)) == (0, page(line("Working"), next_cursor="5.6"))


def test_the_log_of_a_step_that_the_run_does_not_have_is_exit_3(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.on(f"{LOGS}?step=wriet&limit=1000", page())
    server.on(f"{LOGS}?step=write&limit=1000", page())
    server.on("GET /api/v1/runs/r1", {"id": "r1", "steps": [{"name": "write"}]})
    code, out, err = run(capsys, server, "runs", "logs", "r1", "wriet")
    assert (code, out) == (3, "")
    assert err == "error: Run r1 has no step wriet.\nfix: Choose one of: write\n"
    assert run(capsys, server, "runs", "logs", "r1", "write") == (0, "", "No matching lines.\n")


def test_the_state_of_the_system_has_everything_that_lives_and_waits(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.on("GET /api/v1/system", system(warnings=["A topic is missing."]))
    code, out, err = run(capsys, server, "system")
    assert (code, err) == (0, "warning: A topic is missing.\n")
    rows = [line.split() for line in out.splitlines()]
    assert ["ready", "yes"] in rows
    assert ["store", "ok", "-"] in rows
    assert "host-7   alive           api, bridge (pool gpu)  1.0" in out
    assert "host-8   not responding  executor" in out
    assert rows[rows.index(["COMPLETED"]) + 1] == ["10,000+"]
    assert ["tasks", "queued", "3"] in rows
    behind = rows[rows.index(["TOPIC", "GROUP", "LAG", "PARTITIONS"]) + 1 :]
    assert behind == [
        ["tasks", "trunkline.bridge", "1,234", "6"],
        ["results", "trunkline.executor", "0", "6"],
    ]


def test_a_kafka_that_does_not_say_how_much_waits_is_named_once(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    away = [consumers(topic, "bridge", None, "Kafka is away.") for topic in ("tasks", "tasks.gpu")]
    server.on("GET /api/v1/system", system(consumers=away))
    code, out, err = run(capsys, server, "system")
    assert (code, err) == (0, "warning: Kafka is away.\n")
    assert ["tasks.gpu", "trunkline.bridge", "unknown", "-"] in [line.split() for line in out.splitlines()]


def test_without_kafka_there_are_no_consumers(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.on("GET /api/v1/system", system(consumers=None))
    code, out, _ = run(capsys, server, "system")
    assert code == 0
    assert "PARTITIONS" not in out


def test_a_system_that_takes_no_work_is_exit_6_and_says_what_is_missing(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = [{"name": "store", "ok": False, "detail": "the disk is full"}]
    state = system(ready=False, dependencies=missing, processes=None, runs=None, queues=None)
    server.on("GET /api/v1/system", state)
    code, out, _ = run(capsys, server, "system")
    assert code == 6
    assert "FAIL    the disk is full" in out
    code, out, _ = run(capsys, server, "system", "--json")
    assert (code, json.loads(out)) == (6, state)


def test_the_audit_says_who_did_what_to_what(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    detail = {"from_step": "write", "new_run": None, "steps": ["a"], "edited": False}
    entry = {"id": "1", "at": AT, "who": "ann", "kind": "run", "action": "retry", "subject": "r1"}
    nobody: dict[str, object] = {**entry, "who": None, "action": "cancel", "detail": {}}
    server.on("GET /api/v1/audit?limit=50", page({**entry, "detail": detail}, nobody))
    code, out, err = run(capsys, server, "audit")
    assert (code, err) == (0, "")
    header, first, second = out.splitlines()
    assert header.split() == ["TIME", "WHO", "KIND", "ACTION", "SUBJECT", "DETAIL"]
    assert first.split()[2:6] == ["ann", "run", "retry", "r1"]
    assert first.endswith('from_step=write, steps=["a"]')
    assert second.split()[2:] == ["-", "run", "cancel", "r1", "-"]


def test_the_audit_is_asked_for_by_key_kind_and_subject_a_page_at_a_time(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = {"id": "1", "at": AT, "who": "a key", "kind": "agent", "action": "reset", "subject": "A"}
    listed = page({**entry, "detail": {}}, next_cursor="n")
    server.on("GET /api/v1/audit?who=a+key&kind=agent&subject=A&limit=1", listed)
    asked = ("audit", "--who", "a key", "--kind", "agent", "--subject", "A")
    _, _, err = run(capsys, server, *asked, "--limit", "1")
    assert err == "Next page: trunkline audit --who 'a key' --kind agent --subject A --cursor n\n"
    code, out, _ = run(capsys, server, *asked, "--limit", "1", "--json")
    assert (code, json.loads(out)) == (0, listed)
    server.on("GET /api/v1/audit?kind=key&limit=50", page())
    _, _, err = run(capsys, server, "audit", "--kind", "key")
    assert err == "No matching entries.\n"
    assert run(capsys, server, "audit", "--kind", "keys")[0] == 2


def change(number: int, at: str = AT) -> dict[str, object]:
    known: dict[str, object] = {
        "who": "ann",
        "kind": "agent",
        "action": "try",
        "subject": f"A{number}",
        "detail": {},
    }
    return {**known, "id": f"e{number}", "at": at}


def lines(*entries: object) -> bytes:
    return b"".join(json.dumps(entry).encode() + b"\n" for entry in entries)


def test_the_audit_is_exported_as_json_lines(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = "GET /api/v1/audit/export?kind=agent&since=2026-03-01T00%3A00%3A00Z"
    server.on(asked, lines(change(1), change(2)))
    arguments = ("audit", "--export", "--kind", "agent", "--since", "2026-03-01T00:00:00Z")
    code, out, err = run(capsys, server, *arguments)
    assert (code, err) == (0, "")
    assert [json.loads(line) for line in out.splitlines()] == [change(1), change(2)]


def test_a_followed_audit_shows_each_entry_once_however_often_the_connection_ends(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.on("GET /api/v1/audit?limit=10", page(change(2), change(1)))
    followed = "GET /api/v1/audit/export?since={}&follow=true"
    server.on(followed.format("2026-03-01T12%3A00%3A00Z"), b"\n" + lines(change(2), change(3)))
    again = followed.format("2026-03-01T11%3A59%3A00%2B00%3A00")
    server.on(again, lines(change(2), change(3), change(4, "2026-03-01T12:05:00Z")))
    code, out, _ = run(capsys, server, "audit", "--follow", "--json")
    # The server does not know the third request, which begins a minute before the last entry.
    assert server.seen[-1].path.endswith("?since=2026-03-01T12%3A04%3A00%2B00%3A00&follow=true")
    assert code == 3
    assert [json.loads(line)["id"] for line in out.splitlines()] == ["e1", "e2", "e3", "e4"]


@pytest.mark.parametrize("arguments", [("--since", AT), ("--follow", "--cursor", "n")])
def test_options_that_do_not_go_together_are_refused(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    assert run(capsys, server, "audit", *arguments)[0] == 2
    assert server.seen == []
