"""
The exchanges between two zones, case by case: each is made over every transport, with the same bytes at both ends.

The ids are fixed, so that the bytes are the same each time. Ids that a zone or a client generates (of a task, of a
poll) are placeholders in the golden files.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from hashlib import sha256

import pytest
from tests.contract.zones.transports import ZoneTransport

from trunkline.jsontypes import Json, JsonObject, decode, encode
from trunkline.zones.client import ZoneCallFailed

# What an id begins with that is not made up on the way.
FIXED = "00000000-0000-4000-8000-"

Case = Callable[[ZoneTransport], Awaitable[None]]


def fixed(name: str) -> str:
    return FIXED + sha256(name.encode()).hexdigest()[:12]


def request(id_: str, method: str = "execute_task", params: Json = None) -> bytes:
    return encode({"jsonrpc": "2.0", "id": fixed(id_), "method": method, "params": params})


def read(body: bytes) -> JsonObject:
    message = decode(body)
    assert isinstance(message, dict)
    return message


def result(body: bytes) -> JsonObject:
    found = read(body)["result"]
    assert isinstance(found, dict)
    return found


def error(body: bytes) -> JsonObject:
    found = read(body)["error"]
    assert isinstance(found, dict)
    return found


def data(body: bytes) -> JsonObject:
    found = error(body)["data"]
    assert isinstance(found, dict)
    return found


# --- bytes


async def success(transport: ZoneTransport) -> None:
    answer = await transport.send(request("success", params={"text": "tea 🍵"}))
    assert read(answer)["id"] == fixed("success")
    assert result(answer) == {"status": "success", "response_text": "did tea 🍵", "runs": 1}


async def accepted_and_asked_for(transport: ZoneTransport) -> None:
    answer = result(await transport.send(request("accepted", "slow", {"text": "a walk"})))
    assert answer["status"] == "accepted"
    question: JsonObject = {"task_id": answer["task_id"]}
    first = await transport.send(request("accepted, asked", "get_task_result", question))
    assert result(first) == answer
    second = await transport.send(request("accepted, asked again", "get_task_result", question))
    assert result(second) == {"status": "success", "response_text": "did a walk at last"}
    third = await transport.send(request("accepted, by its other name", "GetAsyncTaskResult", question))
    assert result(third) == result(second)


async def accepted_and_failed(transport: ZoneTransport) -> None:
    answer = result(await transport.send(request("failed late", "slow_failure", {"text": "p1"})))
    question: JsonObject = {"task_id": answer["task_id"]}
    await transport.send(request("failed late, asked", "get_task_result", question))
    end = await transport.send(request("failed late, asked again", "get_task_result", question))
    assert error(end)["code"] == -32050


async def unknown_task(transport: ZoneTransport) -> None:
    answer = await transport.send(request("unknown", "get_task_result", {"task_id": fixed("no task")}))
    assert error(answer)["code"] == -32602


async def same_id_twice(transport: ZoneTransport) -> None:
    body = request("twice", params={"text": "once"})
    answers = [await transport.send(body), await transport.send(body)]
    assert answers[0] == answers[1]
    assert result(answers[1])["runs"] == 1


async def same_id_at_once(transport: ZoneTransport) -> None:
    body = request("at once", "slow", {"text": "one walk"})
    first, second = await asyncio.gather(transport.send(body), transport.send(body))
    assert first == second
    await transport.send(request("at once, asked", "get_task_result", {"task_id": result(first)["task_id"]}))


async def same_id_with_other_params(transport: ZoneTransport) -> None:
    await transport.send(request("reused", params={"text": "this"}))
    answer = await transport.send(request("reused", params={"text": "that"}))
    assert error(answer)["code"] == -32000
    assert data(answer)["reason"] == "id_reused"


async def numbers_as_ids(transport: ZoneTransport) -> None:
    for id_ in (b"7", b"7.5", b"-0.0"):
        body = b'{"jsonrpc":"2.0","id":%b,"method":"execute_task","params":{"text":"%b"}}' % (id_, id_)
        assert (await transport.send(body)).startswith(b'{"jsonrpc":"2.0","id":%b,"result":' % id_)


async def invalid_params(transport: ZoneTransport) -> None:
    answer = await transport.send(request("invalid", params={"times": 0, "correlation_id": "c-1"}))
    assert error(answer)["code"] == -32602
    assert data(answer)["fields"] == [
        {"path": "text", "message": "is required"},
        {"path": "times", "message": "the value is less than the minimum of 1"},
    ]
    assert data(answer)["correlation_id"] == "c-1"


async def profile(transport: ZoneTransport) -> None:
    params: JsonObject = {"channel": "C1", "text": "hello", "bot_token": "xoxb-example"}
    more: JsonObject = {"thread_ts": "1.2", "attachments": [{"title": "a"}], "team_id": "T1", "user_id": "U1"}
    answer = await transport.send(request("profile", "post", {**params, **more, "correlation_id": "c-2"}))
    assert result(answer)["response_text"] == "posted to C1"
    lacking = await transport.send(request("lacking", "post", {"bot_token": "xoxb-example", "text": 5}))
    assert error(lacking)["code"] == -32602
    assert b"xoxb" not in answer + lacking


async def renewed_secret(transport: ZoneTransport) -> None:
    params: JsonObject = {"channel": "C1", "text": "hello"}
    first = await transport.send(request("renewed", "post", {**params, "bot_token": "xoxb-first"}))
    second = await transport.send(request("renewed", "post", {**params, "bot_token": "xoxb-second"}))
    assert first == second


async def method_not_found(transport: ZoneTransport) -> None:
    assert error(await transport.send(request("not found", "no_such_method", {})))["code"] == -32601


async def handlers_own_error(transport: ZoneTransport) -> None:
    answer = await transport.send(request("own error", "fail", {"text": "p1", "correlation_id": "c-3"}))
    assert error(answer) == {
        "code": -32050,
        "message": "The printer is out of paper.",
        "data": {"printer": "p1", "correlation_id": "c-3"},
    }


async def internal_error(transport: ZoneTransport) -> None:
    answer = await transport.send(
        request("internal", "crash", {"text": "a spanner", "correlation_id": "c-4"})
    )
    assert error(answer) == {
        "code": -32603,
        "message": "Internal error",
        "data": {"correlation_id": "c-4"},
    }


async def timeout(transport: ZoneTransport) -> None:
    answer = await transport.send(request("timeout", "late", {"correlation_id": "c-5"}))
    assert error(answer)["code"] == -32001
    assert data(answer)["correlation_id"] == "c-5"


async def concurrent_calls(transport: ZoneTransport) -> None:
    """They end in another order than they begin."""
    bodies = [request(name, "meet", {"place": "bytes", "text": name}) for name in ("Ann", "Ben", "Cleo")]
    answers = await asyncio.gather(*(transport.send(body) for body in bodies))
    assert [result(answer)["response_text"] for answer in answers] == [
        f"{name} was there" for name in ("Ann", "Ben", "Cleo")
    ]


# --- the zone client


async def client_success(transport: ZoneTransport) -> None:
    found = await transport.client().execute_task({"text": "by link"}, id=fixed("link"), correlation_id="c-6")
    assert found == {"status": "success", "response_text": "did by link", "runs": 1}


async def client_asks_for_accepted_work(transport: ZoneTransport) -> None:
    found = await transport.client("slow").execute_task({"text": "a link's walk"}, id=fixed("link, accepted"))
    assert found == {"status": "success", "response_text": "did a link's walk at last"}


async def client_with_a_profile(transport: ZoneTransport) -> None:
    """The correlation id travels in the params, and comes back in errors."""
    params: JsonObject = {"channel": "C1", "text": "hello", "bot_token": "xoxb-example"}
    posted = transport.client("post", profile="slack")
    found = await posted.execute_task(params, id=fixed("link, profile"), correlation_id="c-6")
    assert found["response_text"] == "posted to C1"
    crashed = transport.client("crash", profile="slack")
    with pytest.raises(ZoneCallFailed) as raised:
        await crashed.execute_task(params, id=fixed("link, profile, crash"), correlation_id="c-7")
    assert raised.value.error.jsonrpc_code == -32603
    assert b'"correlation_id":"c-7"' in transport.here[-1].response
    with pytest.raises(ZoneCallFailed) as unsent:
        await posted.execute_task({"text": "hello"})
    assert unsent.value.error.code == "request_not_encodable"


async def client_comes_again(transport: ZoneTransport) -> None:
    first = await transport.client().execute_task({"text": "once by link"}, id=fixed("link, twice"))
    assert await transport.client().execute_task({"text": "once by link"}, id=fixed("link, twice")) == first
    assert first["runs"] == 1
    assert await client_code(transport, "execute_task", {"text": "otherwise"}, "link, twice") == -32000


async def client_errors(transport: ZoneTransport) -> None:
    codes = [
        await client_code(transport, "execute_task", {"times": 1}),
        await client_code(transport, "no_such_method", {}),
        await client_code(transport, "fail", {"text": "p1"}),
        await client_code(transport, "crash", {"text": "a spanner"}),
        await client_code(transport, "late", {}),
        await client_code(transport, "slow_failure", {"text": "p1"}),
    ]
    assert codes == [-32602, -32601, -32050, -32603, -32001, -32050]


async def client_code(transport: ZoneTransport, method: str, params: JsonObject, id_: str = "") -> int | None:
    with pytest.raises(ZoneCallFailed) as raised:
        await transport.client(method).execute_task(params, id=fixed(id_ or f"link, {method}"))
    return raised.value.error.jsonrpc_code


async def client_calls_at_once(transport: ZoneTransport) -> None:
    client = transport.client("meet")
    names = ("Dan", "Eve", "Fay")
    answers = await asyncio.gather(
        *(client.execute_task({"place": "link", "text": name}, id=fixed(f"link, {name}")) for name in names)
    )
    assert [answer["response_text"] for answer in answers] == [f"{name} was there" for name in names]


# --- bytes that are no request of the contract


async def reserved_method(transport: ZoneTransport) -> None:
    assert error(await transport.send(request("reserved", "rpc.discover", {})))["code"] == -32601


async def positional_params(transport: ZoneTransport) -> None:
    assert error(await transport.send(request("positional", params=["tea"])))["code"] == -32602


async def invalid_request(transport: ZoneTransport) -> None:
    bodies = (
        b'{"jsonrpc":"1.0","id":"a","method":"execute_task","params":{}}',
        b'{"id":"a","method":"execute_task","params":{}}',
        b'{"jsonrpc":"2.0","id":"a","params":{}}',
        b'{"jsonrpc":"2.0","id":"a","method":1,"params":"bar"}',
        b'{"jsonrpc":"2.0","id":"a","method":"execute_task","params":"bar"}',
    )
    for body in bodies:
        await refused(await transport.send(body), -32600)
    for body in (b"1", b'{"jsonrpc":"2.0","id":null,"method":"execute_task","params":{}}', b'{"id":true}'):
        await refused(await transport.send_unlabelled(body), -32600)


async def refused(answer: bytes, code: int) -> None:
    assert error(answer)["code"] == code
    assert read(answer)["id"] is None


async def parse_error(transport: ZoneTransport) -> None:
    for body in (b'{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]', b"\xff\xfe", b"{"):
        await refused(await transport.send_unlabelled(body), -32700)


async def batch(transport: ZoneTransport) -> None:
    for body in (b"[]", b"[1]", b"[" + request("in a batch", params={"text": "no"}) + b"]"):
        await refused(await transport.send_unlabelled(body), -32600)


async def notification(transport: ZoneTransport) -> None:
    body = b'{"jsonrpc":"2.0","method":"execute_task","params":{"text":"no"}}'
    await refused(await transport.send_unlabelled(body), -32600)


PROPER: Mapping[str, Case] = {
    case.__name__: case
    for case in (
        success,
        accepted_and_asked_for,
        accepted_and_failed,
        unknown_task,
        same_id_twice,
        same_id_at_once,
        same_id_with_other_params,
        numbers_as_ids,
        invalid_params,
        profile,
        renewed_secret,
        method_not_found,
        handlers_own_error,
        internal_error,
        timeout,
        concurrent_calls,
        client_success,
        client_asks_for_accepted_work,
        client_with_a_profile,
        client_comes_again,
        client_errors,
        client_calls_at_once,
    )
}
# In these the requests are not as the contract has them; the answers are.
IMPROPER: Mapping[str, Case] = {
    case.__name__: case
    for case in (reserved_method, positional_params, invalid_request, parse_error, batch, notification)
}
CASES = {**PROPER, **IMPROPER}
