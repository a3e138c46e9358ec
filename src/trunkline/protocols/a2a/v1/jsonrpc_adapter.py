"""
A2A 1.0 over JSON-RPC, as the bridge uses it: `a2a-1.0`.

    {"jsonrpc": "2.0", "id": "<task id>", "method": "SendMessage" | "SendStreamingMessage", "params": …}
    {"jsonrpc": "2.0", "id": "<task id>", "method": "GetTask" | "CancelTask" | "SubscribeToTask",
     "params": {"tenant": "…", "id": "<remote task id>"}}
    {"jsonrpc": "2.0", "id": "<task id>", "method": "ListTasks", "params": {"contextId": "…", "pageSize": 100}}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.messages import AgentTask
from trunkline.protocols.a2a.v1 import jsonrpc_answers
from trunkline.protocols.a2a.v1.adapter_base import (
    HEADERS,
    LIST_PAGE,
    OPTIONS,
    A2A10AdapterBase,
    with_headers,
)
from trunkline.protocols.a2a.v1.model import unwrap_result
from trunkline.protocols.a2a.v1.parsed_result import V1ParsedResult
from trunkline.protocols.a2a.v1.request import context_id
from trunkline.protocols.base import DEFAULT_SEND_OPTIONS, AgentRequest, Failed, SendOptions
from trunkline.protocols.config import BATCH, ProtocolOption
from trunkline.protocols.json_rpc.envelope import raw_result, rpc_request

PROTOCOL = "a2a-1.0"


class A2A10Adapter(A2A10AdapterBase):
    """A2A 1.0 over JSON-RPC."""

    known_options: ClassVar[Mapping[str, ProtocolOption]] = {**OPTIONS, "batch": BATCH}

    def get_protocol_name(self) -> str:
        return PROTOCOL

    def malformed_symptom(self) -> str:
        return "malformed JSON-RPC response"

    def parse_result(self, body: bytes, task: AgentTask) -> V1ParsedResult | Failed:
        return jsonrpc_answers.parse_result(body, task.task_id, PROTOCOL)

    def parse_task_list(self, body: bytes, task: AgentTask) -> Json | Failed:
        return jsonrpc_answers.parse_task_list(body, task.task_id, PROTOCOL)

    def whole_result(self, body: bytes) -> bytes:
        return unwrap_result(bytes(raw_result(body)))

    def to_agent_request(self, task: AgentTask) -> JsonObject:
        return self._send("SendMessage", task)

    def encode(self, task: AgentTask, options: SendOptions = DEFAULT_SEND_OPTIONS) -> AgentRequest:
        return with_headers(self.request(lambda task: self._send("SendMessage", task, options), task))

    def encode_stream(self, task: AgentTask) -> AgentRequest | None:
        request = self.request(lambda task: self._send("SendStreamingMessage", task), task)
        return with_headers(request)

    def encode_poll(self, task: AgentTask, remote_task_id: str) -> AgentRequest | None:
        return self._about("GetTask", task, {"id": remote_task_id})

    def encode_cancel(self, task: AgentTask, remote_task_id: str) -> AgentRequest | None:
        return self._about("CancelTask", task, {"id": remote_task_id})

    def encode_resubscribe(self, task: AgentTask, remote_task_id: str) -> AgentRequest | None:
        return self._about("SubscribeToTask", task, {"id": remote_task_id})

    def encode_find(self, task: AgentTask) -> AgentRequest | None:
        context = context_id(task)
        if context is None:
            return None
        return self._about("ListTasks", task, {"contextId": context, "pageSize": LIST_PAGE})

    def _send(self, method: str, task: AgentTask, options: SendOptions = DEFAULT_SEND_OPTIONS) -> JsonObject:
        return rpc_request(method, task.task_id, self._tenant() | self.params(task, options))

    def _about(self, method: str, task: AgentTask, params: JsonObject) -> AgentRequest:
        body = encode(rpc_request(method, task.task_id, self._tenant() | params))
        return AgentRequest(body=body, headers=HEADERS)

    def _tenant(self) -> JsonObject:
        return {} if self.tenant is None else {"tenant": self.tenant}
