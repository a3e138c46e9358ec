"""Simple A2A beyond what the golden files show."""

from __future__ import annotations

import pytest

from trunkline.jsontypes import Json, JsonObject, decode, encode
from trunkline.messages import AgentTask
from trunkline.protocols import AgentAnswer, Failed, ProtocolTranslationError, SimpleA2AAdapter, Succeeded


def answered(body: JsonObject, status: int = 200) -> AgentAnswer:
    return AgentAnswer(status=status, headers={}, body=encode(body))


@pytest.mark.parametrize("value", [{}, "", None])
def test_empty_inputs_are_sent_as_they_are(value: Json) -> None:
    request = SimpleA2AAdapter().to_agent_request(AgentTask(task_id="t", input_data=value))
    assert request == {"task_id": "t", "input": value}


@pytest.mark.parametrize(
    ("value", "output"), [({}, {"data": {}}), ("", {"text": ""}), (None, None), ([], {"data": []})]
)
def test_empty_outputs_are_success(value: Json, output: Json) -> None:
    outcome = SimpleA2AAdapter().decode(
        answered({"task_id": "t", "status": "success", "output": value}), AgentTask(task_id="t")
    )
    assert isinstance(outcome, Succeeded)
    assert decode(outcome.output) == output


def test_the_seeds_method_gives_the_internal_format() -> None:
    response: JsonObject = {"task_id": "t", "status": "success", "output": {"result": "x"}, "error": None}
    assert SimpleA2AAdapter().from_agent_response(response, "t") == {
        "task_id": "t",
        "status": "success",
        "output": {"text": "x", "data": {"result": "x"}},
        "error": None,
    }


def test_an_error_leaves_no_output_in_the_internal_format() -> None:
    response: JsonObject = {"task_id": "t", "status": "error", "output": {"half": 1}, "error": "Disk full"}
    assert SimpleA2AAdapter().from_agent_response(response, "t") == {
        "task_id": "t",
        "status": "error",
        "output": None,
        "error": "Disk full",
    }


def test_our_task_id_replaces_another_one() -> None:
    response: JsonObject = {"task_id": "other", "status": "success", "output": 1}
    assert SimpleA2AAdapter().from_agent_response(response, "t")["task_id"] == "t"


def test_a_missing_status_is_raised_with_the_seeds_words() -> None:
    with pytest.raises(ProtocolTranslationError) as raised:
        SimpleA2AAdapter().from_agent_response({"task_id": "t"}, "t")
    assert str(raised.value) == "Response missing 'status' field"
    assert (raised.value.protocol, raised.value.direction) == ("simple-a2a", "response")
    assert raised.value.original_data == {"task_id": "t"}


def test_there_is_nothing_to_ask_again_or_to_cancel() -> None:
    adapter, task = SimpleA2AAdapter(), AgentTask(task_id="t")
    assert adapter.encode_poll(task, "r") is None
    assert adapter.encode_cancel(task, "r") is None


def test_an_error_with_an_http_status_keeps_both() -> None:
    body: JsonObject = {"task_id": "t", "status": "error", "output": None, "error": "boom"}
    outcome = SimpleA2AAdapter().decode(answered(body, 503), AgentTask(task_id="t"))
    assert isinstance(outcome, Failed)
    assert (outcome.error.message, outcome.error.http_status) == ("boom", 503)


def test_success_with_an_error_status_is_taken_with_a_warning() -> None:
    outcome = SimpleA2AAdapter().decode(
        answered({"task_id": "t", "status": "success", "output": 1}, 500), AgentTask(task_id="t")
    )
    assert isinstance(outcome, Succeeded)
    assert outcome.warnings == ("The agent answered HTTP 500 with a body that says success",)
