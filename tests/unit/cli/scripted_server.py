"""A server whose answers each test writes down, and the command line against it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import NamedTuple

import pytest

from trunkline.cli.app import run_command_line

# Puts a text where the next command reads its stdin.
Piped = Callable[[str], None]


class Seen(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> object:
        return json.loads(self.body)


class Answer(NamedTuple):
    status: int
    body: bytes
    headers: Mapping[str, str] = MappingProxyType({})


class ScriptedServer:
    """Gives the answers written for `METHOD path` in turn, the last one forever; keeps what it was asked."""

    def __init__(self) -> None:
        self.answers: dict[str, list[Answer]] = {}
        self.seen: list[Seen] = []
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self.http.server_port}"

    def on(self, call: str, value: object, status: int = 200, **headers: str) -> None:
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        self.answers.setdefault(call, []).append(Answer(status, body, named))

    def asked(self, call: str) -> list[Seen]:
        return [seen for seen in self.seen if f"{seen.method} {seen.path}" == call]

    def _answer(self, seen: Seen) -> Answer:
        self.seen.append(seen)
        answers = self.answers.get(f"{seen.method} {seen.path}")
        if not answers:
            problem = {"title": "Not found", "status": 404, "detail": f"No {seen.path}", "fix": "List them."}
            return Answer(404, json.dumps(problem).encode())
        return answers.pop(0) if len(answers) > 1 else answers[0]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
                answer = server._answer(Seen(self.command, self.path, dict(self.headers.items()), body))  # pyright: ignore[reportPrivateUsage] - its own handler
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer.body)

            do_GET = do_POST = do_PATCH = do_DELETE = answer  # noqa: N815  (the standard library's names)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                del format, args

        return Handler


def page(*items: object, next_cursor: str | None = None) -> dict[str, object]:
    return {"items": list(items), "next_cursor": next_cursor}


def run(capsys: pytest.CaptureFixture[str], server: ScriptedServer, *arguments: str) -> tuple[int, str, str]:
    code = run_command_line([*arguments, "--url", server.url])
    out, err = capsys.readouterr()
    return code, out, err
