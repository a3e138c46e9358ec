"""A server and a stdin that say what they are told to, for the time of a test."""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Iterator

import pytest
from tests.unit.cli.scripted_server import Piped, ScriptedServer


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    scripted = ScriptedServer()
    thread = threading.Thread(target=scripted.http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield scripted
    scripted.http.shutdown()
    thread.join()
    scripted.http.server_close()


@pytest.fixture
def piped(monkeypatch: pytest.MonkeyPatch) -> Piped:
    def put(text: str) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    return put
