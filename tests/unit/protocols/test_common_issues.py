"""The eight common issues of the migration guide, each with the message that operators see, and its fix."""

from __future__ import annotations

import pytest

from trunkline.jsontypes import Json, encode
from trunkline.messages import AgentTask, StepError
from trunkline.protocols import (
    AgentAnswer,
    Failed,
    JsonRpc2Adapter,
    ProtocolTranslationError,
    Succeeded,
    failure_of,
)


def outcome_of(body: Json, status: int = 200) -> Succeeded | Failed:
    answer = AgentAnswer(status=status, headers={}, body=encode(body))
    try:
        outcome = JsonRpc2Adapter().decode(answer, AgentTask(task_id="t", input_data={"query": "q"}))
    except ProtocolTranslationError as exc:
        return failure_of(exc)
    assert isinstance(outcome, Succeeded | Failed)
    return outcome


def error_of(body: Json, status: int = 200) -> StepError:
    outcome = outcome_of(body, status)
    assert isinstance(outcome, Failed)
    return outcome.error


def result(value: Json) -> Json:
    return {"jsonrpc": "2.0", "id": "t", "result": value}


@pytest.mark.parametrize("code", [-32600, -32602])
def test_1_input_extraction_fails(code: int) -> None:
    error = error_of({"jsonrpc": "2.0", "id": "t", "error": {"code": code, "message": "no input"}}, 400)
    assert "can't parse its input" in error.fix
    assert "params.message.parts" in error.fix


@pytest.mark.parametrize("missing", ["jsonrpc", "id", "result"])
def test_2_response_missing_required_fields(missing: str) -> None:
    body: dict[str, Json] = {"jsonrpc": "2.0", "id": "t", "result": {"status": {"state": "completed"}}}
    del body[missing]
    error = error_of(body)
    assert "malformed JSON-RPC response" in error.message
    assert missing in error.message
    assert missing in error.fix


@pytest.mark.parametrize("artifacts", [[], [{}], [{"parts": []}]])
def test_3_empty_artifacts(artifacts: Json) -> None:
    outcome = outcome_of(result({"status": {"state": "completed"}, "artifacts": artifacts}))
    assert isinstance(outcome, Succeeded)
    (warning,) = outcome.warnings
    assert "no output from the response" in warning
    assert "at least one artifact with parts" in warning


@pytest.mark.parametrize("state", ["success", "done", "ok"])
def test_4_status_state_not_recognized(state: str) -> None:
    error = error_of(result({"status": {"state": state}}))
    assert error.message.startswith(f"Task state: {state}")
    assert "Status state not recognized" in error.message
    assert "'completed'" in error.fix


def test_5_errors_in_result_instead_of_error() -> None:
    error = error_of(result({"status": {"state": "failed"}, "error": "Disk full"}))
    assert "Disk full" in error.message
    assert "'result' instead of 'error'" in error.message
    assert "'error' object" in error.fix


def test_6_history_items_that_miss_role_or_parts() -> None:
    outcome = outcome_of(result({"status": {"state": "completed"}, "history": [{"text": "said"}]}))
    assert isinstance(outcome, Succeeded)
    assert "Can't extract output from history: item 0 is missing 'role' and 'parts'" in outcome.warnings


@pytest.mark.parametrize(
    ("status", "body"), [(400, {"error": "Content-Type must be application/json"}), (415, "unsupported")]
)
def test_7_content_type_issues(status: int, body: Json) -> None:
    error = error_of(body, status)
    assert "can't parse it" in error.fix
    assert "application/json" in error.fix


def test_8_id_mismatch() -> None:
    error = error_of({"jsonrpc": "2.0", "id": "other", "result": {"status": {"state": "completed"}}})
    assert error.code == "agent_response_id_mismatch"
    assert error.message == "Response ID mismatch: expected t, got other"
    assert "returns the id of the request" in error.fix
