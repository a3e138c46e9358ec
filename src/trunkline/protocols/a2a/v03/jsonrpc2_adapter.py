"""
The dialect as the bridge uses it: `jsonrpc-2.0`.

    request   {"jsonrpc": "2.0", "id", "method", "params"}   written by request.py
    answer    {"jsonrpc": "2.0", "id", "result" | "error"}   opened by envelope.py, judged by outcome.py

`protocol_config`: method, version, input_mode, output_mode, params (`message`, or `input` for agents whose
method takes the input itself) and batch.
"""

from __future__ import annotations

from collections.abc import Mapping

from trunkline.errors import Finding
from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.messages import AgentTask
from trunkline.protocols.a2a.v03.outcome import outcome_of_answer, parse_answer
from trunkline.protocols.a2a.v03.request import InputMode, ParamsMode, input_params, message_params, task_call
from trunkline.protocols.base import AgentRequest, Outcome, ProtocolAdapter
from trunkline.protocols.config import BATCH, ProtocolOption, TextOption, check_config
from trunkline.protocols.json_rpc.envelope import VERSION, rpc_request
from trunkline.protocols.outcomes import to_internal_format
from trunkline.protocols.outputs import OutputMode, output_mode_for

PROTOCOL = "jsonrpc-2.0"
SEND = "message/send"
OPTIONS: dict[str, ProtocolOption] = {
    "method": TextOption(default=SEND),
    "version": TextOption(default=VERSION, choices=(VERSION,)),
    "input_mode": TextOption(default="text", choices=("text", "json", "data")),
    "output_mode": TextOption(default="full", choices=("full", "data")),
    "params": TextOption(default="message", choices=("message", "input")),
    "batch": BATCH,
}


class JsonRpc2Adapter(ProtocolAdapter):
    """JSON-RPC 2.0, as A2A 0.2 and 0.3 use it."""

    def __init__(
        self,
        method: str = SEND,
        version: str = VERSION,
        *,
        input_mode: InputMode = "text",
        output_mode: OutputMode = "full",
        params: ParamsMode = "message",
    ) -> None:
        if version != VERSION:
            raise ValueError(f"Unsupported JSON-RPC version: {version}")
        self.method = method
        self.version = version
        self.input_mode: InputMode = input_mode
        self.output_mode: OutputMode = output_mode
        self.params: ParamsMode = params

    @classmethod
    def validate_config(cls, config: Mapping[str, Json]) -> list[Finding]:
        return check_config(OPTIONS, config)

    def get_protocol_name(self) -> str:
        return PROTOCOL

    def malformed_symptom(self) -> str:
        return "malformed JSON-RPC response"

    def to_agent_request(self, task: AgentTask) -> JsonObject:
        params = (
            input_params(task) if self.params == "input" else message_params(task, self.input_mode, PROTOCOL)
        )
        return rpc_request(self.method, task.task_id, params)

    def from_agent_response(self, response: JsonObject, task_id: str) -> JsonObject:
        return to_internal_format(self.decode_body(encode(response), AgentTask(task_id=task_id)), task_id)

    def decode_body(self, body: bytes, task: AgentTask) -> Outcome:
        answer = parse_answer(body, task.task_id, PROTOCOL)
        mode = output_mode_for(task, self.output_mode)
        return outcome_of_answer(answer, body, mode, any_result=self.params == "input")

    def encode_poll(self, task: AgentTask, remote_task_id: str) -> AgentRequest | None:
        return self._task_call("tasks/get", task, remote_task_id)

    def encode_cancel(self, task: AgentTask, remote_task_id: str) -> AgentRequest | None:
        return self._task_call("tasks/cancel", task, remote_task_id)

    def _task_call(self, method: str, task: AgentTask, remote_task_id: str) -> AgentRequest | None:
        # Not A2A with `params: input`: such an agent has no tasks that we could name.
        return None if self.params == "input" else task_call(method, task, remote_task_id)
