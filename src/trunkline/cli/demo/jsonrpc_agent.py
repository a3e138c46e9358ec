"""The Researcher: an agent that speaks JSON-RPC 2.0 and answers at once. `agent_server` shows the shapes."""

from __future__ import annotations

import json
from collections.abc import Mapping

from trunkline.cli.demo.agent_server import (
    DemoReply,
    DemoRequest,
    rpc_error,
    rpc_result,
    serve,
    task_result,
    text_of,
)


def research(query: str) -> dict[str, object]:
    """What this agent is for. It is not quite sure of itself, so that the workflow asks the fact checker."""
    return {"summary": f"Three sources agree on what matters about {query}.", "score": 0.62}


def answer(request: DemoRequest, headers: Mapping[str, str]) -> DemoReply:
    del headers
    if request.get("jsonrpc") != "2.0":
        return rpc_error(request, -32600, "Invalid Request: jsonrpc must be 2.0")
    if request.get("method") != "message/send":
        return rpc_error(request, -32601, f"Method not found: {request.get('method')}")
    try:
        query = text_of(request)
    except ValueError as error:
        return rpc_error(request, -32602, f"Invalid params: {error}")
    found = json.dumps(research(query))
    return rpc_result(request, task_result(f"research-{request.get('id')}", "completed", found))


if __name__ == "__main__":
    serve(answer)
