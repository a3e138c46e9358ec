"""
What agents send that they must not send, and what becomes of it: answers, event streams and cards.

Each input is the bytes that one agent writes; its outcome is the code of the step's error, or `COMPLETED` where
something useful can still be read from it.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from typing import NamedTuple

from trunkline.jsontypes import Json, encode

MALFORMED = "agent_answer_malformed"
LOST = "agent_connection_lost"
UNCLEAR = "agent_protocol_unclear"
FAILED = "agent_task_failed"
DONE = "COMPLETED"

# The id of the request to the bytes of the whole HTTP answer.
Answer = Callable[[str], bytes]


class BadInput(NamedTuple):
    name: str
    protocol: str
    outcome: str
    answer: Answer
    # A body, or everything from the status line on.
    card: bytes = b""
    timeout_ms: int = 30_000


def http(body: bytes, *headers: str, status: int = 200) -> bytes:
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def fixed(answer: bytes) -> Answer:
    return lambda _: answer


def _plain(body: bytes) -> Answer:
    return lambda _: http(body, _JSON)


_JSON = "Content-Type: application/json"
_EVENTS = "Content-Type: text/event-stream"
_DEEP = b"[" * 100_000 + b"]" * 100_000
# Fifteen megabytes that are a gigabyte as objects.
_MANY = b"[" + b"{}," * 5_000_000 + b"{}]"
_METADATA_ADDRESS = "Location: http://169.254.169.254/"
_DIALECTS = (
    "simple-a2a",
    "jsonrpc-2.0",
    "jsonrpc-call",
    "a2a-0.1",
    "a2a-0.2",
    "a2a-0.3",
    "a2a-1.0",
    "a2a-1.0-http",
)

# No JSON, or not an object: whatever the dialect, it is no answer.
_NO_ANSWER: dict[str, bytes] = {
    "nothing": b"",
    "white space": b" \r\n\t ",
    "HTML": b"<!doctype html><h1>Welcome</h1>",
    "XML": b'<?xml version="1.0"?><soap:Envelope/>',
    "null": b"null",
    "true": b"true",
    "a number": b"7",
    "a string": b'"ok"',
    "an empty array": b"[]",
    "an array": b'[{"status":"success"}]',
    "a cut object": b'{"jsonrpc":"2.0","id":',
    "a cut string": b'{"jsonrpc":"2.',
    "two objects": b"{}{}",
    "NaN": b'{"status":"success","output":NaN}',
    "Infinity": b'{"status":"success","output":-Infinity}',
    "bad UTF-8": b'{"status":"success","output":"\xff\xfe"}',
    "UTF-16": '{"status":"success"}'.encode("utf-16"),
    "NUL bytes": bytes(64),
    "depth 100,000": b'{"output":%s}' % _DEEP,
    "only depth": _DEEP,
    "single quotes": b"{'status':'success'}",
    "a comment": b'{"status":"success"} // done',
    "a mark and nothing": b"\xef\xbb\xbf",
    "gzip": gzip.compress(b'{"status":"success"}'),
    "a form": b"status=success&output=1",
    "a raw control character": b'{"status":"suc\x01cess"}',
    "a key without a value": b'{"status"}',
    "a trailing comma": b'{"status":"success",}',
    "five million values": b'{"status":"success","output":%s}' % _MANY,
}

# Of HTTP itself, the same in every dialect.
_TRANSPORT: list[tuple[str, str, bytes]] = [
    ("no byte", LOST, b""),
    ("half a status line", LOST, b"HTTP/1.1 20"),
    ("half a head", LOST, b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"),
    ("an interim answer alone", LOST, b"HTTP/1.1 100 Continue\r\n\r\n"),
    ("less than announced", LOST, b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{}"),
    ("a cut chunk", LOST, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{}"),
    ("chunks without an end", LOST, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"),
    ("another protocol", MALFORMED, b"220 mail.example ESMTP\r\n\r\n"),
    ("a status in words", MALFORMED, b"HTTP/1.1 fine\r\n\r\n"),
    ("two lengths", MALFORMED, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{} "),
    ("a negative length", MALFORMED, b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}"),
    ("a header without a colon", MALFORMED, b"HTTP/1.1 200 OK\r\nbroken\r\n\r\n{}"),
    ("a header of 100 kB", MALFORMED, b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n{}"),
    ("10,000 headers", MALFORMED, b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 10_000 + b"\r\n{}"),
    ("20 MB", "agent_answer_too_large", http(b" " * 20_000_000)),
    ("100 MB announced", "agent_answer_too_large", b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n"),
    ("a gzip bomb", "agent_answer_compressed", http(gzip.compress(bytes(50_000_000)), "Content-Encoding: gzip")),
    ("an unknown encoding", "agent_answer_compressed", http(b"{}", "Content-Encoding: zstd")),
    ("a redirect to a metadata address", "agent_redirected", http(b"", _METADATA_ADDRESS, status=307)),
    ("a redirect to nowhere", "agent_redirected", http(b"", status=302)),
    ("a page with 500", "agent_http_error", http(b"<h1>Oops</h1>", status=500)),
    ("nothing with 503", "agent_http_error", http(b"", status=503)),
    ("a status of 999", "agent_http_error", http(b"{}", status=999)),
    ("401", "agent_http_error", http(b"no", 'WWW-Authenticate: Basic realm="x"', status=401)),
    ("413", "agent_http_error", http(b"<h1>Too large</h1>", status=413)),
]  # fmt: skip

_TASK: dict[str, Json] = {"kind": "task", "id": "t", "contextId": "c", "status": {"state": "completed"}}


def _rpc(**fields: Json) -> Answer:
    return lambda request_id: http(encode({"jsonrpc": "2.0", "id": request_id, **fields}), _JSON)


def _filled(text: bytes, value: bytes) -> Answer:
    return lambda request_id: http(text % (request_id.encode(), value), _JSON)


def _artifacts(*parts: Json) -> Answer:
    return _task(artifacts=[{"artifactId": "a", "parts": list(parts)}])


def _task(**fields: Json) -> Answer:
    return _rpc(result={**_TASK, **fields})


# What a JSON-RPC answer can have wrong, in the dialects of A2A 0.3.
_JSONRPC: dict[str, tuple[str, Answer]] = {
    "result and error": (MALFORMED, _rpc(result=_TASK, error={"code": 1, "message": "x"})),
    "neither result nor error": (MALFORMED, _rpc()),
    "version 1.0": (MALFORMED, _rpc(jsonrpc="1.0", result=_TASK)),
    "a numeric version": (MALFORMED, _rpc(jsonrpc=2.0, result=_TASK)),
    "no version": (MALFORMED, lambda i: http(encode({"id": i, "result": _TASK}), _JSON)),
    "another id": ("agent_response_id_mismatch", _rpc(id="other", result=_TASK)),
    "a numeric id": ("agent_response_id_mismatch", _rpc(id=7, result=_TASK)),
    "no id": (MALFORMED, _rpc(id=None, result=_TASK)),
    "an id that is an object": ("agent_response_id_mismatch", _rpc(id={}, result=_TASK)),
    "a batch": (MALFORMED, lambda i: http(encode([{"jsonrpc": "2.0", "id": i, "result": _TASK}]), _JSON)),
    "an error that is a string": ("agent_jsonrpc_error", _rpc(error="boom")),
    "an error without a code": ("agent_jsonrpc_error", _rpc(error={"message": "boom"})),
    "an error code in words": ("agent_jsonrpc_error", _rpc(error={"code": "E1", "message": "boom"})),
    "an error code out of range": ("agent_jsonrpc_error", _rpc(error={"code": 10**15, "message": "boom"})),
    "an error without a message": ("agent_jsonrpc_error", _rpc(error={"code": -32000})),
    "an error message of 1 MB": ("agent_jsonrpc_error", _rpc(error={"code": 1, "message": "x" * 1_000_000})),
    "deep error data": (MALFORMED, _filled(b'{"jsonrpc":"2.0","id":"%s","error":{"code":1,"data":%s}}', _DEEP)),
}  # fmt: skip

# What a task can have wrong; the decoder is tolerant, so much of it is still an answer.
_TASKS: dict[str, tuple[str, Answer]] = {
    "a result that is null": (FAILED, _rpc(result=None)),
    "a result that is a string": (FAILED, _rpc(result="done")),
    "a result that is an array": (FAILED, _rpc(result=[_TASK])),
    "an empty result": (FAILED, _rpc(result={})),
    "an unknown kind": (FAILED, _rpc(result={"kind": "banana"})),
    "an unknown state": (FAILED, _task(status={"state": "frobnicating"})),
    "a state that is a number": (FAILED, _task(status={"state": 7})),
    "no state": (FAILED, _task(status={})),
    "a status that is a string": (DONE, _task(status="completed")),
    "no status": (FAILED, _rpc(result={"kind": "task", "id": "t"})),
    "work without an id": (FAILED, _rpc(result={"kind": "task", "status": {"state": "working"}})),
    "artifacts that are a string": (DONE, _task(artifacts="none")),
    "parts that are an object": (DONE, _task(artifacts=[{"artifactId": "a", "parts": {}}])),
    "a part of an unknown kind": (DONE, _artifacts({"kind": "hologram"})),
    "a part that is null": (DONE, _artifacts(None)),
    "a text that is a number": (DONE, _artifacts({"kind": "text", "text": 7})),
    "a history that is an object": (DONE, _task(history={})),
    "metadata that is a list": (DONE, _task(metadata=[1])),
    "a context id of 1 MB": (DONE, _task(contextId="c" * 1_000_000)),
    "ten thousand artifacts": (DONE, _task(artifacts=[{"artifactId": str(n), "parts": []} for n in range(10_000)])),
    "the same key twice": (DONE, _filled(b'{"jsonrpc":"1.0","jsonrpc":"2.0","id":"%s","result":%s}', encode(_TASK))),
    "five million results": (MALFORMED, _filled(b'{"jsonrpc":"2.0","id":"%s","result":%s}', _MANY)),
    "five million artifacts": (MALFORMED, _filled(b'{"jsonrpc":"2.0","id":"%s","result":{"artifacts":%s}}', _MANY)),
    "a number out of range": (MALFORMED, _filled(b'{"jsonrpc":"2.0","id":"%s","result":%s}', b"1e999")),
}  # fmt: skip

_STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
_CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def _event(request_id: str, **fields: Json) -> bytes:
    return b"data: %s\n\n" % encode({"jsonrpc": "2.0", "id": request_id, **fields})


def _final(request_id: str, state: Json = "completed") -> bytes:
    status: dict[str, Json] = {
        "kind": "status-update",
        "taskId": "t",
        "contextId": "c",
        "status": {"state": state},
    }
    return _event(request_id, result={**status, "final": True})


def _events(*events: Callable[[str], bytes], head: bytes = _STREAM) -> Answer:
    return lambda request_id: head + b"".join(event(request_id) for event in events)


def _raw(text: bytes) -> Answer:
    return fixed(_STREAM + text)


def _working(request_id: str) -> bytes:
    return _event(request_id, result={**_TASK, "status": {"state": "working"}})


def _says(**fields: Json) -> Callable[[str], bytes]:
    return lambda request_id: _event(request_id, **fields)


def _update(artifact: Json) -> Callable[[str], bytes]:
    return _says(result={"kind": "artifact-update", "taskId": "t", "contextId": "c", "artifact": artifact})


_BOMB = http(gzip.compress(bytes(5_000_000)), _EVENTS, "Content-Encoding: gzip")
_STREAMS: dict[str, tuple[str, Answer]] = {
    "no event": (MALFORMED, _raw(b"")),
    "only comments": (MALFORMED, _raw(b": ping\n\n" * 100)),
    "only an event's name": (MALFORMED, _raw(b"event: message\n\n")),
    "data without a colon": (MALFORMED, _raw(b"data\n\n")),
    "data that is empty": (MALFORMED, _raw(b"data:\n\n")),
    "data that is no JSON": (MALFORMED, _raw(b"data: hello\n\n")),
    "data that is HTML": (MALFORMED, _raw(b"data: <html>\n\n")),
    "data that is null": (MALFORMED, _raw(b"data: null\n\n")),
    "data that is an array": (MALFORMED, _raw(b"data: []\n\n")),
    "data that is a number": (MALFORMED, _raw(b"data: 7\n\n")),
    "data that is cut": (MALFORMED, _raw(b'data: {"jsonrpc":"2.0"')),
    "data with NaN": (MALFORMED, _raw(b'data: {"jsonrpc":"2.0","result":NaN}\n\n')),
    "data that is not UTF-8": (MALFORMED, _raw(b'data: {"jsonrpc":"\xff"}\n\n')),
    "data of depth 100,000": (MALFORMED, _raw(b"data: %s\n\n" % _DEEP)),
    "data with NUL": (MALFORMED, _raw(b"data: \x00\n\n")),
    "a version of 1.0": (MALFORMED, _events(_says(jsonrpc="1.0", result=_TASK))),
    "a result and an error": (MALFORMED, _events(_says(result=_TASK, error={"code": 1, "message": "x"}))),
    "neither of them": (MALFORMED, _events(_says())),
    "another id": ("agent_response_id_mismatch", _events(_says(id="other", result=_TASK))),
    "an error": ("agent_jsonrpc_error", _events(_says(error={"code": -32000, "message": "no"}))),
    "an unknown kind": (MALFORMED, _events(_says(result={"kind": "banana"}))),
    "a result that is a string": (MALFORMED, _events(_says(result="done"))),
    "an unknown state": (FAILED, _events(lambda i: _final(i, "frobnicating"))),
    "a state that is a number": (DONE, _events(lambda i: _final(i, 7))),
    "an artifact without parts": (DONE, _events(_working, _update({}), _final)),
    "an artifact that is a string": (DONE, _events(_update("x"))),
    "five million parts": (MALFORMED, lambda i: _STREAM + b'data: {"id":"%s","result":%s}\n\n' % (i.encode(), _MANY)),
    "an endless line": ("agent_answer_too_large", _raw(b"data: " + b"x" * 20_000_000)),
    "an endless event": ("agent_answer_too_large", _raw((b"data: " + b"x" * 1_000 + b"\n") * 20_000)),
    "an endless name": ("agent_answer_too_large", _raw(b"event: " + b"x" * 20_000_000)),
    "fifty thousand pings": (DONE, _events(lambda _: b": ping\n\n" * 50_000, _working, _final)),
    "ten thousand updates": (DONE, _events(_working, lambda i: _working(i) * 10_000, _final)),
    "events after the end": (DONE, _events(_working, _final, lambda i: _final(i, "failed"), _working)),
    "rubbish after the end": (DONE, _events(_working, _final, lambda _: b"data: hello\n\n" * 9)),
    "lines that end with CR": (DONE, _events(lambda i: (_working(i) + _final(i)).replace(b"\n", b"\r"))),
    "lines that end with CRLF": (DONE, _events(lambda i: (_working(i) + _final(i)).replace(b"\n", b"\r\n"))),
    "a mark at the beginning": (DONE, _events(lambda _: b"\xef\xbb\xbf", _working, _final)),
    "odd ids and times": (DONE, _events(lambda _: b"id: \x00\nretry: soon\nfoo: bar\nfoo\n", _working, _final)),
    "a failure": (FAILED, _events(_working, lambda i: _final(i, "failed"))),
    "a cut after the task is known": (DONE, _events(_working)),
    "a cut event after the task is known": (DONE, _events(_working, lambda i: _final(i)[:-9])),
    "rubbish after the task is known": (DONE, _events(_working, lambda _: b"data: hello\n\n")),
    "a broken chunk": (MALFORMED, fixed(_CHUNKED + b"2\r\n: \r\nzz\r\n")),
    "a cut chunk": (LOST, fixed(_CHUNKED + b"99\r\ndata: ")),
    "a length that lies": (LOST, fixed(_STREAM.replace(b"Connection: close", b"Content-Length: 999") + b": x\n\n")),
    "compressed": ("agent_answer_compressed", fixed(_BOMB)),
    "events under the name of JSON": (MALFORMED, lambda i: http(_final(i), _JSON)),
    "JSON under the name of events": (MALFORMED, lambda i: _STREAM + _event(i, result=_TASK).removeprefix(b"data: ")),
    "events with 500": ("agent_http_error", lambda i: http(_final(i), _EVENTS, status=500)),
    "a redirect": ("agent_redirected", fixed(http(b"", _METADATA_ADDRESS, status=307))),
}  # fmt: skip

_CARD: dict[str, Json] = {
    "name": "A",
    "protocolVersion": "0.3.0",
    "url": "{url}",
    "preferredTransport": "JSONRPC",
}


def _card(**fields: Json) -> bytes:
    return encode({**_CARD, **fields})


def _v1(*interfaces: Json) -> bytes:
    return encode({"name": "A", "supportedInterfaces": list(interfaces)})


def _interface(url: str, binding: str = "JSONRPC") -> Json:
    return {"url": url, "protocolBinding": binding, "protocolVersion": "1.0"}


# `{url}` stands for the agent's own.
_CARDS: dict[str, tuple[str, bytes]] = {
    "nothing": (DONE, http(b"")),
    "HTML": (DONE, b"<html>"),
    "null": (DONE, b"null"),
    "an array": (DONE, b"[]"),
    "a number": (DONE, b"7"),
    "an empty object": (DONE, b"{}"),
    "a cut object": (UNCLEAR, b'{"name":'),
    "NaN": (UNCLEAR, b'{"name":NaN}'),
    "bad UTF-8": (UNCLEAR, b'{"name":"\xff"}'),
    "UTF-16": (DONE, '{"name":"A"}'.encode("utf-16")),
    "depth 100,000": (DONE, _DEEP),
    "20 MB": (UNCLEAR, b" " * 20_000_000),
    "100 MB announced": (UNCLEAR, b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n"),
    "a gzip bomb": (DONE, http(gzip.compress(bytes(50_000_000)), "Content-Encoding: gzip")),
    "a redirect to a metadata address": (UNCLEAR, http(b"", _METADATA_ADDRESS, status=302)),
    "500": (UNCLEAR, http(b"", status=500)),
    "403": (UNCLEAR, http(b"", status=403)),
    "no byte": (UNCLEAR, b"HTTP/1.1 "),
    "less than announced": (UNCLEAR, b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{}"),
    "10,000 headers": (UNCLEAR, b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 10_000 + b"\r\n{}"),
    "a url that is a number": (DONE, _card(url=7)),
    "a url of another host": (UNCLEAR, _card(url="https://evil.example/")),
    "a url of a metadata address": (UNCLEAR, _card(url="http://169.254.169.254/latest/")),
    "a url of a file": (UNCLEAR, _card(url="file:///etc/passwd")),
    "a url with a user": (UNCLEAR, _card(url="http://127.0.0.1@evil.example/")),
    "a url with a line break": (DONE, _card(url="http://127.0.0.1/\r\nX: y")),
    "a url of 1 MB": (DONE, _card(url="http://127.0.0.1/" + "x" * 1_000_000)),
    "a version of the future": (UNCLEAR, _card(protocolVersion="99.0")),
    "a version that is an object": (DONE, _card(protocolVersion={})),
    "another transport": (UNCLEAR, _card(preferredTransport="GRPC")),
    "a transport that is a list": (DONE, _card(preferredTransport=["JSONRPC"])),
    "interfaces that are a string": (DONE, _card(additionalInterfaces="JSONRPC")),
    "capabilities that are a string": (DONE, _card(capabilities="streaming")),
    "capabilities that are odd": (DONE, _card(capabilities={"streaming": "yes", "pushNotifications": 7})),
    "a name of 1 MB": (DONE, _card(name="x" * 1_000_000)),
    "skills that are a number": (DONE, _card(skills=7)),
    "no interface": (DONE, _v1()),
    "interfaces that are numbers": (DONE, _v1(1, 2, 3)),
    "only gRPC": (UNCLEAR, _v1(_interface("{url}", "GRPC"))),
    "ten thousand interfaces": (UNCLEAR, _v1(*(_interface(f"https://h{n}.example/") for n in range(10_000)))),
    "five million interfaces": (UNCLEAR, b'{"name":"A","supportedInterfaces":%s}' % _MANY),
}  # fmt: skip


def good(request_id: str) -> bytes:
    """Right in Simple A2A as well."""
    return http(encode({"jsonrpc": "2.0", "id": request_id, "result": _TASK, "status": "success"}), _JSON)


def bad_inputs() -> Iterator[BadInput]:
    for protocol in _DIALECTS:
        for name, body in _NO_ANSWER.items():
            yield BadInput(f"{protocol}: {name}", protocol, MALFORMED, _plain(body))
    for name, outcome, answer in _TRANSPORT:
        yield BadInput(f"HTTP: {name}", "simple-a2a", outcome, fixed(answer))
    for protocol in ("jsonrpc-2.0", "a2a-0.3"):
        for name, (outcome, made) in {**_JSONRPC, **_TASKS}.items():
            yield BadInput(f"{protocol}: {name}", protocol, outcome, made)
    card = _card(capabilities={"streaming": True})
    for name, (outcome, made) in _STREAMS.items():
        yield BadInput(f"stream: {name}", "auto", outcome, made, card)
    for name, (outcome, given) in _CARDS.items():
        yield BadInput(f"card: {name}", "auto", outcome, good, given)
