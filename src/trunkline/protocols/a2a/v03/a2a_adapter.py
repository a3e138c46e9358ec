"""
A2A 0.3 and 0.2 with all that they offer: `a2a-0.3`, `a2a-0.2`.

    request   message/send, message/stream, tasks/get, tasks/cancel, tasks/resubscribe   written by request.py
    answer    {"jsonrpc": "2.0", "id", "result" | "error"}           opened by envelope.py, judged by outcome.py
    stream    text/event-stream of such answers                      folded by stream.py

`protocol_config`: input_mode, output_mode and batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from trunkline.errors import Finding
from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.messages import AgentTask
from trunkline.protocols.a2a.v03.outcome import outcome_of_answer, parse_answer
from trunkline.protocols.a2a.v03.request import InputMode, configuration, message_params, task_call
from trunkline.protocols.a2a.v03.stream import V03StreamReader
from trunkline.protocols.base import AgentRequest, Outcome, ProtocolAdapter, SendOptions, TaskStreamReader
from trunkline.protocols.config import BATCH, ProtocolOption, TextOption, check_config
from trunkline.protocols.json_rpc.envelope import rpc_request
from trunkline.protocols.outcomes import DEFAULT_SEND_OPTIONS, to_internal_format
from trunkline.protocols.outputs import OutputMode, output_mode_for

OPTIONS: dict[str, ProtocolOption] = {
    "input_mode": TextOption(default="text", choices=("text", "json", "data")),
    "output_mode": TextOption(default="full", choices=("full", "data")),
    "batch": BATCH,
}


class A2AV03Adapter(ProtocolAdapter):
    """A2A 0.3 over JSON-RPC."""

    protocol: ClassVar[str] = "a2a-0.3"

    def __init__(self, *, input_mode: InputMode = "text", output_mode: OutputMode = "full") -> None:
        self.input_mode: InputMode = input_mode
        self.output_mode: OutputMode = output_mode

    @classmethod
    def validate_config(cls, config: Mapping[str, Json]) -> list[Finding]:
        return check_config(OPTIONS, config)

    def get_protocol_name(self) -> str:
        return self.protocol

    def malformed_symptom(self) -> str:
        return "malformed JSON-RPC response"

    def to_agent_request(self, task: AgentTask) -> JsonObject:
        return self._send(task, DEFAULT_SEND_OPTIONS)

    def from_agent_response(self, response: JsonObject, task_id: str) -> JsonObject:
        return to_internal_format(self.decode_body(encode(response), AgentTask(task_id=task_id)), task_id)

    def encode(self, task: AgentTask, options: SendOptions = DEFAULT_SEND_OPTIONS) -> AgentRequest:
        return self.request(lambda sent: self._send(sent, options), task)

    def decode_body(self, body: bytes, task: AgentTask) -> Outcome:
        answer = parse_answer(body, task.task_id, self.protocol)
        return outcome_of_answer(answer, body, output_mode_for(task, self.output_mode), any_result=False)

    def encode_poll(self, task: AgentTask, remote_task_id: str) -> AgentRequest | None:
        return task_call("tasks/get", task, remote_task_id)

    def encode_cancel(self, task: AgentTask, remote_task_id: str) -> AgentRequest | None:
        return task_call("tasks/cancel", task, remote_task_id)

    def encode_stream(self, task: AgentTask) -> AgentRequest | None:
        return self.request(self._stream, task)

    def encode_resubscribe(self, task: AgentTask, remote_task_id: str) -> AgentRequest | None:
        return task_call("tasks/resubscribe", task, remote_task_id)

    def read_stream(self, task: AgentTask) -> TaskStreamReader:
        return V03StreamReader(task, self.protocol, output_mode_for(task, self.output_mode), self._malformed)

    def _send(self, task: AgentTask, options: SendOptions) -> JsonObject:
        params = message_params(task, self.input_mode, self.protocol)
        params["configuration"] = configuration(options)
        return rpc_request("message/send", task.task_id, params)

    def _stream(self, task: AgentTask) -> JsonObject:
        return rpc_request(
            "message/stream", task.task_id, message_params(task, self.input_mode, self.protocol)
        )


class A2AV02Adapter(A2AV03Adapter):
    """A2A 0.2, whose forms are those of 0.3."""

    protocol = "a2a-0.2"
