"""
A2A 1.0 over HTTP+JSON, as the bridge uses it: `a2a-1.0-http`.

    POST <endpoint>/message:send            POST <endpoint>/message:stream
    GET  <endpoint>/tasks/<remote task id>  POST <endpoint>/tasks/<remote task id>:cancel
    GET  <endpoint>/tasks/<remote task id>:subscribe
    GET  <endpoint>/tasks?contextId=…&pageSize=100

A tenant is the first segment behind the endpoint.
"""

from __future__ import annotations

from urllib.parse import quote, urlencode

from trunkline.jsontypes import Json, JsonObject
from trunkline.messages import AgentTask
from trunkline.protocols.a2a.v1 import http_answers
from trunkline.protocols.a2a.v1.adapter_base import HEADERS, LIST_PAGE, A2A10AdapterBase, with_headers
from trunkline.protocols.a2a.v1.model import unwrap_result
from trunkline.protocols.a2a.v1.parsed_result import V1ParsedResult
from trunkline.protocols.a2a.v1.request import context_id
from trunkline.protocols.base import (
    DEFAULT_SEND_OPTIONS,
    AgentRequest,
    Failed,
    Outcome,
    ProtocolTranslationError,
    SendOptions,
)

PROTOCOL = "a2a-1.0-http"


class A2A10HttpAdapter(A2A10AdapterBase):
    """A2A 1.0 over HTTP+JSON."""

    def get_protocol_name(self) -> str:
        return PROTOCOL

    def malformed_symptom(self) -> str:
        return "malformed A2A response"

    def parse_result(self, body: bytes, task: AgentTask) -> V1ParsedResult | Failed:
        del task  # nothing in the answer names it
        return http_answers.parse_result(body)

    def parse_task_list(self, body: bytes, task: AgentTask) -> Json | Failed:
        del task  # nothing in the answer names it
        return http_answers.parse_task_list(body)

    def whole_result(self, body: bytes) -> bytes:
        return unwrap_result(body.removeprefix(b"\xef\xbb\xbf"))

    def decode_body(self, body: bytes, task: AgentTask) -> Outcome:
        opened = self.parse_result(body, task)
        if isinstance(opened, V1ParsedResult) and opened.form == "other":
            # Without an envelope only this tells an agent of A2A from any other server.
            raise ProtocolTranslationError(
                "Response has none of 'task', 'message', 'statusUpdate', 'artifactUpdate' and 'status'",
                PROTOCOL,
                "response",
                body,
            )
        return self.outcome_of_result(opened, body, task)

    def to_agent_request(self, task: AgentTask) -> JsonObject:
        return self.params(task)

    def encode(self, task: AgentTask, options: SendOptions = DEFAULT_SEND_OPTIONS) -> AgentRequest:
        request = self.request(lambda task: self.params(task, options), task)
        return with_headers(request, path=self._path("/message:send"))

    def encode_stream(self, task: AgentTask) -> AgentRequest | None:
        request = self.request(self.params, task)
        return with_headers(request, path=self._path("/message:stream"))

    def encode_poll(self, task: AgentTask, remote_task_id: str) -> AgentRequest | None:
        del task
        return AgentRequest(body=b"", headers=HEADERS, path=self._task_path(remote_task_id))

    def encode_cancel(self, task: AgentTask, remote_task_id: str) -> AgentRequest | None:
        del task
        path = self._task_path(remote_task_id) + ":cancel"
        return AgentRequest(body=b"{}", headers=HEADERS, path=path)

    def encode_resubscribe(self, task: AgentTask, remote_task_id: str) -> AgentRequest | None:
        del task
        path = self._task_path(remote_task_id) + ":subscribe"
        return AgentRequest(body=b"", headers=HEADERS, path=path)

    def encode_find(self, task: AgentTask) -> AgentRequest | None:
        context = context_id(task)
        if context is None:
            return None
        query = urlencode({"contextId": context, "pageSize": LIST_PAGE})
        return AgentRequest(body=b"", headers=HEADERS, path=self._path(f"/tasks?{query}"))

    def _task_path(self, remote_task_id: str) -> str:
        return self._path(f"/tasks/{quote(remote_task_id, safe='')}")

    def _path(self, path: str) -> str:
        return path if self.tenant is None else f"/{quote(self.tenant, safe='')}{path}"
