"""A server that keeps every request that arrives, byte by byte."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from queue import Queue


@dataclass(frozen=True)
class CapturedRequest:
    method: str
    target: str
    # Names in lower case.
    headers: dict[str, str]
    body: bytes


class RequestCapture:
    def __init__(self, url: str, arrived: Queue[CapturedRequest]) -> None:
        self.url = url
        self._arrived = arrived

    def take(self) -> CapturedRequest:
        """The next one."""
        return self._arrived.get(timeout=30)


@contextmanager
def request_capture() -> Generator[RequestCapture]:
    arrived: Queue[CapturedRequest] = Queue()

    class Keep(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            method, target, _ = self.rfile.readline().decode().split(" ", 2)
            headers: dict[str, str] = {}
            while line := self.rfile.readline().decode().rstrip("\r\n"):
                name, _, value = line.partition(":")
                headers[name.lower()] = value.removeprefix(" ")
            body = self.rfile.read(int(headers.get("content-length", "0")))
            arrived.put(CapturedRequest(method, target, headers, body))
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Keep) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield RequestCapture(f"http://127.0.0.1:{server.server_address[1]}", arrived)
        server.shutdown()
        thread.join()
