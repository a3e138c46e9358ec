"""
A first agent that speaks Simple A2A, with only the standard library.

    request   {"task_id": "…", "input": {"text": "Ann"}}
    answer    {"task_id": "…", "status": "success", "output": {"text": "Hello, Ann!"}, "error": null}
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT = int(sys.argv[1]) if len(sys.argv) > 1 else 8080


class Greeter(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        task = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        output = {"text": f"Hello, {task['input']['text']}!"}
        answer = {"task_id": task["task_id"], "status": "success", "output": output, "error": None}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    with ThreadingHTTPServer(("127.0.0.1", PORT), Greeter) as server:
        print(f"Greeter listens at http://127.0.0.1:{PORT}/agent", flush=True)
        server.serve_forever()
