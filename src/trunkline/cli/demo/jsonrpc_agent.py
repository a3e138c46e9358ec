"""The Researcher: an agent that speaks JSON-RPC 2.0 and answers at once. `demo.jsonrpc` shows the shapes."""

from __future__ import annotations

import json
from collections.abc import Mapping

from trunkline.cli.demo import jsonrpc
from trunkline.cli.demo.agent_server import DemoReply, DemoRequest, serve


def research(query: str) -> dict[str, object]:
    """What this agent is for. It is not quite sure of itself, so that the workflow asks the fact checker."""
    return {"summary": f"Three sources agree on what matters about {query}.", "score": 0.62}


def answer(request: DemoRequest, headers: Mapping[str, str]) -> DemoReply:
    del headers
    if request.get("jsonrpc") != "2.0":
        return jsonrpc.error(request, -32600, "Invalid Request: jsonrpc must be 2.0")
    if request.get("method") != "message/send":
        return jsonrpc.error(request, -32601, f"Method not found: {request.get('method')}")
    try:
        query = jsonrpc.text_of(request)
    except ValueError as error:
        return jsonrpc.error(request, -32602, f"Invalid params: {error}")
    found = json.dumps(research(query))
    return jsonrpc.result(request, jsonrpc.task(f"research-{request.get('id')}", "completed", found))


if __name__ == "__main__":
    serve(answer)
