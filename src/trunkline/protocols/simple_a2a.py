"""
Simple A2A, the smallest dialect.

    request  {"task_id": "…", "input": …}
    answer   {"task_id": "…", "status": "success", "output": …, "error": null}
             {"task_id": "…", "status": "error", "output": null, "error": "…"}

An answer without `status` cannot be read; another `task_id` in it is noted and replaced by ours. There is
nothing to ask again or to cancel: an agent answers when it is done.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import UNSET, Raw, UnsetType

from trunkline.errors import Finding
from trunkline.jsontypes import Json, JsonObject, decode, encode
from trunkline.messages import AgentTask
from trunkline.protocols.answer_json import JsonReader, NotJson, json_kind, parse
from trunkline.protocols.base import Failed, Outcome, ProtocolAdapter, ProtocolTranslationError, Succeeded
from trunkline.protocols.config import TextOption, check_config
from trunkline.protocols.outcomes import step_error, to_internal_format
from trunkline.protocols.outputs import OutputMode, encode_output, output_from_value, output_mode_for

PROTOCOL = "simple-a2a"
OPTIONS = {"output_mode": TextOption(default="full", choices=("full", "data"))}

_NULL = Raw(b"null")
# Codes with which a JSON-RPC server says that it did not understand a request at all.
_NOT_UNDERSTOOD = frozenset({-32700, -32600, -32601, -32602})


class SimpleAnswer(msgspec.Struct):
    status: Raw | UnsetType = UNSET
    task_id: Raw = _NULL
    output: Raw = _NULL
    error: Raw = _NULL


class SimpleA2AAdapter(ProtocolAdapter):
    """Simple A2A."""

    def __init__(self, output_mode: OutputMode = "full") -> None:
        self.output_mode: OutputMode = output_mode

    @classmethod
    def validate_config(cls, config: Mapping[str, Json]) -> list[Finding]:
        return check_config(OPTIONS, config)

    def get_protocol_name(self) -> str:
        return PROTOCOL

    def malformed_symptom(self) -> str:
        return "malformed Simple A2A response"

    def to_agent_request(self, task: AgentTask) -> JsonObject:
        return {"task_id": task.task_id, "input": task.input_data}

    def from_agent_response(self, response: JsonObject, task_id: str) -> JsonObject:
        return to_internal_format(self.decode_body(encode(response), AgentTask(task_id=task_id)), task_id)

    def decode_body(self, body: bytes, task: AgentTask) -> Outcome:
        answer = _read(body)
        if answer.status is UNSET:
            raise _without_status(body)
        warnings = _task_id_notes(answer, task.task_id)
        status = decode(answer.status)
        match status:
            case "success":
                return self._succeeded(answer, task, warnings)
            case "error":
                return _failed(answer, warnings)
            case other:
                raise ProtocolTranslationError(
                    f"Unsupported status: {_words(other)}. An answer's 'status' is 'success' or 'error'",
                    PROTOCOL,
                    "response",
                    body,
                    fix="Change the agent to respond with status 'success' or 'error'.",
                )

    def _succeeded(self, answer: SimpleAnswer, task: AgentTask, warnings: list[str]) -> Outcome:
        error = decode(answer.error)
        if error:
            warnings.append(f"The status is success, but 'error' is set: {_words(error)}")
        shaped = output_from_value(answer.output)
        mode = output_mode_for(task, self.output_mode)
        output = bytes(_NULL) if shaped is None else encode_output(shaped, mode, warnings)
        return Succeeded(output=output, warnings=tuple(warnings))


_answers = JsonReader(SimpleAnswer)


def _read(body: bytes) -> SimpleAnswer:
    try:
        return _answers.read(body)
    except msgspec.ValidationError as exc:
        # Every field accepts any value, so the answer cannot be an object.
        raise NotJson(f"The answer is {json_kind(parse(body))}, not an object") from exc


def _task_id_notes(answer: SimpleAnswer, task_id: str) -> list[str]:
    got = decode(answer.task_id)
    if got == task_id:
        return []
    return [f"Response task_id mismatch: expected {task_id}, got {_words(got)}"]


def _failed(answer: SimpleAnswer, warnings: list[str]) -> Failed:
    error = decode(answer.error)
    message = "The agent reported an error without a message" if error in (None, "") else _words(error)
    return Failed(
        error=step_error("agent_reported_error", message, detail=decode(answer.output)),
        warnings=tuple(warnings),
    )


def _words(value: Json) -> str:
    if isinstance(value, dict) and isinstance(value.get("message"), str):
        return str(value["message"])
    return value if isinstance(value, str) else encode(value).decode()


def _without_status(body: bytes) -> ProtocolTranslationError:
    response = parse(body)
    fix = "Change the agent to respond with task_id, status, output and error."
    speaks_jsonrpc = isinstance(response, dict) and "jsonrpc" in response
    if speaks_jsonrpc:
        fix = "The agent responds in JSON-RPC. Register it with the protocol jsonrpc-2.0, or with auto."
    return ProtocolTranslationError(
        "Response missing 'status' field",
        PROTOCOL,
        "response",
        response,
        fix=fix,
        other_dialect=speaks_jsonrpc and _refused_by_jsonrpc(response),
    )


def _refused_by_jsonrpc(response: Json) -> bool:
    error = response.get("error") if isinstance(response, dict) else None
    return isinstance(error, dict) and error.get("code") in _NOT_UNDERSTOOD
