"""A canary secret, and an agent that repeats it wherever it can: it appears in nothing that anybody can read."""

from __future__ import annotations

import asyncio
import ssl
from base64 import b64encode
from collections.abc import AsyncGenerator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Protocol, cast
from urllib.parse import quote_plus

import asyncpg
import pytest
from structlog.testing import capture_logs
from tests.certificates import made
from tests.scenarios.hostile.agents import RawAgent, running
from tests.token_endpoint import token_endpoint

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
from trunkline.testing.agents import Hangup, Reply, Script, Stream
from trunkline.testing.system import error_of, step_of

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
        ("api_key", {"name": "session", "value": "canary-in-cookie", "in": "cookie"}, ["canary-in-cookie"]),
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


@pytest.mark.parametrize("client_auth", ["basic", "post"])
async def test_neither_a_clients_secret_nor_its_tokens_are_readable(
    watched: RunningSystem, folder: Path, shared_settings: Mapping[str, str], client_auth: str
) -> None:
    secret = f"canary of the client {client_auth}"
    encoded = b64encode(f"me:{quote_plus(secret)}".encode()).decode()

    def refused(call: Call) -> Reply:
        return Reply(
            401, f"no: {call.headers['Authorization']}".encode(), {"X-Said": call.headers["Authorization"]}
        )

    def mirror(call: Call) -> Json:
        # The first token was refused, and is repeated all the same.
        return simple_success({"first": endpoint.tokens[0], **call.headers})(call)

    name = f"client-{client_auth}"
    with capture_logs() as logs:
        async with token_endpoint("canary-token") as endpoint, ScriptedAgent(refused, mirror) as agent:
            client: JsonObject = {
                "token_url": endpoint.url,
                "client_id": "me",
                "client_secret": secret,
                "client_auth": client_auth,
            }
            await watched.register(
                name, agent.url, protocol="simple-a2a", auth_type="oauth2", auth_config=client
            )
            await watched.save(
                {"name": name, "steps": {"only": {"agent": name, "retry": {"max_attempts": 1}}}}
            )
            run = await watched.run(name)
            texts = await everything_readable(watched, str(run["id"]), name)
            # A refusal that repeats the secret fails the next run.
            endpoint.scripted = [(400, encode({"error": "invalid_client", "error_description": secret}))] * 2
            agent.script(refused)
            failed = await watched.run(name)
            texts |= {
                f"failed {where}": text
                for where, text in (await everything_readable(watched, str(failed["id"]), name)).items()
            }
    sent = [call.headers["Authorization"] for call in agent.calls]
    assert sent[:2] == ["Bearer canary-token-1", "Bearer canary-token-2"]
    assert run["status"] == "COMPLETED"
    assert error_of(failed)["code"] == "agent_token_refused"
    assert f"Bearer $TRUNKLINE_SECRET_{name.upper().replace('-', '_')}" in texts[f"/runs/{run['id']}/wire"]
    secrets = (secret, encoded, quote_plus(secret), "canary-token")
    for where, text in texts.items():
        assert_hidden(text, where, *secrets)
    assert {"token_fetched", "http_call"} <= {line["event"] for line in logs}
    assert_hidden("\n".join(repr(line) for line in logs), "logs", *secrets)
    for where, text in (await everything_kept(folder, shared_settings)).items():
        assert_hidden(text, where, *secrets)


async def test_a_token_that_comes_back_in_a_stream_is_not_readable(watched: RunningSystem) -> None:
    def stream(call: Call) -> Stream:
        task: JsonObject = {"kind": "task", "id": "t", "contextId": "c", "status": {"state": "working"}}
        said: JsonObject = {
            "role": "agent",
            "messageId": "m",
            "parts": [{"kind": "text", "text": call.headers["Authorization"]}],
        }
        events: list[JsonObject] = [
            task,
            {
                "kind": "status-update",
                "taskId": "t",
                "contextId": "c",
                "status": {"state": "working", "message": said},
            },
            {
                "kind": "artifact-update",
                "taskId": "t",
                "contextId": "c",
                "artifact": {"artifactId": "a", "parts": said["parts"]},
            },
            {
                "kind": "status-update",
                "taskId": "t",
                "contextId": "c",
                "status": {"state": "completed"},
                "final": True,
            },
        ]
        answers: list[Json] = [{"jsonrpc": "2.0", "id": call.id, "result": event} for event in events]
        return Stream(*answers)

    with capture_logs() as logs:
        async with token_endpoint("canary-streamed") as endpoint, ScriptedAgent(stream) as agent:
            agent.publish(
                {
                    "name": "S",
                    "protocolVersion": "0.3.0",
                    "url": agent.url,
                    "capabilities": {"streaming": True},
                }
            )
            client: JsonObject = {
                "token_url": endpoint.url,
                "client_id": "me",
                "client_secret": "canary-secret",
            }
            await watched.register("Streams", agent.url, auth_type="oauth2", auth_config=client)
            await watched.save({"name": "streams", "steps": {"only": {"agent": "Streams"}}})
            run = await watched.run("streams")
            texts = await everything_readable(watched, str(run["id"]), "Streams")
    assert run["status"] == "COMPLETED", run
    assert agent.calls[0].method == "message/stream"
    assert agent.card_requests[0]["Authorization"] == "Bearer canary-streamed-1"
    for where, text in texts.items():
        assert_hidden(text, where, "canary-streamed", "canary-secret")
    assert_hidden("\n".join(repr(line) for line in logs), "logs", "canary-streamed", "canary-secret")


async def test_a_private_key_is_readable_nowhere(
    watched: RunningSystem, folder: Path, shared_settings: Mapping[str, str], tmp_path: Path
) -> None:
    root = made("root")
    ours = made("ours", signed_by=root)
    (tmp_path / "server.pem").write_text("".join(made("server", signed_by=root)))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")
    context.load_verify_locations(cadata=root[0])
    context.verify_mode = ssl.CERT_REQUIRED

    async def script(agent: RawAgent, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await agent.request(reader)
        body = b'{"status":"success","output":{"you":"%s"}}' % str(writer.get_extra_info("peercert")).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

    config: JsonObject = {"certificate": ours[0], "key": ours[1], "authority": root[0]}
    with capture_logs() as logs:
        async with running(script, context) as agent:
            for name, changed in {"Known": config, "Stranger": {**config, "authority": ours[0]}}.items():
                await watched.register(
                    name, agent.url, protocol="simple-a2a", auth_type="mtls", auth_config=changed
                )
                step: JsonObject = {"agent": name, "retry": {"max_attempts": 1}}
                await watched.save({"name": name.lower(), "steps": {"only": step}})
            known, unknown_ca = await watched.run("known"), await watched.run("stranger")
            refused = await watched.call(
                "POST",
                "/agents",
                {
                    "name": "X",
                    "url": agent.url,
                    "auth_type": "mtls",
                    "auth_config": {**config, "key": root[1]},
                },
            )
            texts = {"refused": refused.body.decode()}
            for name, run in (("Known", known), ("Stranger", unknown_ca)):
                texts |= await everything_readable(watched, str(run["id"]), name)
    assert (known["status"], refused.status) == ("COMPLETED", 422)
    assert error_of(unknown_ca)["code"] == "agent_tls_failed"
    lines = [line for key in (ours[1], root[1]) for line in key.splitlines()[1:-1]]
    for where, text in texts.items():
        assert_hidden(text, where, *lines)
    assert_hidden("\n".join(repr(line) for line in logs), "logs", *lines)
    for where, text in (await everything_kept(folder, shared_settings)).items():
        assert_hidden(text, where, *lines)


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
