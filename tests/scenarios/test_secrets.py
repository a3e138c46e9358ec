"""A canary secret, and an agent that repeats it wherever it can: it appears in nothing that anybody can read."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import AsyncGenerator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Protocol, cast

import asyncpg
import pytest
from structlog.testing import capture_logs

from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.testing import (
    Call,
    RunningSystem,
    ScriptedAgent,
    jsonrpc_error,
    jsonrpc_task,
    running_system,
    simple_error,
    simple_success,
)
from trunkline.testing.agents import Hangup, Reply, Script
from trunkline.testing.system import step_of

pytestmark = pytest.mark.anyio

CANARY = 'canary/7f3a+19\\"e2b4'
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("secrets")


@pytest.fixture(scope="module")
async def watched(shared_settings: Mapping[str, str], folder: Path) -> AsyncGenerator[RunningSystem]:
    async with running_system(folder) as running:
        yield running


def odd_task(call: Call) -> Json:
    """The secret in every field that an agent can choose."""
    part: JsonObject = {"kind": "text", "text": f"it is {CANARY}", "metadata": {CANARY: CANARY}}
    message: JsonObject = {"role": "agent", "messageId": CANARY, "parts": [part]}
    return {
        "jsonrpc": "2.0",
        "id": call.id,
        "result": {
            "kind": "task",
            "id": f"task-{CANARY}",
            "contextId": f"context-{CANARY}",
            "status": {"state": "completed", "message": message},
            "artifacts": [{"artifactId": CANARY, "name": CANARY, "parts": [part]}],
            "history": [message],
            "metadata": {CANARY: [CANARY]},
        },
    }


def long_output(call: Call) -> Json:
    return simple_success(" ".join([CANARY] * 20_000))(call)


ECHOES: list[tuple[str, str, Script]] = [
    ("simple output", "simple-a2a", simple_success({"said": CANARY, CANARY: [CANARY], "text": CANARY})),
    ("simple error", "simple-a2a", simple_error(f"wrong token {CANARY}")),
    ("simple task id", "simple-a2a", {"task_id": CANARY, "status": "success", "output": 1, "error": CANARY}),
    ("simple status", "simple-a2a", {"task_id": 1, "status": CANARY}),
    ("long output", "simple-a2a", long_output),
    ("html", "simple-a2a", Reply(500, f"<h1>{CANARY}</h1>".encode(), {"Content-Type": "text/html"})),
    ("html with 200", "jsonrpc-2.0", Reply(200, f"<h1>{CANARY}</h1>".encode(), {"X-Echo": CANARY})),
    ("redirect", "simple-a2a", Reply(302, b"", {"Location": f"http://127.0.0.1/?t={CANARY}"})),
    ("cookie", "simple-a2a", Reply(401, b"no", {"Set-Cookie": f"t={CANARY}", "WWW-Authenticate": CANARY})),
    ("cut answer", "simple-a2a", Hangup(f"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{CANARY}".encode())),
    ("no HTTP", "simple-a2a", Hangup(f"HTTP/1.1 200 OK\r\n{CANARY}\x00: {CANARY}\r\n\r\n".encode())),
    ("reason", "simple-a2a", Hangup(f"HTTP/1.1 500 {CANARY}\r\nContent-Length: 0\r\n\r\n".encode())),
    ("rpc error", "jsonrpc-2.0", jsonrpc_error(-32000, f"wrong token {CANARY}")),
    ("rpc id", "jsonrpc-2.0", {"jsonrpc": "2.0", "id": CANARY, "result": {}}),
    ("rpc version", "jsonrpc-2.0", {"jsonrpc": CANARY, "id": 1, "result": {}}),
    ("rpc task", "jsonrpc-2.0", odd_task),
    ("rpc state", "jsonrpc-2.0", jsonrpc_task("no", state=f"bad {CANARY}")),
    ("rpc failed", "jsonrpc-2.0", jsonrpc_task(f"no: {CANARY}", state="failed")),
    ("rpc data", "jsonrpc-2.0", {"jsonrpc": "2.0", "error": {"code": 1, "message": "x", "data": [CANARY]}}),
]


def forms_of(secret: str) -> list[str]:
    """How the secret would look in JSON, in JSON within JSON, and in a repr."""
    once = encode(secret).decode()[1:-1]
    return [secret, once, encode(once).decode()[1:-1], repr(secret)[1:-1]]


def assert_hidden(text: str, where: str, *secrets: str) -> None:
    for secret in secrets:
        for form in forms_of(secret):
            at = text.find(form)
            assert at < 0, f"{where}: …{text[max(0, at - 200) : at + 200]}…"


class Database(Protocol):
    """What we need of PostgreSQL's driver."""

    async def fetch(self, query: str) -> list[tuple[str]]: ...

    async def copy_from_table(self, table_name: str, *, output: BytesIO, format: str) -> object: ...  # noqa: A002 - its name

    async def close(self) -> None: ...


async def everything_kept(folder: Path, settings: Mapping[str, str]) -> dict[str, str]:
    """The files of SQLite, or the tables of PostgreSQL as the server itself copies them."""
    kept = {file.name: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    if settings:
        database = cast("Database", await asyncpg.connect(settings["TRUNKLINE_STORE"]))  # pyright: ignore[reportUnknownMemberType] - the library has no annotations
        try:
            for (table,) in await database.fetch(
                "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
            ):
                content = BytesIO()
                await database.copy_from_table(table, output=content, format="binary")
                kept[table] = content.getvalue()
        finally:
            await database.close()
        assert kept["runs"]
    return {name: content.decode("latin-1") for name, content in kept.items()}


async def everything_readable(system: RunningSystem, run_id: str, agent: str) -> dict[str, str]:
    paths = [
        *(f"/runs/{run_id}{part}" for part in ("", "/events", "/wire")),
        *("/runs", "/agents", f"/agents/{agent}", f"/agents/{agent}/health", "//metrics"),
    ]
    answers = {path: await system.call("GET", path) for path in paths}
    answers["stream"] = await system.call("GET", paths[1], headers={"Accept": "text/event-stream"})
    return {path: f"{answer.body.decode()} {dict(answer.headers)}" for path, answer in answers.items()}


@pytest.mark.parametrize(("name", "protocol", "script"), ECHOES, ids=[echo[0] for echo in ECHOES])
async def test_an_agent_that_repeats_its_secret_does_not_make_it_readable(
    watched: RunningSystem,
    folder: Path,
    shared_settings: Mapping[str, str],
    name: str,
    protocol: str,
    script: Script,
) -> None:
    with capture_logs() as logs:
        async with ScriptedAgent(script) as agent:
            await watched.register(
                name, agent.url, protocol=protocol, auth_type="bearer", auth_config={"token": CANARY}
            )
            step: JsonObject = {"agent": name, "retry": {"max_attempts": 1}}
            workflow = name.replace(" ", "-")
            await watched.save({"name": workflow, "steps": {"only": step}})
            run = await watched.run(workflow)
            assert agent.calls[0].headers["Authorization"] == f"Bearer {CANARY}"
            texts = await everything_readable(watched, str(run["id"]), name)
    for where, text in texts.items():
        assert_hidden(text, where, CANARY)
    assert {"http_call", "protocol_request_translation"} <= {line["event"] for line in logs}
    assert_hidden("\n".join(repr(line) for line in logs), "logs", CANARY)
    for where, text in (await everything_kept(folder, shared_settings)).items():
        assert_hidden(text, where, CANARY)


async def test_a_question_that_repeats_the_secret_is_asked_without_it(watched: RunningSystem) -> None:
    async with ScriptedAgent(jsonrpc_task(f"Is it {CANARY}?", state="input-required")) as agent:
        await watched.register(
            "Asks", agent.url, protocol="jsonrpc-2.0", auth_type="bearer", auth_config={"token": CANARY}
        )
        await watched.save({"name": "asks", "steps": {"only": {"agent": "Asks"}}})
        run_id = await watched.start("asks")
        run = await watched.wait_for(run_id, {"WAITING"})
        texts = await everything_readable_while_waiting(watched, run_id)
    assert step_of(run, "only")["waiting_for"] == {
        "kind": "input",
        "text": "Is it [redacted]?",
        "until": None,
    }
    for where, text in texts.items():
        assert_hidden(text, where, CANARY)


async def everything_readable_while_waiting(system: RunningSystem, run_id: str) -> dict[str, str]:
    paths = (f"/runs/{run_id}", f"/runs/{run_id}/events", f"/runs/{run_id}/wire")
    return {path: (await system.call("GET", path)).body.decode() for path in paths}


async def test_a_card_that_repeats_the_secret_does_not_make_it_readable(watched: RunningSystem) -> None:
    with capture_logs() as logs:
        async with ScriptedAgent(jsonrpc_task("ok")) as agent:
            agent.publish({"name": CANARY, "protocolVersion": f"0.3 {CANARY}", "url": agent.url})
            await watched.register("Card", agent.url, auth_type="bearer", auth_config={"token": CANARY})
            await watched.save({"name": "card", "steps": {"only": {"agent": "Card"}}})
            run = await watched.run("card")
            texts = await everything_readable(watched, str(run["id"]), "Card")
    assert run["status"] == "COMPLETED"
    for where, text in texts.items():
        assert_hidden(text, where, CANARY)
    assert_hidden("\n".join(repr(line) for line in logs), "logs", CANARY)


@pytest.mark.parametrize(
    ("auth_type", "auth_config", "secrets"),
    [
        (
            "basic",
            {"username": "ann", "password": "canary-word"},
            ["canary-word", b64encode(b"ann:canary-word").decode()],
        ),
        ("api_key", {"name": "key", "value": "canary in query", "in": "query"}, ["canary in query"]),
        ("api_key", {"name": "X-Key", "value": "canary-key", "in": "header"}, ["canary-key"]),
        (
            "headers",
            {"X-One": "canary-one", "Authorization": "Digest canary-two"},
            ["canary-one", "canary-two"],
        ),
    ],
)
async def test_no_kind_of_credentials_is_readable_when_the_agent_repeats_the_request(
    watched: RunningSystem, auth_type: str, auth_config: dict[str, str], secrets: list[str]
) -> None:
    def mirror(call: Call) -> Json:
        return simple_success({"path": call.path, **call.headers})(call)

    name = "-".join((auth_type, auth_config.get("in", "")))
    with capture_logs() as logs:
        async with ScriptedAgent(mirror) as agent:
            await watched.register(
                name, agent.url, protocol="simple-a2a", auth_type=auth_type, auth_config={**auth_config}
            )
            await watched.save({"name": name, "steps": {"only": {"agent": name}}})
            run = await watched.run(name)
            texts = await everything_readable(watched, str(run["id"]), name)
    assert run["status"] == "COMPLETED"
    for where, text in texts.items():
        assert_hidden(text, where, *secrets)
    assert_hidden("\n".join(repr(line) for line in logs), "logs", *secrets)


async def test_a_secret_of_digits_leaves_numbers_as_they_are(watched: RunningSystem) -> None:
    async with ScriptedAgent(simple_success({"n": 9_123_456, "s": "1234"})) as agent:
        await watched.register(
            "Digits", agent.url, protocol="simple-a2a", auth_type="bearer", auth_config={"token": "1234"}
        )
        await watched.save(
            {
                "name": "digits",
                "steps": {"only": {"agent": "Digits"}},
                "output": "${ steps.only.output.data }",
            }
        )
        run = await watched.run("digits")
    assert run["status"] == "COMPLETED"
    assert run["output"] == {"n": 9_123_456, "s": "[redacted]"}
