"""A zone's answers: each rule of the contract that is not about reading bytes."""

from __future__ import annotations

import asyncio
import json
import threading
from base64 import b64encode
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from datetime import timedelta
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import pytest
from structlog.testing import capture_logs

from trunkline.jsontypes import Json, JsonObject, decode, encode
from trunkline.zones import Zone, ZoneFault
from trunkline.zones.access.policy import CallerRules, ZoneCaller, ZonePolicy
from trunkline.zones.documents import contract_validator

pytestmark = pytest.mark.anyio

CANARY = "xoxb-canary"
ALICE, BOB = (ZoneCaller(name=name, known_by="token") for name in ("alice", "bob"))


RESPONSES = contract_validator("response")


class RunningZone:
    """A zone that runs, and what it says to one caller."""

    def __init__(self, zone: Zone) -> None:
        self.zone = zone
        self._number = 0

    async def call(
        self, method: str, params: Json = None, *, id_: Json = None, caller: ZoneCaller = ALICE
    ) -> JsonObject:
        self._number += 1
        request: JsonObject = {"jsonrpc": "2.0", "id": id_ or f"call-{self._number}", "method": method}
        return await self.send(encode(request if params is None else {**request, "params": params}), caller)

    async def send(self, body: bytes, caller: ZoneCaller = ALICE) -> JsonObject:
        answer = cast("JsonObject", decode((await self.zone.answer(body, caller)).body))
        RESPONSES.validate(answer)
        return answer

    async def result(self, method: str, params: Json = None) -> JsonObject:
        return cast("JsonObject", (await self.call(method, params))["result"])

    async def error(self, method: str, params: Json = None) -> JsonObject:
        return cast("JsonObject", (await self.call(method, params))["error"])


@asynccontextmanager
async def asked(zone: Zone, folder: Path) -> AsyncGenerator[RunningZone]:
    async with zone.running(folder):
        yield RunningZone(zone)


def echo(params: JsonObject) -> object:
    return {"params": sorted(params)}


def zone_with(handler: Any, **options: Any) -> Zone:
    zone = Zone("execution", stop_timeout=0.1)
    zone.method("execute_task", **options)(handler)
    return zone


@pytest.mark.parametrize(
    ("returned", "result"),
    [
        ({"response_text": "hi"}, {"status": "success", "response_text": "hi"}),
        ({"status": "success", "more": [1]}, {"status": "success", "more": [1]}),
        ({}, {"status": "success"}),
        ("hi", {"status": "success", "response_text": "hi"}),
        ("", {"status": "success", "response_text": ""}),
    ],
    ids=["dict", "status", "empty", "text", "empty_text"],
)
async def test_what_a_handler_returns_is_the_result(
    tmp_path: Path, returned: object, result: JsonObject
) -> None:
    async def handler(params: JsonObject) -> object:
        return returned

    async with asked(zone_with(handler), tmp_path) as zone:
        assert await zone.result("execute_task", {}) == result


@pytest.mark.parametrize(
    "returned",
    [
        None,
        5,
        ["a"],
        b"bytes",
        {"status": "accepted", "task_id": "x"},
        {"status": "error"},
        {"status": None},
        {"response_text": 5},
        {"object": object()},
        {"half": "\ud800"},
    ],
    ids=["none", "number", "list", "bytes", "accepted", "error", "null", "no_text", "object", "surrogate"],
)
async def test_what_a_handler_may_not_return_is_an_internal_error(tmp_path: Path, returned: object) -> None:
    async def handler(params: JsonObject) -> object:
        return returned

    async with asked(zone_with(handler), tmp_path) as zone:
        with capture_logs() as logs:
            assert await zone.error("execute_task", {}) == {"code": -32603, "message": "Internal error"}
    assert [line["method"] for line in logs if line["event"] == "zone_handler_failed"] == ["execute_task"]


@pytest.mark.parametrize(
    "error",
    [RuntimeError, ZeroDivisionError, StopIteration, SystemExit, KeyboardInterrupt, TimeoutError, KeyError],
)
@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_what_a_handler_raises_is_for_the_log_and_without_secrets(
    tmp_path: Path, error: type[BaseException], kind: str
) -> None:
    def fail(params: JsonObject) -> object:
        raise error(f"token {params['bot_token']} and {params['deep']}")

    async def fail_later(params: JsonObject) -> object:
        return fail(params)

    async with asked(zone_with(fail if kind == "sync" else fail_later), tmp_path) as zone:
        with capture_logs() as logs:
            params: JsonObject = {
                "bot_token": CANARY,
                "deep": [{"api_key": "key-canary"}],
                "correlation_id": "c-81",
            }
            answer = await zone.error("execute_task", params)
    assert answer == {"code": -32603, "message": "Internal error", "data": {"correlation_id": "c-81"}}
    [line] = [line for line in logs if line["event"] == "zone_handler_failed"]
    assert line["correlation_id"] == "c-81"
    assert "in fail" in line["traceback"]
    assert "canary" not in str(logs)


async def test_a_handler_that_cancels_itself_has_failed(tmp_path: Path) -> None:
    async def cancel(_: JsonObject) -> object:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.Event().wait()
        return {}

    async with asked(zone_with(cancel), tmp_path) as zone:
        with capture_logs() as logs:
            answer = await zone.call("execute_task", {})
    assert answer["error"] == {"code": -32603, "message": "Internal error"}
    assert [line["error"] for line in logs if line["event"] == "zone_handler_failed"] == ["CancelledError"]


WRITTEN: dict[str, Callable[[str], str]] = {
    "plain": str,
    "json": lambda secret: json.dumps({"said": json.dumps({"token": secret})}),
    "repr": repr,
    "address": quote,
    "base64": lambda secret: b64encode(f"token {secret}".encode()).decode(),
    "one_line": lambda secret: " ".join(secret.split()),
}


@pytest.mark.parametrize("written", WRITTEN)
@pytest.mark.parametrize("secret", ["xoxb-canary", 'xoxb-"canary\n/ä='], ids=["token", "hard"])
async def test_no_answer_repeats_a_secret_however_its_handler_has_written_it(
    tmp_path: Path, secret: str, written: str
) -> None:
    said = WRITTEN[written](secret)

    async def repeat(params: JsonObject) -> object:
        if params.get("fails"):
            raise ZoneFault(-32010, said, {"said": said})
        return {"response_text": said, said: [said]}

    async with asked(zone_with(repeat), tmp_path) as zone:
        for more in ({}, {"fails": True}):
            answer = str(await zone.call("execute_task", {"bot_token": secret, **more}))
            assert answer.count("[redacted]") >= 2
            assert "canary" not in answer


async def test_a_fault_that_a_handler_raises_reaches_the_caller_unchanged(tmp_path: Path) -> None:
    async def handler(params: JsonObject) -> object:
        raise ZoneFault(-32050, "No such channel", {"channel": "C1"})

    async with asked(zone_with(handler), tmp_path) as zone:
        told = await zone.error("execute_task", {"correlation_id": "c"})
    assert told == {
        "code": -32050,
        "message": "No such channel",
        "data": {"channel": "C1", "correlation_id": "c"},
    }


@pytest.mark.parametrize(
    "fault",
    [ZoneFault(-32700), ZoneFault(-32600), ZoneFault(-32601), ZoneFault(data={"a": cast("Json", object())})],
    ids=["parse", "invalid", "method", "no_json"],
)
async def test_a_fault_that_is_not_a_handlers_to_raise_is_an_internal_error(
    tmp_path: Path, fault: ZoneFault
) -> None:
    async def handler(params: JsonObject) -> object:
        raise fault

    async with asked(zone_with(handler), tmp_path) as zone:
        answer = await zone.call("execute_task", {}, id_="mine")
    assert answer["id"] == "mine"
    assert cast("JsonObject", answer["error"])["code"] == -32603


SEEN: ContextVar[str] = ContextVar("SEEN")


async def test_a_sync_handler_runs_in_a_thread_and_sees_the_callers_context(tmp_path: Path) -> None:
    def handler(params: JsonObject) -> object:
        return {"thread": threading.current_thread() is threading.main_thread(), "seen": SEEN.get()}

    SEEN.set("here")
    async with asked(zone_with(handler), tmp_path) as zone:
        assert await zone.result("execute_task", {}) == {"status": "success", "thread": False, "seen": "here"}


async def test_an_object_with_an_async_call_is_a_handler(tmp_path: Path) -> None:
    class Handler:
        async def __call__(self, params: JsonObject) -> object:
            return {"called": sorted(params)}

    async with asked(zone_with(Handler()), tmp_path) as zone:
        assert (await zone.result("execute_task", {"a": 1}))["called"] == ["a"]


async def test_a_sync_function_may_return_an_awaitable(tmp_path: Path) -> None:
    async def later(params: JsonObject) -> object:
        return echo(params)

    def promise(params: JsonObject) -> object:
        return later(params)

    async with asked(zone_with(promise), tmp_path) as zone:
        assert (await zone.result("execute_task", {"a": 1}))["params"] == ["a"]


@pytest.mark.parametrize("method", ["foobar", "", "rpc.discover", "rpc.", "Execute_task", "execute_task "])
async def test_a_method_that_is_not_there_is_not_found(tmp_path: Path, method: str) -> None:
    async with asked(zone_with(echo), tmp_path) as zone:
        answer = await zone.call(method, {"correlation_id": "c-81"}, id_="1")
    assert answer == {
        "jsonrpc": "2.0",
        "id": "1",
        "error": {"code": -32601, "message": "Method not found", "data": {"correlation_id": "c-81"}},
    }


@pytest.mark.parametrize(
    "name", ["", "rpc.execute", "rpc.", "get_task_result", "GetAsyncTaskResult", "taken"]
)
def test_a_name_that_is_reserved_or_taken_cannot_be_registered(name: str) -> None:
    zone = Zone("execution")
    zone.method("taken")(echo)
    with pytest.raises(ValueError, match=r"name may not|already"):
        zone.method(name)


@pytest.mark.parametrize("name", ["", "a b", "../zone", "-x", "x" * 129])
def test_a_zone_needs_a_plain_name(name: str) -> None:
    with pytest.raises(ValueError, match="name can contain letters"):
        Zone(name)


@pytest.mark.parametrize("seconds", [0, -1.0])
def test_a_time_that_is_none_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match="more than 0 seconds"):
        Zone("execution", accept_after=seconds)
    with pytest.raises(ValueError, match="more than 0 seconds"):
        Zone("execution", deadline=seconds)
    with pytest.raises(ValueError, match="more than 0 seconds"):
        Zone("execution").method("execute_task", deadline=seconds)


def test_durations_are_timedeltas_or_seconds() -> None:
    zone = Zone("execution", accept_after=2, deadline=timedelta(minutes=1), stop_timeout=timedelta(seconds=3))
    assert (zone.accept_after, zone.deadline, zone.stop_timeout) == (2.0, 60.0, 3.0)


async def test_wrong_params_are_named_and_the_handler_is_not_called(tmp_path: Path) -> None:
    called: list[object] = []
    schema: JsonObject = {
        "type": "object",
        "required": ["channel"],
        "properties": {"bot_token": {"type": "integer"}},
    }
    async with asked(zone_with(called.append, params=schema), tmp_path) as zone:
        error = await zone.error("execute_task", {"bot_token": CANARY, "correlation_id": "c-81"})
        by_position = await zone.error("execute_task", [1, CANARY])
        left_out = await zone.error("execute_task")
    data = cast("dict[str, Any]", error["data"])
    assert error["code"] == -32602
    assert {field["path"] for field in data["fields"]} == {"channel", "bot_token"}
    assert data["correlation_id"] == "c-81"
    assert by_position["code"] == left_out["code"] == -32602
    assert "canary" not in str((error, by_position))
    assert called == []


async def test_an_id_comes_back_byte_for_byte(tmp_path: Path) -> None:
    async with asked(zone_with(echo), tmp_path) as zone:
        for text in (
            b"1.50",
            b"-0",
            b"1E5",
            rb'"\u00e4\/"',
            '"ä"'.encode(),
            b"123456789012345678901234567890",
        ):
            body = b'{"jsonrpc":"2.0","id":' + text + b',"method":"execute_task","params":{}}'
            reply = await zone.zone.answer(body, ALICE)
            assert reply.body.startswith(b'{"jsonrpc":"2.0","id":' + text + b',"result":')


async def test_a_long_request_is_read_like_a_short_one(tmp_path: Path) -> None:
    async with asked(zone_with(echo), tmp_path) as zone:
        assert (await zone.result("execute_task", {"text": "x" * 1_000_000}))["params"] == ["text"]
        broken = await zone.send(b'{"jsonrpc":"2.0","id":"1","params":"' + b"x" * 1_000_000)
    assert cast("JsonObject", broken["error"])["code"] == -32700


async def test_every_invalid_request_has_no_id_even_where_one_could_be_read(tmp_path: Path) -> None:
    async with asked(zone_with(echo), tmp_path) as zone:
        for body in (
            b'{"jsonrpc":"1.0","id":"1","method":"execute_task"}',
            b'{"jsonrpc":"2.0","id":"1"}',
            b"[]",
        ):
            answer = await zone.send(body)
            assert answer["id"] is None
            assert cast("JsonObject", answer["error"])["message"] == "Invalid Request"


async def test_the_same_id_runs_once_and_another_callers_id_is_another(tmp_path: Path) -> None:
    runs: list[str] = []

    async def handler(params: JsonObject) -> object:
        runs.append(str(params["text"]))
        return {"runs": len(runs)}

    async with asked(zone_with(handler), tmp_path) as zone:
        first = await zone.call("execute_task", {"text": "a", "bot_token": "one"}, id_="1")
        again = await zone.call("execute_task", {"bot_token": "two", "text": "a"}, id_="1")
        other = await zone.call("execute_task", {"text": "b"}, id_="1")
        bobs = await zone.call("execute_task", {"text": "b"}, id_="1", caller=BOB)
        number = await zone.call("execute_task", {"text": "c"}, id_=1)
    assert again == first
    assert cast("JsonObject", other["error"])["code"] == -32000
    assert cast("JsonObject", bobs["result"])["runs"] == 2
    assert cast("JsonObject", number["result"])["runs"] == 3
    assert runs == ["a", "b", "c"]


async def test_slow_work_is_accepted_and_asked_for_under_both_names(tmp_path: Path) -> None:
    gate = asyncio.Event()

    async def handler(params: JsonObject) -> object:
        await gate.wait()
        return "done"

    zone = Zone("execution", accept_after=0.01)
    zone.method("execute_task")(handler)
    async with asked(zone, tmp_path) as asking:
        accepted = await asking.result("execute_task", {})
        assert accepted["status"] == "accepted"
        question: JsonObject = {"task_id": accepted["task_id"]}
        assert await asking.result("get_task_result", question) == accepted
        assert zone.is_busy
        gate.set()
        while (result := await asking.result("GetAsyncTaskResult", question)) == accepted:
            await asyncio.sleep(0)
        assert result == {"status": "success", "response_text": "done"}
        assert not zone.is_busy
        bobs = await asking.call("get_task_result", question, caller=BOB)
    [field] = cast("dict[str, Any]", bobs["error"])["data"]["fields"]
    assert field["path"] == "task_id"


@pytest.mark.parametrize("params", [{}, {"task_id": 5}, {"task_id": ""}, {"task_id": "unknown"}, []])
async def test_a_question_about_no_task_is_invalid_params(tmp_path: Path, params: Json) -> None:
    async with asked(Zone("execution"), tmp_path) as zone:
        assert (await zone.error("get_task_result", params))["code"] == -32602


async def test_work_beyond_its_deadline_is_a_timeout(tmp_path: Path) -> None:
    async def handler(params: JsonObject) -> object:
        await asyncio.Event().wait()

    async with asked(zone_with(handler, deadline=0.01), tmp_path) as zone:
        assert (await zone.error("execute_task", {}))["code"] == -32001


async def test_a_policy_refuses_with_a_status_and_the_requests_id(tmp_path: Path) -> None:
    zone = Zone("execution", policy=ZonePolicy(callers={"alice": CallerRules(methods=frozenset({"other"}))}))
    zone.method("execute_task")(echo)
    body = b'{"jsonrpc":"2.0","id":1.50,"method":"execute_task","params":{"correlation_id":"c-81"}}'
    async with asked(zone, tmp_path):
        refused, unknown = await zone.answer(body, ALICE), await zone.answer(body, BOB)
    for reply in (refused, unknown):
        assert reply.status == 403
        answer = cast("dict[str, Any]", decode(reply.body))
        RESPONSES.validate(answer)
        assert answer["error"]["code"] == -32000
        assert answer["error"]["data"]["correlation_id"] == "c-81"
        assert b'"id":1.50,' in reply.body


async def test_a_method_that_only_the_policy_has_is_logged_at_the_start(tmp_path: Path) -> None:
    rules = CallerRules(methods=frozenset({"execute_task", "get_task_result", "exceute_task"}))
    for policy in (ZonePolicy(defaults=rules), ZonePolicy(callers={"alice": rules})):
        zone = Zone("execution", policy=policy)
        zone.method("execute_task")(echo)
        with capture_logs() as logs:
            async with zone.running(tmp_path):
                pass
        [line] = [line for line in logs if line["event"] == "zone_methods_unknown"]
        assert line["methods"] == ["exceute_task"]


async def test_a_zone_that_does_not_run_takes_nothing() -> None:
    answer = await RunningZone(zone_with(echo)).call("execute_task", {})
    assert cast("JsonObject", answer["error"])["code"] == -32000


async def test_a_zone_runs_once_at_a_time(tmp_path: Path) -> None:
    zone = zone_with(echo)
    async with asked(zone, tmp_path):
        with pytest.raises(RuntimeError, match="running already"):
            async with zone.running(tmp_path / "other"):
                pass
    async with asked(zone, tmp_path) as again:
        assert await again.result("execute_task", {})


async def test_nothing_that_is_logged_at_debug_has_a_secret(tmp_path: Path) -> None:
    async with asked(zone_with(echo), tmp_path) as zone:
        with capture_logs() as logs:
            await zone.call("execute_task", {"bot_token": CANARY, "nested": {"password": CANARY}})
            await zone.call("nowhere", {"bot_token": CANARY})
            await zone.send(b'{"bot_token":"' + CANARY.encode())
    assert [line["outcome"] for line in logs if line["event"] == "zone_call"] == ["done", "-32601"]
    assert "canary" not in str(logs)


async def test_a_zone_without_a_folder_says_that_it_forgets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRUNKLINE_DATA", raising=False)
    zone = zone_with(echo)
    with capture_logs() as logs:
        async with zone.running():
            assert await RunningZone(zone).result("execute_task", {})
    assert "zone_not_durable" in [line["event"] for line in logs]


class FailingPolicy(ZonePolicy, frozen=True):
    def identity_of(self, params: JsonObject) -> JsonObject:
        raise LookupError(f"nothing to see in {params}")


async def test_a_mistake_of_ours_is_an_internal_error_with_its_id(tmp_path: Path) -> None:
    zone = Zone("execution", policy=FailingPolicy())
    zone.method("execute_task")(echo)
    async with asked(zone, tmp_path) as asking:
        with capture_logs() as logs:
            answer = await asking.call(
                "execute_task", {"bot_token": CANARY, "correlation_id": "c-81"}, id_="mine"
            )
    assert answer["id"] == "mine"
    assert answer["error"] == {
        "code": -32603,
        "message": "Internal error",
        "data": {"correlation_id": "c-81"},
    }
    [line] = [line for line in logs if line["event"] == "zone_failed"]
    assert "nothing to see" in line["traceback"]
    assert "canary" not in str(logs)
