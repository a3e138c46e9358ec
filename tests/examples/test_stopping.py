"""An agent that is told to stop while it is being asked answers first."""

from __future__ import annotations

import signal
import socket
from pathlib import Path

from deploy.local.processes import wait_until
from tests.examples.processes import ExampleProcess
from tests.services import needed

from trunkline.jsontypes import Json, encode

SECONDS = 60.0
REQUEST: Json = {
    "jsonrpc": "2.0",
    "id": "t-1",
    "method": "message/send",
    "params": {"message": {"parts": [{"kind": "text", "text": "tides"}]}},
}
HEAD = (
    "POST /agent HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    "Content-Length: {}\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n"
)


def is_stopping(agent: ExampleProcess) -> bool:
    with socket.socket() as probe:
        refuses = probe.connect_ex(("127.0.0.1", agent.port)) != 0
    # Gunicorn listens to the end, for workers that might come.
    return refuses or "Handling signal: term" in agent.process.log.read_text()


def test_what_is_under_way_is_answered(example: str, tmp_path: Path) -> None:
    body = encode(REQUEST)
    with needed():
        agent = ExampleProcess(example, "after", tmp_path / "agent", in_production=True)
    try:
        agent.wait()
        with socket.create_connection(("127.0.0.1", agent.port), timeout=SECONDS) as connection:
            answer = connection.makefile("rb")
            connection.sendall(HEAD.format(len(body)).encode())
            # It has begun to read, and now it waits for the body.
            assert answer.readline().startswith(b"HTTP/1.1 100 ")
            agent.process.signal(signal.SIGTERM)
            assert wait_until(lambda: is_stopping(agent), SECONDS)
            connection.sendall(body)
            told = answer.read()
        assert b"HTTP/1.1 200 " in told
        assert b"Processed: tides" in told
        assert wait_until(lambda: not agent.process.running, SECONDS)
    finally:
        agent.end()
