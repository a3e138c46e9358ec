"""Zones as agents of a workflow: with other dialects, with accepted work, restarts, lost answers and refusals."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.serving import base_url, listen, serving
from trunkline.testing import Call, RunningSystem, ScriptedAgent, jsonrpc_task, running_system, simple_success
from trunkline.testing.agents import Hangup, Reply
from trunkline.testing.system import error_of, step_of
from trunkline.zones import Zone, ZoneFault
from trunkline.zones.access.policy import ZoneCaller
from trunkline.zones.serving.http_server import ZoneConnection

pytestmark = pytest.mark.anyio

TOKEN = "canary-xoxb-4711"
ZONE: JsonObject = {"protocol": "jsonrpc-2.0", "protocol_config": {"profile": "slack"}}
# What the profile asks for, with the token by its name.
MESSAGE: JsonObject = {
    "channel": "${ input.channel }",
    "text": "${ input.text }",
    "bot_token": {"$secret": "slack-bot"},
}
INPUT: JsonObject = {"channel": "C1", "text": "hello"}
CALLER = ZoneCaller(name="bridge", known_by="address")
FAST: JsonObject = {"max_attempts": 3, "first_delay": "10ms", "jitter": False}


class GatedZone:
    """Work that waits at a gate, and how often it began."""

    def __init__(self, *, accept_after: float = 0.05, restartable: bool = False) -> None:
        self._accept_after = accept_after
        self._restartable = restartable
        self.gate = asyncio.Event()
        self.begun: list[JsonObject] = []
        self.zone = self.opened()

    def opened(self) -> Zone:
        """The same zone in a new life."""
        self.zone = Zone("gated", accept_after=self._accept_after, stop_timeout=0.0)
        self.zone.method("execute_task", restartable=self._restartable)(self._work)
        return self.zone

    async def _work(self, params: JsonObject) -> JsonObject:
        self.begun.append(params)
        if params["text"] == "break":
            raise ZoneFault(4711, "No such channel")
        await self.gate.wait()
        return {"response_text": f"Posted: {params['text']}", "ts": "1.2"}

    async def answer(self, call: Call) -> Json | Reply:
        """For a scripted agent that stands in front of the zone."""
        reply = await self.zone.answer(encode(call.body), CALLER)
        return Reply(reply.status, reply.body, {"Content-Type": "application/json"})

    async def has_accepted(self) -> None:
        """Whoever called knows that the work goes on."""
        while not self.zone.is_busy:
            await asyncio.sleep(0.01)

    async def has_begun(self, times: int = 1) -> None:
        while len(self.begun) < times:
            await asyncio.sleep(0.01)


@asynccontextmanager
async def served(zone: Zone, data: Path, port: int = 0) -> AsyncGenerator[str]:
    with listen("127.0.0.1", port) as listener:
        async with zone.running(data), serving(zone, listener, ZoneConnection):
            yield base_url(listener)


@pytest.fixture
async def system(system: RunningSystem) -> RunningSystem:
    """One that knows the secret."""
    answer = await system.call("PUT", "/secrets/slack-bot", {"value": TOKEN})
    assert answer.status in {200, 201}
    return system


async def save(system: RunningSystem, **step: Json) -> None:
    fields: JsonObject = {"agent": "Zone", "input": MESSAGE, "retry": FAST, **step}
    await system.save({"name": "one", "steps": {"only": fields}})


async def methods_of(system: RunningSystem, run: JsonObject) -> list[str]:
    """What each request to a zone has asked for, by the wire records."""
    sent = [str(exchange["request"]) for exchange in await system.items(f"/runs/{run['id']}/wire")]
    return ["get_task_result" if "get_task_result" in text else "execute_task" for text in sent]


async def test_a_workflow_mixes_a_zone_with_simple_a2a_and_a2a(system: RunningSystem, tmp_path: Path) -> None:
    gated = GatedZone()
    async with (
        served(gated.zone, tmp_path / "zone") as zone_url,
        ScriptedAgent(simple_success({"text": "Three people agreed."})) as reader,
        ScriptedAgent(jsonrpc_task("It is said.")) as writer,
    ):
        writer.publish({"name": "Writer", "protocolVersion": "0.3.0", "url": writer.url})
        await system.register("Reader", reader.url, protocol="simple-a2a")
        await system.register("Writer", writer.url)
        await system.register("Zone", zone_url, **ZONE)
        steps: JsonObject = {
            "read": {"agent": "Reader", "input": {"query": "${ input.text }"}},
            "post": {
                "agent": "Zone",
                "input": {**MESSAGE, "text": "${ steps.read.output.text }"},
                "timeout": "60s",
            },
            "write": {"agent": "Writer", "input": {"text": "${ steps.post.output.text }"}},
        }
        output: JsonObject = {"said": "${ steps.write.output.text }", "ts": "${ steps.post.output.data.ts }"}
        await system.save({"name": "mixed", "steps": steps, "output": output})
        run_id = await system.start("mixed", INPUT)
        await gated.has_accepted()
        gated.gate.set()
        run = await system.wait_for(run_id)
    assert run["status"] == "COMPLETED"
    assert run["output"] == {"said": "It is said.", "ts": "1.2"}
    assert [step_of(run, name)["protocol"] for name in ("read", "post", "write")] == [
        "simple-a2a",
        "jsonrpc-2.0",
        "a2a-0.3",
    ]
    assert step_of(run, "post")["output"] == {
        "text": "Posted: Three people agreed.",
        "data": {"response_text": "Posted: Three people agreed.", "ts": "1.2", "status": "success"},
    }
    (params,) = gated.begun
    assert params == {
        "channel": "C1",
        "text": "Three people agreed.",
        "bot_token": TOKEN,
        "correlation_id": run["correlation_id"],
    }
    wire = (await system.call("GET", f"/runs/{run['id']}/wire?limit=1000")).body.decode()
    assert TOKEN not in wire
    assert "get_task_result" in wire


async def test_work_that_outlives_a_restart_of_its_zone_is_asked_for_until_it_ends(
    system: RunningSystem, tmp_path: Path
) -> None:
    gated = GatedZone(restartable=True)
    await save(system, timeout="60s")
    async with served(gated.zone, tmp_path / "zone") as url:
        await system.register("Zone", url, **ZONE)
        run_id = await system.start("one", INPUT)
        await gated.has_accepted()
    port = int(url.rpartition(":")[2])
    async with served(gated.opened(), tmp_path / "zone", port):
        await gated.has_begun(2)
        gated.gate.set()
        run = await system.wait_for(run_id)
    assert run["status"] == "COMPLETED"
    assert step_of(run, "only")["attempts"] == 1


async def test_work_that_a_restart_has_cut_fails_the_step_with_the_zones_words(
    system: RunningSystem, tmp_path: Path
) -> None:
    gated = GatedZone()
    await save(system, timeout="60s")
    async with served(gated.zone, tmp_path / "zone") as url:
        await system.register("Zone", url, **ZONE)
        run_id = await system.start("one", INPUT)
        await gated.has_accepted()
    async with served(gated.opened(), tmp_path / "zone", int(url.rpartition(":")[2])):
        run = await system.wait_for(run_id)
    error = error_of(step_of(run, "only"))
    assert (error["code"], error["jsonrpc_code"]) == ("agent_jsonrpc_error", -32000)
    assert "interrupted by a restart" in str(error["message"])
    assert len(gated.begun) == 1


async def test_a_zone_that_has_lost_its_memory_gets_the_same_message_again(
    system: RunningSystem, tmp_path: Path
) -> None:
    gated = GatedZone()
    await save(system, timeout="60s")
    async with served(gated.zone, tmp_path / "zone") as url:
        await system.register("Zone", url, **ZONE)
        run_id = await system.start("one", INPUT)
        await gated.has_accepted()
    gated.gate.set()
    async with served(gated.opened(), tmp_path / "another", int(url.rpartition(":")[2])):
        run = await system.wait_for(run_id)
    assert run["status"] == "COMPLETED"
    assert len(gated.begun) == 2
    sent = await methods_of(system, run)
    assert (sent.count("execute_task"), sent[0]) == (2, "execute_task")


async def test_a_lost_answer_is_asked_for_with_the_same_id_and_the_work_runs_once(
    system: RunningSystem,
) -> None:
    gated = GatedZone(accept_after=30.0)
    gated.gate.set()

    async def unheard(call: Call) -> Hangup:
        await gated.answer(call)
        return Hangup()

    async with gated.zone.running(), ScriptedAgent(unheard, gated.answer) as agent:
        await system.register("Zone", agent.url, **ZONE)
        await save(system)
        run = await system.run("one", INPUT)
    assert run["status"] == "COMPLETED"
    assert len(gated.begun) == 1
    first, second = agent.calls
    assert first.body == second.body
    assert first.headers["X-Zone-Session"] == second.headers["X-Zone-Session"] == first.body["id"]


def refusing(status: int, **data: Json) -> Reply:
    error: JsonObject = {"code": -32000, "message": "Not now", "data": data}
    body = encode({"jsonrpc": "2.0", "id": None, "error": error})
    return Reply(status, body, {"Content-Type": "application/json"})


@pytest.mark.parametrize(
    ("refusal", "same_message"),
    [(refusing(429, retry_after_ms=20), False), (refusing(200, reason="stopping"), True)],
    ids=["by rate", "while stopping"],
)
async def test_a_refusal_that_passes_is_no_failure(
    system: RunningSystem, refusal: Reply, same_message: bool
) -> None:
    gated = GatedZone(accept_after=0.01)
    async with (
        gated.zone.running(),
        ScriptedAgent(refusal, gated.answer, refusal, refusal, gated.answer) as agent,
    ):
        await system.register("Zone", agent.url, **ZONE)
        await save(system)
        run_id = await system.start("one", INPUT)
        await agent.called(4)
        gated.gate.set()
        run = await system.wait_for(run_id)
    assert run["status"] == "COMPLETED"
    assert len(gated.begun) == 1
    ids = [call.body["id"] for call in agent.calls if call.method == "execute_task"]
    assert (len(ids), len({str(id_) for id_ in ids})) == (2, 1 if same_message else 2)


async def test_an_input_that_does_not_fit_the_profile_is_never_sent(system: RunningSystem) -> None:
    gated = GatedZone()
    async with gated.zone.running(), ScriptedAgent(gated.answer) as agent:
        await system.register("Zone", agent.url, **ZONE)
        await save(system, input={"text": "hello", "bot_token": {"$secret": "slack-bot"}, "thread_ts": 7})
        run = await system.run("one", INPUT)
    error = error_of(step_of(run, "only"))
    assert (error["code"], agent.calls) == ("request_not_encodable", [])
    assert error["message"] == (
        "The input does not match the profile slack: channel is required; "
        'thread_ts the value is not of type "string"'
    )
    assert TOKEN not in encode(run).decode()


async def test_an_error_of_the_work_fails_the_step_with_its_code(system: RunningSystem) -> None:
    gated = GatedZone()
    async with gated.zone.running(), ScriptedAgent(gated.answer) as agent:
        await system.register("Zone", agent.url, **ZONE)
        await save(system)
        run = await system.run("one", {**INPUT, "text": "break"})
    error = error_of(step_of(run, "only"))
    assert (error["jsonrpc_code"], error["message"]) == (4711, "JSON-RPC Error 4711: No such channel")
    assert len(gated.begun) == 1


@pytest.mark.embedded_only
@pytest.mark.usefixtures("own_profiles")
async def test_another_payload_is_a_file(tmp_path: Path) -> None:
    folder = tmp_path / "profiles"
    folder.mkdir()
    (folder / "invoice.json").write_text(
        '{"required": ["number"], "properties": {"number": {"type": "integer"}}}'
    )
    zone = Zone("books")

    @zone.method("pay")
    def pay(params: JsonObject) -> str:  # pyright: ignore[reportUnusedFunction] - registered
        return f"paid {params['number']}"

    async with (
        running_system(tmp_path / "data", profiles=folder) as system,
        served(zone, tmp_path / "zone") as url,
    ):
        config: JsonObject = {"profile": "invoice", "method": "pay"}
        await system.register("Zone", url, protocol="jsonrpc-2.0", protocol_config=config)
        await save(system, input="${ input }")
        paid, refused = await system.run("one", {"number": 7}), await system.run("one", {"number": "7"})
    assert step_of(paid, "only")["output"] == {
        "text": "paid 7",
        "data": {"status": "success", "response_text": "paid 7"},
    }
    assert "number the value is not of type" in str(error_of(step_of(refused, "only"))["message"])
