"""Agents that answer badly or not at all: each gives its documented error, and the system goes on."""

from __future__ import annotations

import gzip
from datetime import timedelta

import pytest

from trunkline.jsontypes import Json, JsonObject
from trunkline.messages import ERROR_CODES
from trunkline.testing import Call, RunningSystem, ScriptedAgent, jsonrpc_task, simple_success
from trunkline.testing.agents import EndlessReply, Hangup, Reply, Script
from trunkline.testing.system import error_of, step_of

pytestmark = pytest.mark.anyio

ENDLESS = EndlessReply(timedelta(milliseconds=100))
HTML = Reply(200, b"<!doctype html><h1>Welcome to nginx!</h1>", {"Content-Type": "text/html"})
DEEP = b"[" * 100_000 + b"]" * 100_000
BOMB = gzip.compress(b"0" * 50_000_000)


def result(**fields: Json) -> Script:
    """A JSON-RPC answer that is right but for these fields."""

    def answer(call: Call) -> Json:
        return {"jsonrpc": "2.0", "id": call.id, **fields}

    return answer


def deep(call: Call) -> Reply:
    return Reply(200, b'{"jsonrpc":"2.0","id":"%s","result":%s}' % (str(call.id).encode(), DEEP))


def deep_output(call: Call) -> Reply:
    return Reply(200, b'{"task_id":"%s","status":"success","output":%s}' % (str(call.id).encode(), DEEP))


MALFORMED = "malformed JSON-RPC response"
BAD: list[tuple[str, str, Script, str, str]] = [
    ("html", "jsonrpc-2.0", HTML, "agent_answer_malformed", f"{MALFORMED}: The answer is HTML or XML, not JSON"),
    ("empty", "jsonrpc-2.0", Reply(), "agent_answer_malformed", f"{MALFORMED}: The answer is empty"),
    ("truncated", "jsonrpc-2.0", Reply(200, b'{"jsonrpc":"2.0",'), "agent_answer_malformed", "cut off"),
    ("array", "jsonrpc-2.0", Reply(200, b"[]"), "agent_answer_malformed", "The answer is an array, not an object"),
    ("no jsonrpc", "jsonrpc-2.0", {"id": 1}, "agent_answer_malformed", "Response missing 'jsonrpc' field"),
    ("1.0", "jsonrpc-2.0", result(jsonrpc="1.0"), "agent_answer_malformed", "Unsupported JSON-RPC version: 1.0"),
    ("neither", "jsonrpc-2.0", result(), "agent_answer_malformed", "Response missing both 'result' and 'error'"),
    ("both", "jsonrpc-2.0", result(result={}, error={"code": 1, "message": "x"}), "agent_answer_malformed",
     "Response has both 'result' and 'error'"),
    ("other id", "jsonrpc-2.0", result(id="other", result={}), "agent_response_id_mismatch", "Response ID mismatch"),
    ("no id", "jsonrpc-2.0", result(id=None, result={}), "agent_answer_malformed", "Response missing 'id' field"),
    ("20 MB", "jsonrpc-2.0", Reply(200, b" " * 20_000_000), "agent_answer_too_large", "larger than 16777216 bytes"),
    ("depth", "jsonrpc-2.0", deep, "agent_answer_malformed", "The answer is nested too deeply"),
    ("bomb", "jsonrpc-2.0", Reply(200, BOMB, {"Content-Encoding": "gzip"}), "agent_answer_compressed",
     "Content-Encoding: gzip"),
    ("drip", "jsonrpc-2.0", ENDLESS, "agent_timeout", "The agent did not answer within"),
    ("redirect", "jsonrpc-2.0", Reply(307, b"", {"Location": "http://169.254.169.254/"}), "agent_redirected",
     "redirects to http://169.254.169.254/"),
    ("simple html", "simple-a2a", HTML, "agent_answer_malformed", "malformed Simple A2A response"),
    ("simple empty", "simple-a2a", Reply(), "agent_answer_malformed", "The answer is empty"),
    ("simple depth", "simple-a2a", deep_output, "agent_answer_malformed", "The answer is nested too deeply"),
    ("no status", "simple-a2a", {"task_id": "x"}, "agent_answer_malformed", "Response missing 'status' field"),
    ("bad utf-8", "simple-a2a", Reply(200, b'{"status":"\xff"}'), "agent_answer_malformed", "not UTF-8"),
    ("nan", "simple-a2a", Reply(200, b'{"status":"success","output":NaN}'), "agent_answer_malformed", "not JSON"),
    ("html 502", "simple-a2a", Reply(502, HTML.body), "agent_http_error", "HTTP 502: Welcome to nginx!"),
    ("413", "simple-a2a", Reply(413, b"<h1>Too large</h1>"), "agent_http_error", "bytes is too large for it"),
    ("closed", "simple-a2a", Hangup(), "agent_connection_lost", "The agent closed the connection without an answer."),
    ("cut", "simple-a2a", Hangup(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}"), "agent_connection_lost",
     "broke off after 2 bytes"),
    ("no http", "simple-a2a", Hangup(b"220 mail.example ESMTP\r\n"), "agent_answer_malformed", "is not HTTP"),
]  # fmt: skip


async def run_on(system: RunningSystem, name: str, url: str, protocol: str) -> JsonObject:
    await system.register(name, url, protocol=protocol, timeout_ms=500 if name == "drip" else 60_000)
    step: JsonObject = {"agent": name, "retry": {"max_attempts": 1}}
    workflow = f"w-{name.replace(' ', '-').replace('.', '-')}"
    await system.save({"name": workflow, "steps": {"only": step}})
    return await system.run(workflow)


def assert_documented(run: JsonObject, code: str, message: str) -> None:
    error = error_of(run)
    assert run["status"] == "FAILED"
    assert error["code"] == code
    assert code in ERROR_CODES
    assert message in str(error["message"])
    assert error["fix"]
    assert error["step"] == "only"
    assert error == error_of(step_of(run, "only"))


async def assert_alive(system: RunningSystem) -> None:
    name = f"Good {len(await system.items('/agents'))}"
    async with ScriptedAgent(simple_success("ok")) as agent:
        assert (await run_on(system, name, agent.url, "simple-a2a"))["status"] == "COMPLETED"


@pytest.mark.parametrize(("name", "protocol", "script", "code", "message"), BAD, ids=[bad[0] for bad in BAD])
async def test_a_bad_answer_gives_its_documented_error_and_nothing_else_stops(
    shared_system: RunningSystem, name: str, protocol: str, script: Script, code: str, message: str
) -> None:
    async with ScriptedAgent(script) as agent:
        run = await run_on(shared_system, name, agent.url, protocol)
    assert_documented(run, code, message)
    assert len(agent.calls) == 1
    (exchange,) = await shared_system.items(f"/runs/{run['id']}/wire")
    assert exchange["response"] is not None or exchange["error"]
    await assert_alive(shared_system)


@pytest.mark.parametrize(
    ("url", "code", "message"),
    [
        ("http://nowhere.invalid/agent", "agent_dns_failed", "The agent's host name cannot be resolved"),
        ("http://169.254.169.254/agent", "agent_address_forbidden", "169.254.169.254"),
        ("http://100.64.1.2/agent", "agent_address_forbidden", "100.64.1.2"),
    ],
)
async def test_an_address_that_cannot_be_called_gives_its_documented_error(
    shared_system: RunningSystem, url: str, code: str, message: str
) -> None:
    run = await run_on(shared_system, url.split("/")[2], url, "simple-a2a")
    assert_documented(run, code, message)
    await assert_alive(shared_system)


async def test_an_agent_that_is_down_gives_its_documented_error(shared_system: RunningSystem) -> None:
    async with ScriptedAgent(simple_success("gone")) as agent:
        url = agent.url
    run = await run_on(shared_system, "Down", url, "simple-a2a")
    assert_documented(run, "agent_unreachable", "Connection refused")
    (exchange,) = await shared_system.items(f"/runs/{run['id']}/wire")
    assert exchange["response"] is None
    assert "Connection refused" in str(exchange["error"])
    await assert_alive(shared_system)


async def test_an_agent_without_tls_behind_https_gives_its_documented_error(
    shared_system: RunningSystem,
) -> None:
    async with ScriptedAgent(simple_success("plain")) as agent:
        run = await run_on(shared_system, "Plain", agent.url.replace("http:", "https:"), "simple-a2a")
    assert_documented(run, "agent_tls_failed", "TLS failed")
    assert not agent.calls
    await assert_alive(shared_system)


async def test_a_large_answer_that_is_allowed_arrives_whole(shared_system: RunningSystem) -> None:
    text = "å" * 4_000_000
    async with ScriptedAgent(jsonrpc_task(text)) as agent:
        run = await run_on(shared_system, "Large", agent.url, "jsonrpc-2.0")
        (exchange,) = await shared_system.items(f"/runs/{run['id']}/wire")
    output = step_of(run, "only")["output"]
    assert isinstance(output, dict)
    assert output["text"] == text
    assert isinstance(exchange["response"], dict)
    assert len(str(exchange["response"]["body"]).encode()) <= 64 * 1024
    assert "The response body is cut" in str(exchange["notes"])


async def test_a_long_malformed_answer_is_kept_whole_without_secrets(system: RunningSystem) -> None:
    token = "canary-4711-whole"
    long = b"<html>" + b"x" * 300_000 + token.encode() + b"</html>"
    async with ScriptedAgent(Reply(200, long, {"Content-Type": "text/html"})) as agent:
        await system.register(
            "A", agent.url, protocol="jsonrpc-2.0", auth_type="bearer", auth_config={"token": token}
        )
        await system.save("{name: one, steps: {a: {agent: A, retry: {max_attempts: 1}}}}")
        run = await system.run("one", {})
        (exchange,) = await system.items(f"/runs/{run['id']}/wire")
        response = exchange["response"]
        assert isinstance(response, dict)
        whole = long.replace(token.encode(), b"[redacted]")
        blob = response.get("blob")
        if isinstance(blob, dict):
            assert (blob["run"], blob["bytes"]) == (run["id"], len(whole))
            file = await system.call("GET", f"/{str(blob['href']).removeprefix('/api/v1/')}")
            assert file.body == whole
            assert len(str(response["body"])) < 100_000
            assert any(str(blob["id"]) in str(note) for note in objects(exchange["notes"]))
        else:
            # Without a place for files, the record itself has it.
            assert response["body"] == whole.decode()


def objects(values: Json) -> list[Json]:
    assert isinstance(values, list)
    return values


async def test_a_short_malformed_answer_is_in_the_record_alone(system: RunningSystem) -> None:
    async with ScriptedAgent(HTML) as agent:
        await system.register("A", agent.url, protocol="jsonrpc-2.0")
        await system.save("{name: one, steps: {a: {agent: A, retry: {max_attempts: 1}}}}")
        run = await system.run("one", {})
        (exchange,) = await system.items(f"/runs/{run['id']}/wire")
    assert isinstance(exchange["response"], dict)
    assert (exchange["response"]["body"], "blob" in exchange["response"]) == (HTML.body.decode(), False)
