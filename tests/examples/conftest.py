"""The examples as running agents, shared by all workers, and a plain way to call them."""

from __future__ import annotations

import http.client
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest
from tests.examples.processes import EXAMPLES, Side
from tests.services import shared

from trunkline.jsontypes import Json, JsonObject, decode, encode

_SECONDS = 60.0


class Answer(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> JsonObject:
        assert self.headers.get_content_type() == "application/json", self
        value = decode(self.body)
        assert isinstance(value, dict)
        return value


class Caller:
    """Calls one agent, on a new connection each time."""

    def __init__(self, url: str) -> None:
        self.url = url

    def post(self, body: Json | bytes, content_type: str | None = "application/json") -> Answer:
        headers = {} if content_type is None else {"Content-Type": content_type}
        return self.call("POST", body if isinstance(body, bytes) else encode(body), headers)

    def call(self, method: str, body: bytes | None, headers: dict[str, str]) -> Answer:
        parts = urlsplit(self.url)
        connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=_SECONDS)
        try:
            connection.request(method, parts.path, body, headers)
            answer = connection.getresponse()
            return Answer(answer.status, answer.msg, answer.read())
        finally:
            connection.close()


@pytest.fixture(params=EXAMPLES)
def example(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def url_of(example: str, request: pytest.FixtureRequest) -> Callable[[Side], str]:
    told = shared(example, request.config)
    return lambda side: str(told[side])


@pytest.fixture
def before(url_of: Callable[[Side], str]) -> Caller:
    return Caller(url_of("before"))


@pytest.fixture
def after(url_of: Callable[[Side], str]) -> Caller:
    return Caller(url_of("after"))
