"""
What the demo agents share: HTTP around a function that answers JSON with JSON, and JSON-RPC 2.0 for two of them.

    request   {"jsonrpc": "2.0", "id": "…", "method": "message/send",
               "params": {"message": {"role": "user", "messageId": "…",
                                      "parts": [{"kind": "text", "text": "…"}]}}}
    answer    {"jsonrpc": "2.0", "id": "…",
               "result": {"kind": "task", "id": "…", "status": {"state": "completed"},
                          "artifacts": [{"parts": [{"kind": "text", "text": "…"}]}]}}
    error     {"jsonrpc": "2.0", "id": "…", "error": {"code": -32601, "message": "Method not found: …"}}
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import FrameType
from typing import NamedTuple, NoReturn, cast

DemoRequest = dict[str, object]


class DemoReply(NamedTuple):
    status: int
    body: Mapping[str, object]


# Gets the request's JSON object and its headers.
Agent = Callable[[DemoRequest, Mapping[str, str]], DemoReply]


def serve(agent: Agent) -> None:
    """Serves the agent at `--host` and `--port` (0: a free one) until it is stopped; prints its URL."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    with ThreadingHTTPServer((options.host, options.port), _handler(agent)) as server:
        signal.signal(signal.SIGTERM, _leave)
        sys.stdout.write(f"http://{options.host}:{server.server_port}/agent\n")
        sys.stdout.flush()
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            sys.exit()


def _leave(_signal: int, _frame: FrameType | None) -> NoReturn:
    sys.exit()


def _handler(agent: Agent) -> type[BaseHTTPRequestHandler]:
    class DemoRequestHandler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Head and body in one packet; in two, the kernel may hold the second back for 40 ms.
        wbufsize = -1

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            try:
                request = json.loads(body)
            except ValueError:
                request = None
            if not isinstance(request, dict):
                self._send(DemoReply(400, {"error": "The body must be a JSON object"}))
                return
            self._send(agent(cast("DemoRequest", request), dict(self.headers.items())))

        def do_GET(self) -> None:
            self._send(DemoReply(404, {"error": "This agent has no card; POST to it"}))

        def _send(self, reply: DemoReply) -> None:
            content = json.dumps(reply.body).encode()
            self.send_response(reply.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the standard library's name)
            del format, args

    return DemoRequestHandler


def text_of(request: DemoRequest) -> str:
    """The text of the message's first part; raises `ValueError` when there is none."""
    try:
        params = cast("dict[str, dict[str, list[dict[str, object]]]]", request["params"])
        return str(params["message"]["parts"][0]["text"])
    except (KeyError, IndexError, TypeError) as error:
        raise ValueError("params.message.parts must hold a text") from error


def task_result(task_id: str, state: str, text: str | None = None) -> dict[str, object]:
    artifacts = [] if text is None else [{"artifactId": "answer", "parts": [{"kind": "text", "text": text}]}]
    return {"kind": "task", "id": task_id, "status": {"state": state}, "artifacts": artifacts}


def rpc_result(request: DemoRequest, value: dict[str, object]) -> DemoReply:
    return DemoReply(200, {"jsonrpc": "2.0", "id": request.get("id"), "result": value})


def rpc_error(request: DemoRequest, code: int, message: str) -> DemoReply:
    body = {"jsonrpc": "2.0", "id": request.get("id"), "error": {"code": code, "message": message}}
    return DemoReply(200, body)
