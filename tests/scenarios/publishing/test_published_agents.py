"""Agents that are published: what their callers send reaches them, and what they answer comes back, as it was."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable

import pytest
from tests.scenarios.kit_server import served
from tests.scenarios.publishing.a2a_caller import (
    A2ACaller,
    parts_of,
    state_of,
    status_text,
    text,
    text_v03,
)

from trunkline.agentkit import Agent, AgentError, Message, Question, Task
from trunkline.jsontypes import Json, JsonObject
from trunkline.testing import RunningSystem, ScriptedAgent, Stream, jsonrpc_task, simple_success
from trunkline.testing.agents import Call
from trunkline.testing.system import objects_in

pytestmark = pytest.mark.anyio

FILE: JsonObject = {"raw": "aGk=", "mediaType": "text/plain", "filename": "a.txt"}
SKILL: JsonObject = {"id": "puns", "name": "Puns", "description": "Makes puns.", "tags": ["fun"]}
ARTIFACTS: list[Json] = [
    {
        "artifactId": "report",
        "name": "Report",
        "description": "All of it",
        "parts": [{"text": "about boats", "metadata": {"n": 1}}, {"data": [1, None]}, FILE],
        "metadata": {"tone": "dry"},
    }
]


async def publish(system: RunningSystem, url: str, version: str = "1.0", **fields: Json) -> A2ACaller:
    await system.register("A", url, publish=True, **fields)
    return A2ACaller(system, "agents/A", version)


def answered(result: Json) -> Callable[[Call], Json]:
    return lambda call: {"jsonrpc": "2.0", "id": call.id, "result": result}


async def play(task: Task) -> AsyncGenerator[object, Message]:
    match task.text:
        case "fail":
            raise AgentError("No boats today.")
        case "ask":
            reply = yield Question("Which city?")
            yield f"{reply.text} it is."
        case "wait":
            await asyncio.Event().wait()
        case words:
            yield f"about {words}"


@pytest.fixture
async def kit(system: RunningSystem) -> AsyncGenerator[A2ACaller]:
    agent = Agent("Kit", description="Plays.")
    agent.handler(play)
    async with served(agent) as url:
        yield await publish(system, url)


async def test_a_task_passes_through_unchanged(system: RunningSystem) -> None:
    said: JsonObject = {"messageId": "s-1", "role": "ROLE_AGENT", "parts": [{"text": "Done."}, FILE]}
    result: JsonObject = {
        "task": {
            "id": "remote-1",
            "contextId": "remote-context",
            "status": {"state": "TASK_STATE_COMPLETED", "message": said},
            "artifacts": ARTIFACTS,
            "metadata": {"cost": 3},
        }
    }
    sent = text("boats", "my-id", metadata={"tone": "dry"}, contextId="mine")
    sent["parts"] = [{"text": "boats"}, {"data": {"n": 1}, "metadata": {"k": "v"}}, FILE]
    async with ScriptedAgent(answered(result)) as agent:
        caller = await publish(system, agent.url, protocol="a2a-1.0")
        task = await caller.send(sent)
    assert agent.calls[0].message == sent
    assert (state_of(task), task["contextId"], task["metadata"]) == ("completed", "mine", {"cost": 3})
    assert task["artifacts"] == ARTIFACTS
    status = task["status"]
    assert isinstance(status, dict)
    assert status["message"] == {**said, "taskId": task["id"], "contextId": "mine"}
    assert await caller.task(task["id"]) == task
    run = await system.get(str(task["id"]))
    assert (run["status"], run["started_by"]) == ("COMPLETED", "a2a")


@pytest.mark.parametrize(("protocol", "version"), [("a2a-1.0", "1.0"), ("a2a-0.3", "0.3")])
async def test_a_bare_message_stays_a_bare_message(
    system: RunningSystem, protocol: str, version: str
) -> None:
    said: JsonObject = {
        "messageId": "s-1",
        "role": "ROLE_AGENT",
        "parts": [{"text": "Hello."}, {"data": {"n": 1}}],
        "metadata": {"tone": "dry"},
    }
    old: JsonObject = {
        **said,
        "kind": "message",
        "role": "agent",
        "parts": [{"kind": "text", "text": "Hello."}, {"kind": "data", "data": {"n": 1}}],
    }
    result: JsonObject = {"message": said} if version == "1.0" else old
    async with ScriptedAgent(answered(result)) as agent:
        caller = await publish(system, agent.url, version, protocol=protocol)
        method = "SendMessage" if version == "1.0" else "message/send"
        write = text if version == "1.0" else text_v03
        found = await caller.call(method, {"message": write("hi", contextId="mine")})
    expected: JsonObject = {**(said if version == "1.0" else old), "contextId": "mine"}
    assert (found["message"] if version == "1.0" else found) == expected


@pytest.mark.parametrize(
    ("protocol", "field"), [("simple-a2a", "input"), ("jsonrpc-call", "params"), ("jsonrpc-2.0", "params")]
)
async def test_dialects_without_messages_get_the_content_of_the_message(
    system: RunningSystem, protocol: str, field: str
) -> None:
    def answer(call: Call) -> Json:
        if protocol == "simple-a2a":
            return simple_success({"n": 3})(call)
        result: Json = {"n": 3} if protocol == "jsonrpc-call" else {"status": "success", "n": 3}
        return {"jsonrpc": "2.0", "id": call.id, "result": result}

    async with ScriptedAgent(answer) as agent:
        # A zone.
        profile: Json = {"profile": {"type": "object"}} if protocol == "jsonrpc-2.0" else None
        caller = await publish(system, agent.url, protocol=protocol, protocol_config=profile)
        task = await caller.send({**text("hi"), "parts": [{"data": {"text": "tides", "n": 1}}]})
    assert state_of(task) == "completed", task
    (part,) = parts_of(task)
    assert isinstance(part["data"], dict)
    assert part["data"]["n"] == 3
    given = agent.calls[0].body[field]
    assert isinstance(given, dict)
    assert (given["text"], given["n"]) == ("tides", 1)


@pytest.mark.parametrize("protocol", ["jsonrpc-2.0", "a2a-0.1", "a2a-0.2", "a2a-0.3"])
async def test_older_versions_of_a2a_answer_with_their_artifacts(
    system: RunningSystem, protocol: str
) -> None:
    async with ScriptedAgent(jsonrpc_task("tides")) as agent:
        caller = await publish(system, agent.url, protocol=protocol)
        task = await caller.send(text("hi", "my-id", metadata={"k": "v"}))
    assert (state_of(task), parts_of(task)) == ("completed", [{"text": "tides"}])
    params = agent.calls[0].body["params"]
    assert isinstance(params, dict)
    holder = agent.calls[0].message if protocol != "a2a-0.1" else params
    assert holder["metadata"] == {"k": "v"}
    if protocol != "a2a-0.1":
        assert holder["messageId"] == "my-id"


async def test_questions_reach_the_caller_and_answers_the_agent(kit: A2ACaller) -> None:
    asking = await kit.send(text("ask"))
    assert (state_of(asking), status_text(asking)) == ("input-required", "Which city?")
    done = await kit.send(text("Rome", "m-2", taskId=asking["id"]))
    assert (done["id"], state_of(done)) == (asking["id"], "completed")
    assert parts_of(done) == [{"text": "Rome it is."}]


async def test_a_failure_and_a_cancellation_pass_through(system: RunningSystem, kit: A2ACaller) -> None:
    failed = await kit.send(text("fail"))
    assert (state_of(failed), status_text(failed)) == ("failed", "No boats today.")
    going = await kit.send(text("wait"), returnImmediately=True)
    assert state_of(await kit.call("CancelTask", {"id": going["id"]})) == "canceled"
    old = A2ACaller(system, "agents/A", "0.3")
    done = await old.call("message/send", {"message": text_v03("tides")})
    assert objects_in(done["artifacts"])[0]["parts"] == [{"kind": "text", "text": "about tides"}]


async def test_a_stream_passes_through_piece_by_piece(system: RunningSystem) -> None:
    gate = asyncio.Event()
    task: JsonObject = {"id": "r-1", "contextId": "c-1"}

    def status(state: str) -> JsonObject:
        return {"statusUpdate": {"taskId": "r-1", "contextId": "c-1", "status": {"state": state}}}

    def piece(words: str, *, append: bool) -> JsonObject:
        artifact: Json = {"artifactId": "a", "parts": [{"text": words}]}
        return {"artifactUpdate": {**task, "artifact": artifact, "append": append}}

    def stream(call: Call) -> Stream:
        working: JsonObject = {"task": {**task, "status": {"state": "TASK_STATE_WORKING"}}}
        wrapped: list[Json] = [
            {"jsonrpc": "2.0", "id": call.id, "result": result}
            for result in (
                working,
                piece("one ", append=False),
                piece("two", append=True),
                status("TASK_STATE_COMPLETED"),
            )
        ]
        return Stream(*wrapped[:2], gate, *wrapped[2:])

    card: JsonObject = {
        "name": "S",
        "description": "d",
        "version": "1",
        "supportedInterfaces": [{"url": "/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "capabilities": {"streaming": True},
        "defaultInputModes": [],
        "defaultOutputModes": [],
        "skills": [],
    }
    async with ScriptedAgent(stream, card=card) as agent:
        caller = await publish(system, agent.url)
        found: list[JsonObject] = []
        async with caller.stream("SendStreamingMessage", {"message": text("go")}) as events:
            async for event in events:
                found.append(event.result)
                if "artifactUpdate" in event.result:
                    gate.set()
    pieces = objects_in([each.get("artifactUpdate") for each in found])
    assert [(objects_in([each["artifact"]])[0]["parts"], each["append"]) for each in pieces] == [
        ([{"text": "one "}], False),
        ([{"text": "two"}], True),
    ]
    last = found[-1]["statusUpdate"]
    assert isinstance(last, dict)
    assert state_of(last) == "completed"


async def test_the_card_has_what_the_record_says(system: RunningSystem) -> None:
    skill: JsonObject = {"id": "t", "name": "Tides", "description": "High tides", "tags": ["sea"]}
    await system.register("Tide Table", "http://127.0.0.1:1/", description="Knows tides.", publish=True)
    await system.register("Full", "http://127.0.0.1:1/", publish={"name": "Full!", "skills": [skill]})
    await system.register("Hidden", "http://127.0.0.1:1/")
    card = await system.call("GET", "//a2a/agents/Tide%20Table/.well-known/agent-card.json")
    assert (card.json["name"], card.json["description"]) == ("Tide Table", "Knows tides.")
    assert objects_in(card.json["supportedInterfaces"])[0]["url"] == f"{system.url}/a2a/agents/Tide%20Table"
    full = await system.call("GET", "//a2a/agents/Full/.well-known/agent-card.json")
    assert (full.json["name"], full.json["skills"]) == ("Full!", [skill])
    hidden = await system.call("GET", "//a2a/agents/Hidden/.well-known/agent-card.json")
    assert hidden.status == 404


async def test_publishing_is_changed_with_the_record(system: RunningSystem) -> None:
    async def card() -> int:
        return (await system.call("GET", "//a2a/agents/A/.well-known/agent-card.json")).status

    await system.register("A", "http://127.0.0.1:1/")
    changes: list[tuple[Json, bool]] = [(True, True), (False, False), ({"name": "B"}, True), (None, False)]
    for change, published in changes:
        changed = await system.call("PATCH", "/agents/A", {"publish": change})
        assert (changed.status, changed.json["publish"]) == (200, change or None)
        assert await card() == (200 if published else 404)
    wrong = await system.call("PATCH", "/agents/A", {"publish": {"skills": [{"id": "x"}]}})
    assert wrong.status == 422
    assert str(objects_in(wrong.json["errors"])[0]["path"]).startswith("publish.skills[")


async def test_lists_of_workflows_leave_out_those_of_published_agents(
    system: RunningSystem, kit: A2ACaller
) -> None:
    await system.save({"name": "mine", "publish": True, "steps": {"only": {"agent": "A"}}})
    task = await kit.send(text("tides"))
    assert [workflow["name"] for workflow in await system.items("/workflows")] == ["mine"]
    run = await system.get(str(task["id"]))
    assert run["workflow"] == {"name": "agents/A", "version": 1}
    found = await system.items("/runs?workflow=agents/A")
    assert [each["id"] for each in found] == [task["id"]]
    cards = (await system.call("GET", "//a2a/catalog")).json
    assert [card["name"] for card in objects_in(cards["items"])] == ["A", "mine"]


async def test_the_catalog_has_pages_of_agents_and_workflows(system: RunningSystem) -> None:
    for name in ("b", "a", "c"):
        skill: JsonObject = {"id": f"s-{name}", "name": name, "description": "d", "tags": ["t", name]}
        await system.register(f"agent-{name}", "http://127.0.0.1:1/", publish={"skills": [skill]})
        await system.save(
            {"name": f"flow-{name}", "publish": {"skills": [skill]}, "steps": {"s": {"agent": "a"}}}
        )

    async def pages(query: str) -> list[list[str]]:
        found: list[list[str]] = []
        cursor: Json = ""
        while cursor is not None:
            following = f"&cursor={cursor}" if cursor else ""
            page = (await system.call("GET", f"//a2a/catalog?{query}{following}")).json
            found.append([str(card["name"]) for card in objects_in(page["items"])])
            cursor = page["next_cursor"]
        return found

    assert await pages("limit=10") == [["agent-a", "agent-b", "agent-c", "flow-a", "flow-b", "flow-c"]]
    by_two = await pages("limit=2")
    assert [name for page in by_two for name in page] == (await pages("limit=10"))[0]
    assert max(map(len, by_two)) == 2
    assert await pages("limit=10&tag=b") == [["agent-b", "flow-b"]]
    assert await pages("limit=10&skill=s-c") == [["agent-c", "flow-c"]]


async def test_the_installation_has_a_card_that_names_the_catalog(system: RunningSystem) -> None:
    await system.register("A", "http://127.0.0.1:1/", publish=True)
    await system.save({"name": "b", "publish": {"name": "B!"}, "steps": {"s": {"agent": "A"}}})
    found = await system.call("GET", "//.well-known/agent-card.json")
    again = {"If-None-Match": found.headers["ETag"]}
    assert (await system.call("GET", "//.well-known/agent-card.json", headers=again)).status == 304
    assert [(skill["id"], skill["name"]) for skill in objects_in(found.json["skills"])] == [
        ("agents/A", "A"),
        ("workflows/b", "B!"),
    ]
    capabilities = found.json["capabilities"]
    assert isinstance(capabilities, dict)
    (extension,) = objects_in(capabilities["extensions"])
    assert extension["params"] == {"url": f"{system.url}/a2a/catalog"}
    assert (await system.call("POST", "//.well-known/agent-card.json", {})).status == 405


async def test_the_first_messages_of_an_agent_may_come_at_the_same_time(
    system: RunningSystem, kit: A2ACaller
) -> None:
    tasks = await asyncio.gather(*(kit.send(text("tides", f"m-{number}")) for number in range(10)))
    assert {state_of(task) for task in tasks} == {"completed"}
    runs = await system.items("/runs?workflow=agents/A")
    assert {str(run["id"]) for run in runs} == {str(task["id"]) for task in tasks}
    assert {str(run["workflow"]) for run in runs} == {str({"name": "agents/A", "version": 1})}


async def card_of(system: RunningSystem) -> JsonObject:
    return (await system.call("GET", "//a2a/agents/A/.well-known/agent-card.json")).json


async def test_a_card_says_what_the_card_of_the_agent_says(system: RunningSystem) -> None:
    agent = Agent("Kit", description="Plays with words.", skills=[SKILL])
    agent.handler(play)
    async with served(agent) as url:
        caller = await publish(system, url)
        # By then it is known what the agent speaks.
        await caller.send(text("hi"))
        card = await card_of(system)
        await system.call("PATCH", "/agents/A", {"description": "Ours.", "skills": ["own"]})
        changed = await card_of(system)
    assert card["description"] == "Plays with words."
    assert card["skills"] == [SKILL]
    assert changed["description"] == "Ours."
    assert [(skill["id"], skill["description"]) for skill in objects_in(changed["skills"])] == [
        ("own", "Ours.")
    ]


async def test_templates_are_for_workflows_alone(system: RunningSystem) -> None:
    registration: JsonObject = {"name": "A", "url": "http://127.0.0.1:1", "publish": {"artifacts": {"a": 1}}}
    refused = await system.call("POST", "/agents", registration)
    assert refused.status == 422
    assert b"publish a workflow that calls the agent" in refused.body
