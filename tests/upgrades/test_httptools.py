"""
What `trunkline.transports` relies on in httptools' response parser, beyond what its documentation says.

The scenarios with hostile agents test the transport as a whole; these tests say which part of httptools has changed.
"""

from __future__ import annotations

import httptools
import pytest

HEAD = b"HTTP/1.1 200 OK\r\n"


class Callbacks:
    def __init__(self) -> None:
        self.calls: list[str] = []
        self.headers: list[tuple[bytes, bytes]] = []
        self.body = b""
        self.keeps_alive: list[bool] = []
        self.parser = httptools.HttpResponseParser(self)

    def on_message_begin(self) -> None:
        self.calls.append("begin")

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        self.calls.append(f"head {self.parser.get_status_code()}")
        self.keeps_alive.append(self.parser.should_keep_alive())

    def on_chunk_header(self) -> None:
        self.calls.append("chunk")

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        self.calls.append("complete")


def fed(*pieces: bytes) -> Callbacks:
    callbacks = Callbacks()
    for piece in pieces:
        callbacks.parser.feed_data(piece)
    return callbacks


def test_a_header_without_a_value_is_reported() -> None:
    assert fed(HEAD + b"X-Empty:\r\nX-A: 1\r\n\r\n").headers == [(b"X-Empty", b""), (b"X-A", b"1")]


def test_whether_a_connection_stays_open_is_known_when_the_head_is_complete() -> None:
    assert fed(HEAD + b"Content-Length: 0\r\n\r\n").keeps_alive == [True]
    assert fed(HEAD + b"Content-Length: 0\r\nConnection: close\r\n\r\n").keeps_alive == [False]
    assert fed(b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n").keeps_alive == [False]
    assert fed(HEAD + b"Transfer-Encoding: chunked\r\n\r\n").keeps_alive == [True]


def test_a_body_without_a_length_is_never_complete() -> None:
    found = fed(HEAD + b"\r\n", b"some", b"more")
    assert (found.body, found.calls, found.keeps_alive) == (b"somemore", ["begin", "head 200"], [False])


def test_one_parser_reads_interim_answers_and_the_answers_to_later_requests() -> None:
    found = fed(b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD + b"Content-Length: 2\r\n\r\nok", HEAD + b"\r\n")
    assert found.calls == [
        "begin",
        "head 100",
        "complete",
        "begin",
        "head 200",
        "complete",
        "begin",
        "head 200",
    ]


def test_what_follows_the_last_answer_of_a_connection_is_an_error() -> None:
    callbacks = fed(HEAD + b"Content-Length: 2\r\nConnection: close\r\n\r\nok")
    with pytest.raises(httptools.HttpParserError):
        callbacks.parser.feed_data(HEAD)


def test_trailers_are_reported_as_headers() -> None:
    found = fed(HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Trailer: 1\r\n\r\n")
    assert (found.body, found.calls.count("chunk"), found.headers[-1]) == (b"ok", 2, (b"X-Trailer", b"1"))


@pytest.mark.parametrize(
    "broken", [b"HTTP/1.1 two hundred\r\n", b"garbage\r\n", HEAD + b"broken header\r\n\r\n"]
)
def test_an_error_does_not_repeat_what_was_read(broken: bytes) -> None:
    with pytest.raises(httptools.HttpParserError) as caught:
        fed(
            broken.replace(b"hundred", b"secret").replace(b"garbage", b"secret").replace(b"broken", b"secret")
        )
    assert "secret" not in str(caught.value)


def test_only_a_switch_of_protocols_ends_an_answer_before_its_body() -> None:
    offer = b"Connection: Upgrade\r\nUpgrade: h2c\r\n"
    assert fed(HEAD + offer + b"Content-Length: 2\r\n\r\nok").body == b"ok"
    callbacks = Callbacks()
    with pytest.raises(httptools.HttpParserUpgrade):
        callbacks.parser.feed_data(b"HTTP/1.1 101 Switching\r\n" + offer + b"\r\nok")
    assert (callbacks.body, callbacks.calls) == (b"", ["begin", "head 101", "complete"])
