"""
A2A 0.1, as old agents speak it: `a2a-0.1`; with an address for each method: `a2a-0.1-paths`.

    request  {"jsonrpc": "2.0", "id": "<task id>", "method": "tasks/send", "params": {
                 "id": "<task id>", "sessionId": "…", "metadata": {…},
                 "message": {"role": "user", "parts": [{"type": "text", "text": "…"}]}}}
             {… "method": "tasks/get" | "tasks/cancel", "params": {"id": "…"}}
    answer   {"jsonrpc": "2.0", "id": "<task id>", "result": {"id", "sessionId", "status": {"state", "message"},
                 "artifacts": [{"name", "parts": [{"type": "text", "text": "…"}]}], "metadata"}}

With `a2a-0.1-paths` the same goes to `<url>/tasks/send`, `/tasks/get` and `/tasks/cancel`: so do agents made with
python-a2a take it, who also put what they say into `message.content` in place of `message.parts`.

The caller names the task, so an agent that may have it already can be asked by that name. Of parts that a step
spells out, texts, data and files by bytes or address are sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from msgspec import UNSET, Raw
from msgspec.structs import replace

from trunkline.errors import Finding
from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.messages import AgentTask, Question
from trunkline.protocols.base import (
    AgentAnswer,
    AgentRequest,
    Failed,
    Interrupted,
    Outcome,
    ProtocolAdapter,
    ProtocolTranslationError,
    Succeeded,
    Working,
)
from trunkline.protocols.config import BATCH, ProtocolOption, TextOption, check_config
from trunkline.protocols.json_rpc.envelope import (
    RpcError,
    failed_by_rpc_error,
    parse_response,
    raw_result,
    rpc_request,
)
from trunkline.protocols.outcomes import DEFAULT_SEND_OPTIONS, SendOptions, step_error, to_internal_format
from trunkline.protocols.outputs import (
    OutputMode,
    StepOutput,
    encode_output,
    output_mode_for,
    text_and_data,
    usage_in,
)
from trunkline.protocols.parts import (
    DataPart,
    FilePart,
    MessagePart,
    TextPart,
    fields_other_than_parts,
    parts_in,
    read_parts,
)

PROTOCOL = "a2a-0.1"
PATHS_PROTOCOL = "a2a-0.1-paths"
OPTIONS: dict[str, ProtocolOption] = {
    "output_mode": TextOption(default="full", choices=("full", "data")),
    "batch": BATCH,
}

_PENDING = frozenset({"submitted", "working"})
_ASKS = {"input-required": "input", "auth-required": "auth"}
_NO_TASK = -32001
_FIX_BY_CODE = {
    -32601: "The agent does not support the method. It may use a later version of A2A: "
    "register it with the protocol auto.",
    -32001: "The agent no longer has the task. Start the run again.",
}
_OTHER_DIALECT = frozenset({-32601})


class A2AV01Adapter(ProtocolAdapter):
    """A2A 0.1 over JSON-RPC."""

    def __init__(self, *, output_mode: OutputMode = "full") -> None:
        self.output_mode: OutputMode = output_mode

    @classmethod
    def validate_config(cls, config: Mapping[str, Json]) -> list[Finding]:
        return check_config(OPTIONS, config)

    def get_protocol_name(self) -> str:
        return PROTOCOL

    def malformed_symptom(self) -> str:
        return "malformed JSON-RPC response"

    def to_agent_request(self, task: AgentTask) -> JsonObject:
        params: JsonObject = {"id": task.remote_task_id or task.task_id}
        if task.context_id is not None:
            params["sessionId"] = task.context_id
        data = task.input_data
        if task.message is not None:
            forwarded: JsonObject = {**(task.message.metadata or {}), "parts": [*task.message.parts]}
            data = forwarded
        parts, metadata = _message_content(data)
        params["message"] = {"role": "user", "parts": parts}
        if metadata:
            params["metadata"] = metadata
        return rpc_request("tasks/send", task.task_id, params)

    def from_agent_response(self, response: JsonObject, task_id: str) -> JsonObject:
        return to_internal_format(self.decode_body(encode(response), AgentTask(task_id=task_id)), task_id)

    def decode_body(self, body: bytes, task: AgentTask) -> Outcome:
        answer = parse_response(body, task.task_id, PROTOCOL)
        if isinstance(answer, RpcError):
            return failed_by_rpc_error(answer, _FIX_BY_CODE, _OTHER_DIALECT, _NO_TASK)
        result = answer.value if isinstance(answer.value, dict) else {}
        return _outcome(result, raw_result(body), task, output_mode_for(task, self.output_mode))

    def encode_poll(self, task: AgentTask, remote_task_id: str) -> AgentRequest | None:
        return _task_call("tasks/get", task, remote_task_id)

    def encode_cancel(self, task: AgentTask, remote_task_id: str) -> AgentRequest | None:
        return _task_call("tasks/cancel", task, remote_task_id)

    def encode_find(self, task: AgentTask) -> AgentRequest | None:
        return _task_call("tasks/get", task, task.remote_task_id or task.task_id)

    def decode_find(self, answer: AgentAnswer, task: AgentTask) -> str | None:
        outcome = self.decode(answer, task)
        if not isinstance(outcome, Failed) or outcome.error.code == "agent_task_failed":
            return outcome.remote_task_id
        if outcome.error.jsonrpc_code == _NO_TASK:
            return None
        error = outcome.error
        raise ProtocolTranslationError(
            error.message, PROTOCOL, "response", answer.body, code=error.code, fix=error.fix
        )


class A2AV01PathsAdapter(A2AV01Adapter):
    """A2A 0.1 over JSON-RPC, each method at an address of its own."""

    needs_http = True

    def get_protocol_name(self) -> str:
        return PATHS_PROTOCOL

    def encode(self, task: AgentTask, options: SendOptions = DEFAULT_SEND_OPTIONS) -> AgentRequest:
        return replace(super().encode(task, options), path="/tasks/send")

    def encode_poll(self, task: AgentTask, remote_task_id: str) -> AgentRequest:
        return replace(_task_call("tasks/get", task, remote_task_id), path="/tasks/get")

    def encode_cancel(self, task: AgentTask, remote_task_id: str) -> AgentRequest:
        return replace(_task_call("tasks/cancel", task, remote_task_id), path="/tasks/cancel")

    def encode_find(self, task: AgentTask) -> AgentRequest:
        return self.encode_poll(task, task.remote_task_id or task.task_id)


def _task_call(method: str, task: AgentTask, remote_task_id: str) -> AgentRequest:
    return AgentRequest(body=encode(rpc_request(method, task.task_id, {"id": remote_task_id})))


def _message_content(data: Json) -> tuple[list[Json], JsonObject]:
    """The parts of the message, and the fields that are sent in addition so that nothing is lost."""
    listed = parts_in(data)
    if listed is not None:
        return [_encode_part(part) for part in read_parts(listed, PROTOCOL)], fields_other_than_parts(data)
    if isinstance(data, dict):
        for name in ("text", "query"):
            value = data.get(name)
            if value:
                return [_text_part(value)], data
    return [_text_part(data)], {}


def _text_part(value: Json) -> JsonObject:
    return {"type": "text", "text": value if isinstance(value, str) else encode(value).decode()}


def _encode_part(part: MessagePart) -> JsonObject:
    match part:
        case TextPart():
            written: JsonObject = {"type": "text", "text": part.text}
        case DataPart():
            is_object = isinstance(part.data, dict)
            written = {"type": "data", "data": part.data} if is_object else _text_part(part.data)
        case FilePart():
            content: JsonObject = {"uri": part.url} if part.raw is None else {"bytes": part.raw}
            named: dict[str, str | None] = {"name": part.name, "mimeType": part.media_type}
            file: JsonObject = {key: value for key, value in named.items() if value is not None}
            written = {"type": "file", "file": file | content}
        case _:
            assert_never(part)
    if part.metadata is not None:
        written["metadata"] = part.metadata
    return written


def _outcome(result: JsonObject, whole: Raw, task: AgentTask, mode: OutputMode) -> Outcome:
    status = _object(result.get("status"))
    state = _state(status)
    said = _object(status.get("message"))
    remote = _string(result, "id") or task.remote_task_id or task.task_id
    context = _string(result, "sessionId", "session_id")
    if state == "completed":
        warnings: list[str] = []
        output = _output(result, said, context)
        if mode == "whole":
            output.status_message = said or UNSET
        is_all = output.is_empty() and mode != "whole"
        text = bytes(whole) if is_all else encode_output(output, mode, warnings)
        return Succeeded(output=text, context_id=context, remote_task_id=remote, warnings=tuple(warnings))
    words = _text([said])
    if state in _PENDING:
        return Working(remote_task_id=remote, state=state, context_id=context, text=words)
    if state in _ASKS:
        kind = "auth" if state == "auth-required" else "input"
        asked = _data([said])
        question = Question(
            kind=kind, text=words or f"The agent says {state}", data=asked[0] if asked else None
        )
        return Interrupted(question=question, remote_task_id=remote, context_id=context)
    message = f"Task state: {state or 'unknown'}"
    return Failed(
        error=step_error("agent_task_failed", f"{message}: {words}" if words else message, detail=result),
        context_id=context,
        remote_task_id=remote,
    )


def _output(result: JsonObject, said: JsonObject, context: str | None) -> StepOutput:
    artifacts = [_object(item) for item in _list(result.get("artifacts"))]
    answers = [_object(item) for item in _list(result.get("history"))][-1:]
    sources = (artifacts, [said], answers)
    said_text = next((found for source in sources if (found := _text(source))), None)
    values = next((found for source in sources if (found := _data(source))), None)
    metadata = result.get("metadata")
    sent: object = UNSET
    if values is not None:
        sent = Raw(encode(values[0])) if len(values) == 1 else values
    text, data = text_and_data(said_text, sent)
    return StepOutput(
        text=text,
        data=data,
        artifacts=result["artifacts"] if any(_parts(item) for item in artifacts) else UNSET,
        response=_text([said]) or UNSET,
        metadata=UNSET if metadata is None else metadata,
        context_id=context or UNSET,
        usage=usage_in([None if metadata is None else Raw(encode(metadata))]),
    )


def _state(status: JsonObject) -> str:
    state = (_string(status, "state") or "").strip().lower().replace("_", "-")
    return "canceled" if state == "cancelled" else state


def _text(holders: list[JsonObject]) -> str:
    parts = [part for holder in holders for part in _parts(holder)]
    return "\n".join(text for part in parts if isinstance(text := part.get("text"), str))


def _data(holders: list[JsonObject]) -> list[Json]:
    parts = [part for holder in holders for part in _parts(holder)]
    return [part["data"] for part in parts if part.get("data") is not None]


def _parts(holder: JsonObject) -> list[JsonObject]:
    content = holder.get("content")
    listed = [content] if isinstance(content, dict) else _list(holder.get("parts"))
    return [_object(part) for part in listed]


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _string(fields: JsonObject, *names: str) -> str | None:
    return next((value for name in names if isinstance(value := fields.get(name), str) and value), None)
