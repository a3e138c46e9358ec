"""What a handler gets and gives, in each dialect."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator
from dataclasses import dataclass

import pytest
from tests.unit.agentkit.asgi import call, living, post, result_of
from tests.unit.agentkit.versions import V1, VERSIONS, Version, parts, texts, words

from trunkline.agentkit import Agent, AgentError, Artifact, File, Message, Question, Rejected, Task
from trunkline.jsontypes import Json, JsonObject

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.name),
]


def agent_of(handler: object) -> Agent:
    agent = Agent("Test")
    assert callable(handler)
    agent.handler(handler)
    return agent


async def sent(agent: Agent, version: Version, text: str = "tides") -> JsonObject:
    return version.task(await result_of(agent, version.send, version.params(text)))


def plain(task: Task) -> str:
    return f"about {task.text}"


async def waiting(task: Task) -> str:
    await asyncio.sleep(0)
    return f"about {task.text}"


async def yielding(task: Task) -> AsyncGenerator[str]:
    yield "about "
    yield task.text


@pytest.mark.parametrize("handler", [plain, waiting, yielding])
async def test_every_form_of_a_handler_answers(version: Version, handler: object) -> None:
    task = await sent(agent_of(handler), version)
    assert version.state(task) == "completed"
    assert texts(task) == ["about tides"]


async def test_a_function_that_blocks_does_so_in_a_thread(version: Version) -> None:
    names: list[str] = []

    def answer(task: Task) -> str:
        names.append(threading.current_thread().name)
        return task.text

    await sent(agent_of(answer), version)
    assert names[0] != threading.main_thread().name


@dataclass
class Score:
    value: int


GIVEN: list[tuple[object, JsonObject]] = [
    ({"score": 3}, {"data": {"score": 3}}),
    (Score(3), {"data": {"value": 3}}),
    ("half a \ud800 pair", {"text": "half a ? pair"}),
    (Artifact("notes", "text"), {"text": "text"}),
    (Artifact("notes", data={"a": 1}), {"data": {"a": 1}}),
]


@pytest.mark.parametrize(("given", "part"), GIVEN, ids=["dict", "dataclass", "surrogate", "text", "data"])
async def test_what_is_given_is_the_part_of_an_artifact(
    version: Version, given: object, part: JsonObject
) -> None:
    def answer(task: Task) -> object:
        return given

    task = await sent(agent_of(answer), version)
    assert version.state(task) == "completed"
    found = dict(parts(task)[0])
    found.pop("kind", None)
    assert found == part


async def test_files_and_several_artifacts_come_in_their_order(version: Version) -> None:
    def answer(task: Task) -> list[Artifact]:
        file = File(content=b"\x00\xff", media_type="image/png", name="a.png")
        return [Artifact("picture", file=file), Artifact("link", file=File(url="https://a.example/b"))]

    task = await sent(agent_of(answer), version)
    first, second = parts(task)
    if version is V1:
        assert first == {"raw": "AP8=", "mediaType": "image/png", "filename": "a.png"}
        assert second == {"url": "https://a.example/b"}
    else:
        assert first["file"] == {"bytes": "AP8=", "mimeType": "image/png", "name": "a.png"}
        assert second["file"] == {"uri": "https://a.example/b"}


INPUTS: list[tuple[str, list[JsonObject], JsonObject | None, str, Json]] = [
    ("text", [{"text": "tides"}], None, "tides", None),
    ("two texts", [{"text": "tides"}, {"text": "of Rome"}], None, "tides\nof Rome", None),
    ("data", [{"data": {"query": "tides", "n": 2}}], None, "tides", {"query": "tides", "n": 2}),
    ("text and data", [{"text": "do it"}, {"data": {"n": 2}}], None, "do it", {"n": 2}),
    ("JSON text", [{"text": '{"n": 2}'}], None, '{"n": 2}', {"n": 2}),
    (
        "whole input as JSON",
        [{"text": '{"text": "tides", "n": 2}'}],
        None,
        "tides",
        {"text": "tides", "n": 2},
    ),
    ("a query as JSON", [{"text": '{"query": "tides"}'}], None, "tides", {"query": "tides"}),
    (
        "whole input next to a text that is JSON",
        [{"text": '{"a": 1}'}],
        {"text": '{"a": 1}', "n": 2},
        '{"a": 1}',
        {"text": '{"a": 1}', "n": 2},
    ),
    ("looks like JSON", [{"text": "{n}"}], None, "{n}", None),
    (
        "whole input next to",
        [{"text": "tides"}],
        {"text": "tides", "n": 2},
        "tides",
        {"text": "tides", "n": 2},
    ),
    ("other metadata", [{"text": "tides"}], {"trace": "1"}, "tides", None),
]


@pytest.mark.parametrize(
    ("_", "sent_parts", "metadata", "text", "data"), INPUTS, ids=[row[0] for row in INPUTS]
)
async def test_a_handler_reads_text_and_data(
    version: Version, _: str, sent_parts: list[JsonObject], metadata: Json, text: str, data: Json
) -> None:
    seen: list[Task] = []
    message = version.message(*sent_parts, metadata=metadata)
    await result_of(agent_of(seen.append), version.send, {"message": message})
    assert (seen[0].text, seen[0].data) == (text, data)
    assert seen[0].input == (text if data is None else data)


async def test_an_error_of_the_agent_is_a_failed_task_with_its_words(version: Version) -> None:
    def answer(task: Task) -> None:
        raise AgentError("No such topic.")

    task = await sent(agent_of(answer), version)
    assert (version.state(task), words(task)) == ("failed", "No such topic.")


async def test_a_refusal_is_a_rejected_task(version: Version) -> None:
    async def answer(task: Task) -> None:
        raise Rejected("Not for me.")

    task = await sent(agent_of(answer), version)
    assert (version.state(task), words(task)) == ("rejected", "Not for me.")


def stops(task: Task) -> None:
    raise StopIteration


def exits(task: Task) -> None:
    raise SystemExit("canary")


def breaks(task: Task) -> None:
    raise KeyError("canary")


def gives_no_json(task: Task) -> object:
    return {"a": object()}


async def breaks_between(task: Task) -> AsyncGenerator[str]:
    yield "a beginning"
    raise KeyError("canary")


@pytest.mark.parametrize("handler", [stops, exits, breaks, gives_no_json, breaks_between])
async def test_a_mistake_in_a_handler_is_for_the_log_and_not_for_the_caller(
    version: Version, handler: object, caplog: pytest.LogCaptureFixture
) -> None:
    task = await sent(agent_of(handler), version)
    assert version.state(task) == "failed"
    assert words(task) == "The agent failed. See its log for the reason."
    assert "canary" not in str(task)
    assert "Traceback" in caplog.text


async def asks_in_between(task: Task) -> AsyncGenerator[object, Message]:
    reply = yield Question("Which city?")
    yield f"{task.text} in {reply.text}"


def asks_and_is_called_again(task: Task) -> object:
    if not task.history:
        return Question("Which city?")
    return f"{task.history[0].text} in {task.text}"


@pytest.mark.parametrize("handler", [asks_in_between, asks_and_is_called_again])
async def test_a_question_waits_for_its_reply(version: Version, handler: object) -> None:
    agent = agent_of(handler)
    asking = await sent(agent, version)
    assert (version.state(asking), words(asking)) == ("input-required", "Which city?")
    reply = version.params("Rome", "m-2", taskId=asking["id"], contextId=asking["contextId"])
    answer = await call(agent, version.send, reply)
    assert isinstance(answer["result"], dict)
    done = version.task(answer["result"])
    assert done["id"] == asking["id"]
    assert texts(done) == ["tides in Rome"]
    assert await call(agent, version.send, reply) == answer


async def test_a_conversation_goes_on_in_the_next_task(version: Version) -> None:
    def answer(task: Task) -> str:
        return " | ".join([*(f"{said.role}: {said.text}" for said in task.history), task.text])

    agent = agent_of(answer)
    first = await sent(agent, version)
    params = version.params("and then", "m-2", contextId=first["contextId"])
    second = version.task(await result_of(agent, version.send, params))
    assert second["id"] != first["id"]
    assert texts(second) == ["user: tides | agent: tides | and then"]


async def test_simple_a2a_gets_the_same_answer(version: Version) -> None:
    agent = agent_of(plain)
    theirs = texts(await sent(agent, version))[0]
    answer = await post(agent, {"task_id": "t-1", "input": {"query": "tides"}})
    assert answer.status == 200
    assert answer.json == {"task_id": "t-1", "status": "success", "output": {"text": theirs}, "error": None}


async def test_what_still_runs_ends_with_the_server(version: Version) -> None:
    ended = asyncio.Event()

    async def answer(task: Task) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with living(agent_of(answer)) as agent:
        task = version.task(await result_of(agent, version.send, version.at_once(version.params())))
        assert version.state(task) == "submitted"
        await asyncio.sleep(0)
    assert ended.is_set()
