"""
A JSON-RPC call of any method, for agents that are not A2A's: `jsonrpc-call`.

    request  {"jsonrpc": "2.0", "id": "<task id>", "method": "execute_task", "params": <the step's input>}
    answer   {"jsonrpc": "2.0", "id": "<task id>", "result": any JSON: the output}
             {"jsonrpc": "2.0", "id": "<task id>", "result": {"status": "accepted", "task_id": "…"}}
             {"jsonrpc": "2.0", "id": "<task id>", "error": {"code": -32001, "message": "…"}}
    later    {"jsonrpc": "2.0", "id": "<task id>", "method": "get_task_result", "params": {"task_id": "…"}}

-32001 is a timeout here and -32000 every failure without a code of its own. `protocol_config`: method,
poll_method, output_mode and batch.
"""

from __future__ import annotations

from collections.abc import Mapping

from trunkline.errors import Finding
from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.messages import AgentTask
from trunkline.protocols.base import AgentRequest, Outcome, ProtocolAdapter, Succeeded, Working
from trunkline.protocols.config import BATCH, ProtocolOption, TextOption, check_config
from trunkline.protocols.json_rpc.envelope import (
    RpcError,
    failed_by_rpc_error,
    parse_response,
    raw_result,
    rpc_request,
)
from trunkline.protocols.outcomes import to_internal_format
from trunkline.protocols.outputs import OutputMode, encode_output, output_from_value, output_mode_for

PROTOCOL = "jsonrpc-call"
METHOD = "execute_task"
POLL_METHOD = "get_task_result"
OPTIONS: dict[str, ProtocolOption] = {
    "method": TextOption(default=METHOD),
    "poll_method": TextOption(default=POLL_METHOD),
    "output_mode": TextOption(default="full", choices=("full", "data")),
    "batch": BATCH,
}

# The first is the contract's word; the others are what an agent says that is asked meanwhile.
_NOT_DONE = frozenset({"accepted", "pending", "queued", "running", "working"})
_INPUT_HINT = (
    "The agent could not read its params, which are the step's input: compare their names with its own."
)
_FIX_BY_CODE = {
    -32700: "The agent receives the request but can't parse it: let it accept Content-Type application/json.",
    -32600: _INPUT_HINT,
    -32601: "The agent does not support the method. Check protocol_config.method.",
    -32602: _INPUT_HINT,
    -32603: "Check the agent's log: the agent failed with an internal error.",
    -32001: "The agent ran out of time: make it faster, or let it answer accepted and be asked again.",
}
_OTHER_DIALECT = frozenset({-32601})


class JsonRpcCallAdapter(ProtocolAdapter):
    """JSON-RPC 2.0 with any method, whose params are the step's input."""

    def __init__(
        self, method: str = METHOD, poll_method: str = POLL_METHOD, *, output_mode: OutputMode = "full"
    ) -> None:
        self.method = method
        self.poll_method = poll_method
        self.output_mode: OutputMode = output_mode

    @classmethod
    def validate_config(cls, config: Mapping[str, Json]) -> list[Finding]:
        return check_config(OPTIONS, config)

    def get_protocol_name(self) -> str:
        return PROTOCOL

    def malformed_symptom(self) -> str:
        return "malformed JSON-RPC response"

    def to_agent_request(self, task: AgentTask) -> JsonObject:
        data = task.input_data
        # JSON-RPC takes nothing else as params.
        return rpc_request(
            self.method, task.task_id, data if isinstance(data, dict | list) else {"input": data}
        )

    def from_agent_response(self, response: JsonObject, task_id: str) -> JsonObject:
        return to_internal_format(self.decode_body(encode(response), AgentTask(task_id=task_id)), task_id)

    def decode_body(self, body: bytes, task: AgentTask) -> Outcome:
        answer = parse_response(body, task.task_id, PROTOCOL)
        if isinstance(answer, RpcError):
            return failed_by_rpc_error(answer, _FIX_BY_CODE, _OTHER_DIALECT)
        return _accepted(answer.value) or self._succeeded(body, task)

    def encode_poll(self, task: AgentTask, remote_task_id: str) -> AgentRequest | None:
        return AgentRequest(
            body=encode(rpc_request(self.poll_method, task.task_id, {"task_id": remote_task_id}))
        )

    def _succeeded(self, body: bytes, task: AgentTask) -> Succeeded:
        value = raw_result(body)
        shaped = output_from_value(value)
        mode = output_mode_for(task, self.output_mode)
        return Succeeded(output=bytes(value) if shaped is None else encode_output(shaped, mode, []))


def _accepted(result: Json) -> Working | None:
    if not isinstance(result, dict):
        return None
    state, named = result.get("status"), result.get("task_id")
    if not isinstance(state, str) or state not in _NOT_DONE:
        return None
    if not isinstance(named, str | int) or isinstance(named, bool) or named == "":
        return None
    said = result.get("message")
    return Working(remote_task_id=str(named), state=state, text=said if isinstance(said, str) else "")
