"""What was on the wire: complete, in order, without secrets, and as a command that can be run again."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import pytest
from tests.har_schema import check_har
from tests.token_endpoint import token_endpoint

from trunkline.bridge.wire.exchanges import to_curl
from trunkline.jsontypes import Json, JsonObject, decode, encode
from trunkline.testing import (
    Call,
    RunningSystem,
    ScriptedAgent,
    jsonrpc_task,
    objects_in,
    running_system,
    simple_success,
)
from trunkline.testing.agents import Hangup, Reply, Stream
from trunkline.testing.system import step_of

pytestmark = pytest.mark.anyio

CANARY = "canary-7f3a19e2"

needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")


def part(exchange: JsonObject, name: str) -> JsonObject:
    value = exchange[name]
    assert isinstance(value, dict)
    return value


async def test_every_exchange_of_every_attempt_is_kept_in_order(system: RunningSystem) -> None:
    working = jsonrpc_task("", state="working")
    script = (Reply(503, b"busy"), Hangup(), working, jsonrpc_task("done"))
    async with ScriptedAgent(*script) as agent:
        await system.register("Agent", agent.url, protocol="jsonrpc-2.0")
        retry: JsonObject = {"max_attempts": 3, "backoff": "fixed", "first_delay": "10ms"}
        steps: JsonObject = {"only": {"agent": "Agent", "retry": retry}}
        await system.save({"name": "one", "steps": steps})
        run = await system.run("one", {"text": "hi"})
        items = await system.items(f"/runs/{run['id']}/wire?limit=3")
        second, third = [
            await system.items(f"/runs/{run['id']}/wire?step=only&attempt={attempt}&limit=1")
            for attempt in (2, 3)
        ]
        archive = await system.call("GET", f"/runs/{run['id']}/wire?format=har&attempt=3")
    assert (second, third) == (items[1:2], items[2:])
    assert len(objects_in(part(archive.json, "log")["entries"])) == 2
    numbers = [int(str(item["id"])) for item in items]
    assert numbers == sorted(set(numbers))
    keys = {"id", "step", "attempt", "started_at", "duration_ms", "request", "response", "error", "notes"}
    assert [item.keys() - {"kind", "frames", "connect_ms", "first_byte_ms"} for item in items] == [keys] * 4
    assert [item["kind"] for item in items] == ["send", "send", "send", "poll"]
    assert [(item["step"], item["attempt"]) for item in items] == [("only", n) for n in (1, 2, 3, 3)]
    assert [str(item["started_at"]) for item in items] == sorted(str(item["started_at"]) for item in items)
    assert items[1]["response"] is None
    assert items[1]["error"] == "The agent closed the connection without an answer."
    for item, call in zip(items, agent.calls, strict=True):
        request = part(item, "request")
        assert request["method"] == "POST"
        assert request["url"] == agent.url
        assert decode(str(request["body"])) == call.body
        assert part(request, "headers")["X-Correlation-ID"] == run["correlation_id"]
        assert float(str(item["duration_ms"])) >= 0
    assert items[1]["first_byte_ms"] is None
    for answered in (items[0], items[2], items[3]):
        connect, first, whole = (
            float(str(answered[name])) for name in ("connect_ms", "first_byte_ms", "duration_ms")
        )
        assert 0 <= connect <= first <= whole
    assert part(items[0], "response")["status"] == 503
    assert part(items[0], "response")["body"] == "busy"
    assert part(part(items[3], "response"), "headers")["content-type"] == "application/json"


async def test_of_two_exchanges_at_once_the_one_that_began_first_is_shown_first(
    system: RunningSystem,
) -> None:
    async with ScriptedAgent(simple_success("quick")) as quick:

        async def after_the_quick_one(call: Call) -> Json:
            await quick.called(1)
            return simple_success("slow")(call)

        async with ScriptedAgent(after_the_quick_one) as slow:
            await system.register("Slow", slow.url, protocol="simple-a2a")
            await system.register("Quick", quick.url, protocol="simple-a2a")
            await system.save({"name": "two", "steps": {"s": {"agent": "Slow"}, "q": {"agent": "Quick"}}})
            run = await system.run("two")
            items = await system.items(f"/runs/{run['id']}/wire")
    began = [str(item["started_at"]) for item in items]
    assert len(began) == 2
    assert began == sorted(began)


async def test_the_wire_of_one_step_can_be_asked_for(system: RunningSystem) -> None:
    async with ScriptedAgent(simple_success("ok")) as agent:
        await system.register("Agent", agent.url, protocol="simple-a2a")
        await system.save({"name": "two", "steps": {"a": {"agent": "Agent"}, "b": {"agent": "Agent"}}})
        run = await system.run("two")
        items = await system.items(f"/runs/{run['id']}/wire?step=b")
        for wrong in ("0", "-1", "second", str(10**12)):
            refused = await system.call("GET", f"/runs/{run['id']}/wire?attempt={wrong}")
            assert refused.status == 422
            assert "attempt" in refused.body.decode()
    assert [item["step"] for item in items] == ["b"]


async def test_when_calls_were_made_can_be_read_without_what_they_carried(system: RunningSystem) -> None:
    async with ScriptedAgent(simple_success("ok")) as agent:
        await system.register("Agent", agent.url, protocol="simple-a2a")
        await system.save({"name": "one", "steps": {"a": {"agent": "Agent"}}})
        run = await system.run("one")
        (whole,) = await system.items(f"/runs/{run['id']}/wire")
        (bare,) = await system.items(f"/runs/{run['id']}/wire?payloads=false")
    assert [bare[name] for name in ("id", "started_at")] == [whole[name] for name in ("id", "started_at")]
    assert bare["request"] == {"method": "POST", "url": agent.url, "headers": {}, "body": ""}
    assert bare["response"] == {"status": 200, "headers": {}, "body": ""}


def only_friends(call: Call) -> Json | Reply:
    """Answers the same to the same, and nothing to strangers."""
    if call.headers.get("Authorization") not in (None, "Bearer s3cret $x", "Basic YW5uOnBhc3M6d29yZA=="):
        return Reply(401, b"who are you?")
    return jsonrpc_task(f"{call.id} {call.message['parts']}")(call)


@needs_curl
@pytest.mark.parametrize(
    ("auth", "variable"),
    [
        ({}, {}),
        (
            {"auth_type": "bearer", "auth_config": {"token": "s3cret $x"}},
            {"TRUNKLINE_SECRET_IT_S_MINE": "s3cret $x"},
        ),
        (
            {"auth_type": "basic", "auth_config": {"username": "ann", "password": "pass:word"}},
            {"TRUNKLINE_SECRET_IT_S_MINE": "ann:pass:word"},
        ),
    ],
    ids=["nobody", "bearer", "basic"],
)
async def test_a_copied_command_gets_the_same_answer(
    system: RunningSystem, auth: dict[str, Json], variable: dict[str, str]
) -> None:
    async with ScriptedAgent(only_friends) as agent:
        await system.register("It's mine", agent.url, protocol="jsonrpc-2.0", **auth)
        await system.save({"name": "one", "steps": {"only": {"agent": "It's mine"}}})
        run = await system.run("one", {"text": 'it\'s "$HOME" `id`\n\\ å\u0000'})
        (exchange,) = await system.items(f"/runs/{run['id']}/wire")
        shell = await asyncio.create_subprocess_exec(
            "sh",
            "-c",
            to_curl(exchange),
            stdout=asyncio.subprocess.PIPE,
            env={"PATH": os.environ["PATH"], "NO_PROXY": "*", **variable},
        )
        printed, _ = await shell.communicate()
    assert shell.returncode == 0
    assert run["status"] == "COMPLETED"
    assert decode(printed) == decode(str(part(exchange, "response")["body"]))
    assert agent.calls[0].body == agent.calls[1].body


async def test_a_long_request_is_cut_and_says_so(system: RunningSystem) -> None:
    async with ScriptedAgent(simple_success("ok")) as agent:
        await system.register("Agent", agent.url, protocol="simple-a2a")
        await system.save({"name": "one", "steps": {"only": {"agent": "Agent"}}})
        run = await system.run("one", {"text": "x" * 100_000})
        (exchange,) = await system.items(f"/runs/{run['id']}/wire")
    assert len(str(part(exchange, "request")["body"])) == 64 * 1024
    assert "The request body is cut" in str(exchange["notes"])
    assert agent.calls[0].body["input"] == {"text": "x" * 100_000}


@needs_curl
async def test_a_request_that_is_cut_is_repeated_with_a_body_from_a_file_or_not_at_all(
    tmp_path: Path,
) -> None:
    async def answer(command: str) -> tuple[int | None, bytes]:
        environment = {"PATH": os.environ["PATH"], "NO_PROXY": "*"}
        shell = await asyncio.create_subprocess_exec(
            "sh", "-c", command, stdout=asyncio.subprocess.PIPE, cwd=tmp_path, env=environment
        )
        printed, _ = await shell.communicate()
        return shell.returncode, printed

    async with (
        ScriptedAgent(simple_success("y" * 5_000)) as agent,
        running_system(tmp_path / "data", max_wire_bytes=2_000) as system,
    ):
        await system.register("Agent", agent.url, protocol="simple-a2a")
        await system.save({"name": "one", "steps": {"only": {"agent": "Agent"}}})
        run = await system.run("one", {"text": "x" * 3_000})
        (exchange,) = await system.items(f"/runs/{run['id']}/wire")
        assert [len(str(part(exchange, name)["body"])) for name in ("request", "response")] == [2_000, 2_000]
        cut, from_file, command = to_curl(exchange).splitlines()
        assert cut.startswith("# The request body is cut: it has 3,")
        assert cut.endswith("bytes, and 2,000 are kept. The limit is the setting max_wire_bytes.")
        assert "body-of-only-attempt-1.txt" in from_file
        assert await answer(command) == (1, b"")
        assert len(agent.calls) == 1
        (tmp_path / "body-of-only-attempt-1.txt").write_bytes(encode(agent.calls[0].body))
        code, printed = await answer(command)
    assert code == 0
    assert b"y" * 5_000 in printed
    assert agent.calls[1].body == agent.calls[0].body


async def test_more_of_long_bodies_is_kept_where_it_is_set(tmp_path: Path) -> None:
    async with (
        ScriptedAgent(simple_success("y" * 200_000)) as agent,
        running_system(tmp_path / "data", max_wire_bytes=300_000) as system,
    ):
        await system.register("Agent", agent.url, protocol="simple-a2a")
        await system.save({"name": "one", "steps": {"only": {"agent": "Agent"}}})
        run = await system.run("one", {"text": "x" * 100_000})
        (exchange,) = await system.items(f"/runs/{run['id']}/wire")
    assert "x" * 100_000 in str(part(exchange, "request")["body"])
    assert "y" * 200_000 in str(part(exchange, "response")["body"])
    assert exchange["notes"] == []


async def test_a_run_that_does_not_exist_has_no_wire(system: RunningSystem) -> None:
    answer = await system.call("GET", "/runs/nothing/wire")
    assert answer.status == 404
    assert answer.headers["Content-Type"] == "application/problem+json"


def streamed(call: Call) -> Stream:
    """A stream of 0.3, as a card announces it."""

    def said(result: JsonObject) -> Json:
        ids: JsonObject = {"taskId": "t-1", "contextId": "c-1"}
        return {"jsonrpc": "2.0", "id": call.id, "result": {**result, **ids}}

    artifact: JsonObject = {"artifactId": "a", "parts": [{"kind": "text", "text": f"sunny {CANARY}"}]}
    return Stream(
        said({"kind": "status-update", "status": {"state": "working"}, "final": False}),
        said({"kind": "artifact-update", "artifact": artifact}),
        said({"kind": "status-update", "status": {"state": "completed"}, "final": True}),
    )


async def run_of_a_streaming_agent(system: RunningSystem, agent: ScriptedAgent) -> str:
    card: JsonObject = {
        "name": "Streamer",
        "url": agent.url,
        "protocolVersion": "0.3.0",
        "preferredTransport": "JSONRPC",
        "capabilities": {"streaming": True},
        "skills": [],
    }
    agent.publish(card)
    auth: JsonObject = {"token": CANARY}
    await system.register("Streamer", agent.url, auth_type="bearer", auth_config=auth)
    await system.save({"name": "one", "steps": {"only": {"agent": "Streamer"}}})
    return str((await system.run("one", {"query": "weather"}))["id"])


async def test_a_stream_is_shown_event_by_event_after_the_card_that_announced_it(
    system: RunningSystem,
) -> None:
    async with ScriptedAgent(streamed) as agent:
        run_id = await run_of_a_streaming_agent(system, agent)
        items = await system.items(f"/runs/{run_id}/wire")
    kinds = [item["kind"] for item in items]
    assert kinds[-1] == "stream"
    assert set(kinds[:-1]) == {"card"}
    stream = items[-1]
    frames = objects_in(stream["frames"])
    assert [len(frame.keys() & {"at_ms", "data"}) for frame in frames] == [2, 2, 2]
    events = objects_in([decode(str(frame["data"])) for frame in frames])
    assert [part(event, "result")["kind"] for event in events] == [
        "status-update",
        "artifact-update",
        "status-update",
    ]
    times = [float(str(frame["at_ms"])) for frame in frames]
    assert times == sorted(times)
    assert str(part(stream, "response")["body"]).count("data: ") == 3
    assert CANARY not in str(items)


async def test_the_wire_is_an_archive_that_other_tools_read(system: RunningSystem) -> None:
    async with ScriptedAgent(streamed) as agent:
        run_id = await run_of_a_streaming_agent(system, agent)
        answer = await system.call("GET", f"/runs/{run_id}/wire?format=har")
        first = (await system.call("GET", f"/runs/{run_id}/wire?format=har&limit=1")).json
        items = await system.items(f"/runs/{run_id}/wire")
    assert answer.headers["Content-Type"] == "application/har+json"
    check_har(answer.json)
    entries = objects_in(part(answer.json, "log")["entries"])
    assert [entry["_kind"] for entry in entries] == [item["kind"] for item in items]
    assert len(objects_in(entries[-1]["_frames"])) == 3
    assert CANARY.encode() not in answer.body
    assert len(objects_in(part(first, "log")["entries"])) == 1
    assert "_next_cursor" in part(first, "log")


async def test_a_request_for_a_token_is_shown_without_what_it_says(system: RunningSystem) -> None:
    async with token_endpoint() as endpoint, ScriptedAgent(jsonrpc_task("done")) as agent:
        auth: JsonObject = {"token_url": endpoint.url, "client_id": "me", "client_secret": CANARY}
        await system.register(
            "Agent", agent.url, protocol="jsonrpc-2.0", auth_type="oauth2", auth_config=auth
        )
        await system.save({"name": "one", "steps": {"only": {"agent": "Agent"}}})
        run = await system.run("one")
        items = await system.items(f"/runs/{run['id']}/wire")
        (call,) = agent.calls
    assert [item["kind"] for item in items] == ["token", "send"]
    assert part(items[0], "request")["url"] == endpoint.url
    assert part(items[0], "response")["status"] == 200
    assert CANARY not in str(items)
    assert call.headers["Authorization"].removeprefix("Bearer ") not in str(items)


async def test_a_token_stands_before_the_stream_that_needed_it(system: RunningSystem) -> None:
    async with token_endpoint() as endpoint, ScriptedAgent(jsonrpc_task("done")) as agent:
        endpoint.more = {"expires_in": 0}
        agent.publish(
            {"name": "S", "protocolVersion": "0.3.0", "url": agent.url, "capabilities": {"streaming": True}}
        )
        auth: JsonObject = {"token_url": endpoint.url, "client_id": "me", "client_secret": CANARY}
        await system.register("Agent", agent.url, auth_type="oauth2", auth_config=auth)
        await system.save({"name": "one", "steps": {"only": {"agent": "Agent"}}})
        run = await system.run("one")
        items = await system.items(f"/runs/{run['id']}/wire")
    kinds = [item["kind"] for item in items if item["kind"] != "card"]
    assert kinds[-2:] == ["token", "stream"]


async def test_a_push_address_is_known_to_its_agent_alone(tmp_path: Path) -> None:
    card: JsonObject = {
        "name": "Ringer",
        "protocolVersion": "0.3.0",
        "preferredTransport": "JSONRPC",
        "capabilities": {"pushNotifications": True},
        "skills": [],
    }
    async with (
        running_system(tmp_path / "data", public_url="http://trunkline.example") as system,
        ScriptedAgent(jsonrpc_task("done")) as agent,
    ):
        agent.publish({**card, "url": agent.url})
        await system.register("Agent", agent.url)
        await system.save({"name": "one", "steps": {"only": {"agent": "Agent"}}})
        run = await system.run("one")
        items = await system.items(f"/runs/{run['id']}/wire")
        configuration = part(part(agent.calls[-1].body, "params"), "configuration")
    push_config = part(configuration, "pushNotificationConfig")
    assert str(push_config["url"]).startswith("http://trunkline.example/hooks/a2a/")
    assert str(push_config["token"]) not in str(items)
    assert str(push_config["url"]).rpartition("/")[2] not in str(items)
    assert "http://trunkline.example/hooks/a2a/[redacted]" in str(items[-1]["request"])


async def test_warnings_about_an_answer_are_recorded_with_it(system: RunningSystem) -> None:
    odd: JsonObject = {"jsonrpc": "2.0", "id": "another", "result": {"kind": "task", "id": "t"}}
    async with ScriptedAgent(jsonrpc_task("done", state="succeeded"), odd) as agent:
        await system.register("Agent", agent.url, protocol="jsonrpc-2.0")
        steps: JsonObject = {
            "state": {"agent": "Agent", "retry": {"max_attempts": 1}, "on_error": "continue"},
            "id": {"agent": "Agent", "retry": {"max_attempts": 1}, "needs": ["state"]},
        }
        await system.save({"name": "two", "steps": steps})
        run = await system.run("two")
        items = await system.items(f"/runs/{run['id']}/wire")
    assert [item["step"] for item in items] == ["state", "id"]
    assert "Status state not recognized" in str(items[0]["notes"])
    assert "Response ID mismatch" in str(items[1]["notes"])


async def test_a_call_that_is_broken_off_is_on_the_wire_with_what_had_come(system: RunningSystem) -> None:
    working: JsonObject = {"kind": "task", "id": "t", "contextId": "c", "status": {"state": "working"}}
    card: JsonObject = {"name": "Streamer", "protocolVersion": "0.3.0", "capabilities": {"streaming": True}}

    def answer(call: Call) -> Json | Stream:
        if call.method == "message/stream":
            return Stream({"jsonrpc": "2.0", "id": call.id, "result": working}, asyncio.Event())
        return jsonrpc_task("", state="canceled")(call)

    async with ScriptedAgent(answer) as agent:
        agent.publish({**card, "url": agent.url})
        await system.register("Agent", agent.url)
        await system.save({"name": "one", "steps": {"only": {"agent": "Agent"}}})
        run_id = await system.start("one")
        while step_of(await system.get(run_id), "only")["waiting_for"] is None:
            await asyncio.sleep(0.02)
        await system.call("POST", f"/runs/{run_id}/cancel")
        await system.wait_for(run_id)
        items = await system.items(f"/runs/{run_id}/wire")
    assert [item["kind"] for item in items if item["kind"] != "card"] == ["stream", "cancel"]
    assert items[-2]["error"] == "Trunkline stopped the call before the answer was complete."
    assert part(items[-2], "response")["status"] == 200
    assert "working" in str(items[-2]["frames"])


async def test_a_request_whose_answer_was_not_waited_for_is_on_the_wire(system: RunningSystem) -> None:
    never = asyncio.Event()

    async def silent(call: Call) -> Json:
        await never.wait()
        return simple_success("late")(call)

    async with ScriptedAgent(silent) as agent:
        await system.register("Agent", agent.url, protocol="simple-a2a")
        await system.save({"name": "one", "steps": {"only": {"agent": "Agent"}}})
        run_id = await system.start("one")
        await agent.called()
        await system.call("POST", f"/runs/{run_id}/cancel")
        await system.wait_for(run_id)
        (sent,) = await system.items(f"/runs/{run_id}/wire")
    assert (sent["kind"], sent["response"]) == ("send", None)
    assert sent["error"] == "Trunkline stopped the call before the answer was complete."


async def test_another_format_is_refused(system: RunningSystem) -> None:
    answer = await system.call("GET", "/runs/nothing/wire?format=pcap")
    assert answer.status == 422
