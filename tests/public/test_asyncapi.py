"""
The AsyncAPI document, as checked in, and the real encoders held to it.

Write the file again with: make docs
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.asyncapi_messages import at, matching_messages, validator

from trunkline.api.documents.asyncapi import build_asyncapi
from trunkline.clock import Instant
from trunkline.jsontypes import Json, JsonObject, decode, encode
from trunkline.machine.events import Payload, RunCompleted, RunStarted, StepProgress, encode_event
from trunkline.messages import (
    AgentResult,
    AgentTask,
    CancelTask,
    OutgoingMessage,
    Progress,
    Question,
    StepError,
    TopicNames,
    TraceContext,
)
from trunkline.messages.cloudevents import event_message
from trunkline.messages.codec import MAX_VALUE_BYTES, encode_result, encode_task
from trunkline.retry_policy import RetryPolicy
from trunkline.testing import running_system

FILE = Path(__file__).with_name("asyncapi.json")
NAMES = TopicNames()


def checked_in() -> JsonObject:
    document = decode(FILE.read_bytes())
    assert isinstance(document, dict)
    return document


def fitting(channel: str, message: OutgoingMessage) -> list[str]:
    return matching_messages(checked_in(), channel, dict(message.headers), message.value)


TASK = AgentTask(
    task_id="r/s/0",
    input_data={"text": "ü"},
    run_id="r",
    step="s",
    agent="A",
    timeout_ms=1,
    pool="p",
    trace=TraceContext("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "congo=1"),
)
SAID = (
    Progress(kind="status", text="looking it up"),
    Progress(kind="artifact", text="Once", artifact_id="a", name="story", append=True, parts=[{"n": 1}]),
    Progress(kind="called_again", text="no answer came"),
)
RESULT = AgentResult(
    task_id="r/s/0",
    run_id="r",
    step="s",
    attempt=1,
    status="error",
    at=Instant(1_767_225_600_000_000),
    error=StepError(code="agent_http_error", message="no", http_status=500, detail=[1]),
    question=Question(kind="input", text="which?"),
    retry=RetryPolicy(max_attempts=2),
    warnings=["odd"],
)

NEWS = AgentResult(
    task_id="r/s/0",
    run_id="r",
    step="s",
    attempt=1,
    status="progress",
    at=Instant(1_767_225_600_000_000),
    progress=list(SAID),
    number="1",
)


def run_event(event_type: str, data: bytes) -> OutgoingMessage:
    return event_message(
        NAMES.events, run_id="r", workflow="w/1", seq=1, event_type=event_type, at=Instant(1), data=data
    )


def start_run(value: Json) -> OutgoingMessage:
    return OutgoingMessage(NAMES.commands, "key", encode(value))


MESSAGES = [
    ("tasks", "AgentTask", encode_task(TASK, NAMES.tasks)),
    ("tasks", "AgentTask", encode_task(AgentTask(task_id="t", run_id="r", step="s", agent="A"), NAMES.tasks)),
    ("tasksOfPool", "AgentTask", encode_task(TASK, NAMES.tasks_of("p"))),
    ("tasks", "CancelTask", encode_task(CancelTask(task_id="t", attempt=1, run_id="r"), NAMES.tasks)),
    (
        "tasks",
        "TaskReference",
        encode_task(AgentTask(task_id="t", run_id="r", input_data="x" * MAX_VALUE_BYTES), NAMES.tasks),
    ),
    ("results", "AgentResult", encode_result(RESULT, NAMES.results)),
    ("results", "AgentResult", encode_result(NEWS, NAMES.results)),
    ("events", "RunEvent", run_event("StepProgress", encode_event(StepProgress("s", 1, SAID)))),
    ("events", "RunEvent", run_event("RunStarted", encode_event(RunStarted("c-1")))),
    ("events", "RunEvent", run_event("RunCompleted", encode_event(RunCompleted(Payload(b"null"))))),
    ("commands", "StartRun", start_run({"workflow": "w"})),
    ("commands", "StartRun", start_run({"workflow": "w", "version": 1, "input": [1], "correlation_id": "c"})),
]


def test_the_document_is_the_one_that_is_checked_in() -> None:
    assert decode(encode(build_asyncapi(NAMES))) == checked_in()


@pytest.mark.anyio
async def test_the_document_is_served_with_the_names_of_the_settings(tmp_path: Path) -> None:
    async with running_system(
        tmp_path / "data", tasks_topic="acme.tasks", commands_topic="acme.orders"
    ) as system:
        served = (await system.call("GET", "//asyncapi.json")).json
    assert at(served, "channels", "tasks")["address"] == "acme.tasks"
    assert at(served, "channels", "tasksOfPool")["address"] == "acme.tasks.{pool}"
    assert at(served, "channels", "commands")["address"] == "acme.orders"


@pytest.mark.parametrize(("channel", "name", "message"), MESSAGES)
def test_what_is_really_sent_is_what_the_document_says(
    channel: str, name: str, message: OutgoingMessage
) -> None:
    described = at(checked_in(), "components", "messages", name)
    validator(checked_in(), at(described, "payload")).validate(decode(message.value))
    assert name in fitting(channel, message)


@pytest.mark.parametrize(
    ("channel", "message"),
    [
        ("tasks", OutgoingMessage(NAMES.tasks, "r", encode(TASK))),
        ("results", encode_task(TASK, NAMES.results)),
        ("events", run_event("RunExploded", b"{}")),
        ("events", run_event("RunStarted", b"[]")),
        ("commands", start_run({"workflow": ""})),
        ("commands", start_run({"workflow": "w", "inptu": {}})),
        ("commands", start_run({"workflow": "w", "correlation_id": "a b"})),
    ],
)
def test_what_does_not_belong_on_a_topic_is_not_described_for_it(
    channel: str, message: OutgoingMessage
) -> None:
    assert fitting(channel, message) == []


def test_every_operation_and_message_leads_somewhere() -> None:
    document = checked_in()
    for operation in at(document, "operations").values():
        assert isinstance(operation, dict)
        at(document, *str(at(operation, "channel")["$ref"]).removeprefix("#/").split("/"))
    for channel in at(document, "channels").values():
        assert isinstance(channel, dict)
        for message in at(channel, "messages").values():
            assert isinstance(message, dict)
            at(document, *str(message["$ref"]).removeprefix("#/").split("/"))
