"""
The span of one request to an agent, by the conventions for RPC and for generative AI.

Nothing of a body or a header is in it but the method, the ids and the numbers that the conventions name.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec

from trunkline.agents.transport_urls import transport_of
from trunkline.bridge.agents.resolver import ResolvedAgent
from trunkline.bridge.wire.exchanges import ExchangeKind
from trunkline.messages import AgentTask
from trunkline.protocols import AgentAnswer, AgentRequest, Failed, Succeeded
from trunkline.telemetry.traces import Traces, TraceSpan

# Those that ask the agent for work; the others ask after it.
_INVOKES = frozenset({"send", "stream"})
# How agents call what a model has read and written.
_INPUT_TOKENS = ("input_tokens", "inputTokens", "promptTokenCount", "prompt_token_count", "prompt_tokens")
_OUTPUT_TOKENS = (
    "output_tokens", "outputTokens", "candidatesTokenCount", "candidates_token_count", "completion_tokens",
)  # fmt: skip


class _JsonRpcCall(msgspec.Struct):
    jsonrpc: str
    method: str
    id: str | int | None = None


class _OutputUsage(msgspec.Struct):
    usage: dict[str, object] = {}


_calls: msgspec.json.Decoder[_JsonRpcCall] = msgspec.json.Decoder(_JsonRpcCall)
_outputs: msgspec.json.Decoder[_OutputUsage] = msgspec.json.Decoder(_OutputUsage)


def start_call_span(
    traces: Traces, task: AgentTask, resolved: ResolvedAgent, kind: ExchangeKind, request: AgentRequest
) -> TraceSpan:
    name = resolved.agent.name
    attributes: dict[str, str | int] = {
        "gen_ai.agent.name": name,
        "trunkline.run_id": task.run_id,
        "trunkline.step": task.step,
        "trunkline.attempt": task.attempt,
        "trunkline.protocol": resolved.protocol,
        "trunkline.exchange": kind,
        **_address(resolved.dialect.url),
        **_rpc(request.body),
    }
    if kind in _INVOKES:
        attributes["gen_ai.operation.name"] = "invoke_agent"
    if task.context_id is not None:
        attributes["gen_ai.conversation.id"] = task.context_id
    return traces.begin(
        f"{'invoke_agent' if kind in _INVOKES else kind} {name}", "CLIENT", task.trace, attributes
    )


def note_answer(span: TraceSpan, answer: AgentAnswer | None, read: object) -> None:
    """What came back, as the dialect has read it."""
    if answer is not None:
        span.note({"http.response.status_code": answer.status})
    match read:
        case Succeeded():
            span.note(_usage(read.output))
            if read.context_id is not None:
                span.note({"gen_ai.conversation.id": read.context_id})
        case Failed(error=error):
            if error.jsonrpc_code is not None:
                span.note({"rpc.jsonrpc.error_code": error.jsonrpc_code})
            span.fail(error.code, error.message)
        case _:
            pass


def _rpc(body: bytes) -> dict[str, str | int]:
    try:
        call = _calls.decode(body)
    except msgspec.MsgspecError:
        # Another kind of request.
        return {}
    found: dict[str, str | int] = {
        "rpc.system": "jsonrpc",
        "rpc.method": call.method,
        "rpc.jsonrpc.version": call.jsonrpc,
    }
    if call.id is not None:
        found["rpc.jsonrpc.request_id"] = str(call.id)
    return found


def _address(url: str) -> dict[str, str | int]:
    if transport_of(url) != "https":
        return {"server.address": url.partition("?")[0]}
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return {"server.address": parts.hostname or "", "server.port": port}


def _usage(output: bytes) -> dict[str, int]:
    try:
        usage = _outputs.decode(output).usage
    except msgspec.MsgspecError:
        # An agent's own output is any JSON.
        return {}
    counts = {
        "gen_ai.usage.input_tokens": _first(usage, _INPUT_TOKENS),
        "gen_ai.usage.output_tokens": _first(usage, _OUTPUT_TOKENS),
    }
    return {name: count for name, count in counts.items() if count is not None}


def _first(usage: Mapping[str, object], names: tuple[str, ...]) -> int | None:
    return next((count for name in names if isinstance(count := usage.get(name), int)), None)
