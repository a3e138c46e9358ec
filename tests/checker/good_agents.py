"""Agents that do what their dialects ask for, each a function from a request to a reply."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import msgspec

from trunkline.jsontypes import Json, JsonObject


class AgentRequest(msgspec.Struct, frozen=True):
    """A request, as far as an agent reads it."""

    method: str
    path: str
    content_type: str
    body: bytes
    value: Json = None

    @property
    def object(self) -> JsonObject:
        return self.value if isinstance(self.value, dict) else {}

    @property
    def rpc_method(self) -> Json:
        return self.object.get("method")

    @property
    def message(self) -> JsonObject:
        params = self.object.get("params")
        message = params.get("message") if isinstance(params, dict) else None
        return message if isinstance(message, dict) else {}

    @property
    def text(self) -> str:
        parts = self.message.get("parts")
        first = parts[0] if isinstance(parts, list) and parts else None
        text = first.get("text") if isinstance(first, dict) else None
        return text if isinstance(text, str) else ""

    @property
    def wants_card(self) -> bool:
        return "/.well-known/" in self.path


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    status: int = 200
    value: Json = None
    # Instead of the value.
    raw: bytes | None = None
    headers: Mapping[str, str] = MappingProxyType({"Content-Type": "application/json"})

    @property
    def object(self) -> JsonObject:
        return self.value if isinstance(self.value, dict) else {}

    @property
    def result(self) -> JsonObject:
        found = self.object.get("result")
        return found if isinstance(found, dict) else {}

    @property
    def is_result(self) -> bool:
        return "result" in self.object

    @property
    def is_error(self) -> bool:
        return "error" in self.object


class NeverAnswers(msgspec.Struct, frozen=True):
    """Never answers."""


class ClosesConnection(msgspec.Struct, frozen=True):
    """Writes these bytes and closes the connection."""

    sent: bytes = b""


class EndlessAnswer(msgspec.Struct, frozen=True):
    """Begins an answer of a hundred megabytes."""


Reaction = Reply | NeverAnswers | ClosesConnection | EndlessAnswer


def refusal(asked: AgentRequest, code: int, message: str) -> Reply:
    call_id = asked.object.get("id")
    error: JsonObject = {"code": code, "message": message}
    return Reply(value={"jsonrpc": "2.0", "id": call_id, "error": error})


def _refused(asked: AgentRequest, sends: str) -> Reply | None:
    """What every agent over JSON-RPC says to what is no message."""
    if asked.value is None:
        return refusal(asked, -32700, "Parse error: the body is not JSON")
    if not isinstance(asked.value, dict):
        return refusal(asked, -32600, "Invalid Request: not an object")
    if asked.object.get("jsonrpc") != "2.0":
        return refusal(asked, -32600, "Invalid Request: jsonrpc must be 2.0")
    if asked.rpc_method is None:
        return refusal(asked, -32600, "Invalid Request: method is missing")
    if asked.rpc_method in ("tasks/get", "GetTask") and sends != "jsonrpc":
        return refusal(asked, -32001, "Task not found")
    if asked.rpc_method != {"jsonrpc": "message/send"}.get(sends, sends):
        return refusal(asked, -32601, f"Method not found: {asked.rpc_method}")
    parts = asked.message.get("parts")
    if not isinstance(parts, list) or not parts or not isinstance(parts[0], dict) or "text" not in parts[0]:
        return refusal(asked, -32602, "Invalid params: message.parts must be a list of parts with text")
    return None


def answered(asked: AgentRequest, result: JsonObject) -> Reply:
    return Reply(value={"jsonrpc": "2.0", "id": asked.object.get("id"), "result": result})


def _said(asked: AgentRequest) -> str:
    return f"Processed: {asked.text}"


def jsonrpc_agent(asked: AgentRequest) -> Reply:
    refused = _refused(asked, "jsonrpc")
    if refused is not None:
        return refused
    parts: list[Json] = [{"kind": "text", "text": _said(asked)}]
    heard: list[Json] = [{"kind": "text", "text": asked.text}]
    return answered(
        asked,
        {
            "status": {"state": "completed"},
            "artifacts": [{"parts": parts}],
            "history": [{"role": "user", "parts": heard}, {"role": "agent", "parts": parts}],
        },
    )


def agent_v03(asked: AgentRequest) -> Reply:
    if asked.wants_card:
        return _card(
            asked, {"url": _home(asked), "protocolVersion": "0.3.0", "preferredTransport": "JSONRPC"}
        )
    refused = _refused(asked, "message/send")
    if refused is not None:
        return refused
    parts: list[Json] = [{"kind": "text", "text": _said(asked)}]
    return answered(
        asked,
        {
            "kind": "task",
            "id": f"task-of-{asked.message.get('messageId')}",
            "contextId": "context-1",
            "status": {"state": "completed"},
            "artifacts": [{"artifactId": "answer", "parts": parts}],
        },
    )


def agent_v1(asked: AgentRequest) -> Reply:
    if asked.wants_card:
        interface: JsonObject = {"url": _home(asked), "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        return _card(asked, {"supportedInterfaces": [interface]})
    refused = _refused(asked, "SendMessage")
    if refused is not None:
        return refused
    task: JsonObject = {
        "id": f"task-of-{asked.message.get('messageId')}",
        "contextId": "context-1",
        "status": {"state": "TASK_STATE_COMPLETED"},
        "artifacts": [{"artifactId": "answer", "parts": [{"text": _said(asked)}]}],
    }
    return answered(asked, {"task": task})


def simple_agent(asked: AgentRequest) -> Reply:
    task_id = asked.object.get("task_id")
    if task_id is None or "input" not in asked.object:
        error = "task_id and input are required"
        return Reply(
            status=400, value={"task_id": task_id, "status": "error", "output": None, "error": error}
        )
    output: JsonObject = {"result": f"Processed: {asked.object['input']}"}
    return Reply(value={"task_id": task_id, "status": "success", "output": output, "error": None})


def _home(asked: AgentRequest) -> str:
    return asked.path.partition("/.well-known/")[0]


def _card(asked: AgentRequest, more: JsonObject) -> Reply:
    del asked
    card: JsonObject = {
        "name": "Good",
        "description": "Does what it should.",
        "version": "1.0.0",
        "capabilities": {},
        "skills": [],
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
    }
    return Reply(value=card | more)


GOOD: Mapping[str, Callable[[AgentRequest], Reply]] = {
    "jsonrpc-2.0": jsonrpc_agent,
    "simple-a2a": simple_agent,
    "a2a-0.3": agent_v03,
    "a2a-1.0": agent_v1,
}
