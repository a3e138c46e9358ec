"""
What can be wrong with an agent, one thing at a time, and the finding that must say so.

A defect is a function that gets a request and the good agent's reply to it, and gives another reply.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple
from uuid import uuid4

import msgspec
from tests.checker.good_agents import (
    AgentRequest,
    ClosesConnection,
    EndlessAnswer,
    NeverAnswers,
    Reaction,
    Reply,
    answered,
    jsonrpc_agent,
    refusal,
)

from trunkline.jsontypes import Json, JsonObject, decode, encode

Alteration = Callable[[AgentRequest, Reply], Reaction]


class Defect(NamedTuple):
    # The id of the finding that must fail.
    found_by: str
    alter: Alteration
    protocol: str = "jsonrpc-2.0"
    # Whether it shows only in answers to messages.
    active: bool = False
    # What is asked for with --protocol; by default what the agent speaks.
    asked_for: str | None = None
    # The common issue of the migration guide that it is.
    issue: int | None = None


def on_result(change: Callable[[JsonObject], object]) -> Alteration:
    """Changes the whole answer where it is a result."""

    def alter(asked: AgentRequest, good: Reply) -> Reaction:
        if good.is_result:
            change(good.object)
        return good

    return alter


def in_result(change: Callable[[JsonObject], object]) -> Alteration:
    return on_result(lambda answer: change(_object(answer["result"])))


def in_task(change: Callable[[JsonObject], object]) -> Alteration:
    return in_result(lambda result: change(_object(result["task"])))


def on_error(change: Callable[[JsonObject], object]) -> Alteration:
    def alter(asked: AgentRequest, good: Reply) -> Reaction:
        if good.is_error:
            change(good.object)
        return good

    return alter


def when(applies: Callable[[AgentRequest], bool], instead: Reaction) -> Alteration:
    return lambda asked, good: instead if applies(asked) else good


def codes(wrong: Mapping[int, int]) -> Alteration:
    """Errors under other codes."""

    def change(answer: JsonObject) -> None:
        error = answer["error"]
        # The answer to a GET is no JSON-RPC.
        if isinstance(error, dict) and isinstance(error["code"], int):
            error["code"] = wrong.get(error["code"], error["code"])

    return on_error(change)


def id_as(change: Callable[[str], Json]) -> Alteration:
    def alter(asked: AgentRequest, good: Reply) -> Reaction:
        if isinstance(good.object.get("id"), str):
            good.object["id"] = change(str(good.object["id"]))
        return good

    return alter


def refuses(applies: Callable[[AgentRequest], bool]) -> Alteration:
    """Refuses good messages."""

    def alter(asked: AgentRequest, good: Reply) -> Reaction:
        if good.is_result and applies(asked):
            return refusal(asked, -32602, "Field 'query' is missing")
        return good

    return alter


def ignores(*fields: str) -> Alteration:
    """Does not look at these fields of the request, whatever they hold."""
    usual: JsonObject = {"jsonrpc": "2.0", "method": "message/send"}

    def alter(asked: AgentRequest, good: Reply) -> Reaction:
        if not isinstance(asked.value, dict):
            return good
        value = asked.object | {name: usual[name] for name in fields}
        return jsonrpc_agent(msgspec.structs.replace(asked, value=value))

    return alter


def _object(value: Json) -> JsonObject:
    assert isinstance(value, dict)
    return value


def _first(value: Json) -> JsonObject:
    assert isinstance(value, list)
    return _object(value[0])


def is_post(asked: AgentRequest) -> bool:
    return asked.method == "POST"


def has_bad_params(asked: AgentRequest) -> bool:
    return asked.rpc_method == "message/send" and not asked.text and asked.object.get("jsonrpc") == "2.0"


def is_broken_json(asked: AgentRequest) -> bool:
    return is_post(asked) and asked.value is None


def is_odd(asked: AgentRequest) -> bool:
    return asked.text in ("42", "null", "[]") or '"query": 42' in asked.text


HTML = Reply(status=200, raw=b"<html><body>Welcome</body></html>", headers={"Content-Type": "text/html"})
FAILED = Reply(status=500, raw=b"<h1>Internal Server Error</h1>", headers={"Content-Type": "text/html"})
UNREAD = Reply(status=415, value={"error": "Content-Type must be application/x-www-form-urlencoded"})


def _unwrapped(asked: AgentRequest, good: Reply) -> Reaction:
    return Reply(value=good.result) if good.is_result else good


def _error_in_result(asked: AgentRequest, good: Reply) -> Reaction:
    if not good.is_error:
        return good
    return Reply(value={"jsonrpc": "2.0", "id": good.object["id"], "result": {"error": good.object["error"]}})


def _failure_as_result(asked: AgentRequest, good: Reply) -> Reaction:
    return answered(asked, {"status": "error", "error": "Out of paper"}) if good.is_result else good


def _reads_forms(asked: AgentRequest, good: Reply) -> Reaction:
    return refusal(asked, -32700, "Parse error: no form") if is_post(asked) else good


def _number_where_it_looks_like_one(call_id: str) -> Json:
    return int(call_id) if call_id.isdecimal() else call_id


def _ascii_only(asked: AgentRequest) -> bool:
    return not asked.text.isascii()


def _taken(asked: AgentRequest, good: Reply) -> Reaction:
    return (
        Reply(value={"task_id": "", "status": "success", "output": {}, "error": None})
        if is_post(asked)
        else good
    )


def _created(asked: AgentRequest, good: Reply) -> Reaction:
    return msgspec.structs.replace(good, status=201) if good.is_result else good


def _missing_version_is_fine(asked: AgentRequest, good: Reply) -> Reaction:
    return good if "jsonrpc" in asked.object else ignores("jsonrpc")(asked, good)


def _knows_every_task(asked: AgentRequest, good: Reply) -> Reaction:
    if asked.rpc_method != "tasks/get":
        return good
    return answered(
        asked, {"kind": "task", "id": "any", "contextId": "any", "status": {"state": "completed"}}
    )


def on_card(change: Callable[[JsonObject], object]) -> Alteration:
    def alter(asked: AgentRequest, good: Reply) -> Reaction:
        if asked.wants_card:
            change(good.object)
        return good

    return alter


def _set(name: str, value: Json) -> Callable[[JsonObject], object]:
    return lambda answer: answer.update({name: value})


def _drop(name: str) -> Callable[[JsonObject], object]:
    return lambda answer: answer.pop(name, None)


def on_success(change: Callable[[JsonObject], object]) -> Alteration:
    """Changes what an agent of Simple A2A says when it is done."""

    def alter(asked: AgentRequest, good: Reply) -> Reaction:
        del asked
        if good.object.get("status") == "success":
            change(good.object)
        return good

    return alter


def with_headers(headers: Mapping[str, str]) -> Alteration:
    def alter(asked: AgentRequest, good: Reply) -> Reaction:
        del asked
        return msgspec.structs.replace(good, headers=headers)

    return alter


def with_body(
    change: Callable[[bytes], bytes], *, applies: Callable[[Reply], bool] = lambda _: True
) -> Alteration:
    """Changes the bytes of answers to POSTs."""

    def alter(asked: AgentRequest, good: Reply) -> Reaction:
        if not is_post(asked) or not applies(good):
            return good
        return msgspec.structs.replace(good, raw=change(encode(good.value)))

    return alter


def on_result_body(change: Callable[[bytes], bytes]) -> Alteration:
    return with_body(change, applies=lambda reply: reply.is_result)


def _latin_1(body: bytes) -> bytes:
    return body.decode().encode("latin-1", "replace")


def _own_id_for_broken_json(asked: AgentRequest, good: Reply) -> Reaction:
    if is_broken_json(asked):
        good.object["id"] = "unknown"
    return good


def _numbers_as_texts_in_results(asked: AgentRequest, good: Reply) -> Reaction:
    return _text_ids(asked, good) if good.is_result else good


def _works_on(result: JsonObject) -> None:
    result.update({"id": "t-1", "status": {"state": "working"}, "artifacts": []})


def _forgets_its_tasks(asked: AgentRequest, good: Reply) -> Reaction:
    if asked.rpc_method == "tasks/get":
        return refusal(asked, -32001, "Task not found")
    return in_result(_works_on)(asked, good)


def _mistakes_its_tasks(asked: AgentRequest, good: Reply) -> Reaction:
    if asked.rpc_method != "tasks/get" or "no-such-task" in asked.body.decode():
        return _forgets_its_tasks(asked, good)
    return answered(asked, {"id": "t-2", "status": {"state": "working"}})


def _own_code(asked: AgentRequest, good: Reply) -> Reaction:
    return refusal(asked, 17, "No") if is_odd(asked) else good


def _fail(answer: JsonObject) -> None:
    answer.update({"status": "error", "output": None, "error": "Field 'query' is missing"})


def _text_ids(asked: AgentRequest, good: Reply) -> Reaction:
    if isinstance(good.object.get("id"), int):
        good.object["id"] = str(asked.object["id"])
    return good


DEFECTS: Mapping[str, Defect] = {
    # the eight common issues
    "looks-for-its-input-elsewhere": Defect("input-extracted", refuses(lambda _: True), active=True, issue=1),
    "takes-json-only": Defect(
        "input-text", refuses(lambda a: a.text[:1] not in '{["n4'), active=True, issue=1
    ),
    "takes-text-only": Defect("input-json", refuses(lambda a: a.text.startswith("{")), active=True, issue=1),
    "hears-nothing": Defect(
        "input-extracted",
        in_result(lambda r: _first(_first(r["history"])["parts"]).update({"text": ""})),
        active=True,
        issue=1,
    ),
    "result-without-jsonrpc": Defect("result-jsonrpc", on_result(_drop("jsonrpc")), active=True, issue=2),
    "result-without-id": Defect("result-id-present", on_result(_drop("id")), active=True, issue=2),
    "result-without-envelope": Defect("result-present", _unwrapped, active=True, issue=2),
    "result-and-error": Defect(
        "result-present", on_result(_set("error", {"code": 0, "message": "none"})), active=True, issue=2
    ),
    "errors-without-jsonrpc": Defect("error-jsonrpc", on_error(_drop("jsonrpc")), issue=2),
    "no-artifacts": Defect("result-artifacts", in_result(_set("artifacts", [])), active=True, issue=3),
    "artifacts-without-parts": Defect(
        "result-artifacts", in_result(lambda r: _first(r["artifacts"]).pop("parts")), active=True, issue=3
    ),
    "state-success": Defect(
        "result-state", in_result(_set("status", {"state": "success"})), active=True, issue=4
    ),
    "status-is-a-text": Defect("result-state", in_result(_set("status", "completed")), active=True, issue=4),
    "works-on-and-cannot-be-asked": Defect("works-in-workflow", in_result(_works_on), active=True),
    "works-on-and-forgets-it": Defect("works-in-workflow", _forgets_its_tasks, active=True),
    "works-on-and-tells-of-another": Defect("works-in-workflow", _mistakes_its_tasks, active=True),
    "errors-in-results": Defect("error-object", _error_in_result, issue=5),
    "failures-in-results": Defect("error-object", _failure_as_result, active=True, issue=5),
    "error-is-a-text": Defect("error-code-and-message", on_error(_set("error", "It failed")), issue=5),
    "history-without-roles": Defect(
        "result-history", in_result(lambda r: _first(r["history"]).pop("role")), active=True, issue=6
    ),
    "history-without-parts": Defect(
        "result-history", in_result(lambda r: _first(r["history"]).pop("parts")), active=True, issue=6
    ),
    "no-history": Defect("result-history", in_result(_drop("history")), active=True, issue=6),
    "refuses-our-content-type": Defect("accepts-json", when(is_post, UNREAD), issue=7),
    "reads-forms": Defect("accepts-json", _reads_forms, issue=7),
    "answers-with-another-id": Defect("result-id", on_result(_set("id", "task-9")), active=True, issue=8),
    "ids-become-numbers": Defect("error-id", id_as(_number_where_it_looks_like_one), issue=8),
    "ids-are-cut": Defect("error-id", id_as(lambda call_id: call_id[:64]), issue=8),
    "ids-lose-letters": Defect(
        "error-id", id_as(lambda call_id: call_id.encode("ascii", "replace").decode()), issue=8
    ),
    "errors-without-id": Defect("error-id", on_error(_set("id", None)), issue=8),
    # requests that nobody looks at
    "any-version": Defect("version-checked", ignores("jsonrpc")),
    "no-version-is-fine": Defect("version-checked", _missing_version_is_fine),
    "any-method": Defect("method-checked", when(lambda a: a.rpc_method == "trunkline/no-such-method", HTML)),
    "unknown-method-is-invalid": Defect("method-checked", codes({-32601: -32600})),
    # errors
    "error-without-code": Defect("error-code-and-message", on_error(_set("error", {"message": "It failed"}))),
    "error-says-nothing": Defect(
        "error-message", on_error(lambda answer: _object(answer["error"]).update({"message": ""}))
    ),
    "every-request-crashes-it": Defect(
        "answers-whole", when(lambda asked: asked.method == "POST", ClosesConnection()), active=True
    ),
    "odd-input-crashes-it": Defect("answers-whole", when(is_odd, ClosesConnection()), active=True),
    "page-for-odd-input": Defect("internal-error", when(is_odd, FAILED), active=True),
    "own-error-codes": Defect("internal-error", _own_code, active=True),
    # results
    "parts-without-kind": Defect(
        "result-parts",
        in_result(lambda r: _first(_first(r["artifacts"])["parts"]).pop("kind")),
        active=True,
    ),
    "answers-in-latin-1": Defect("answer-object", with_body(_latin_1), issue=2),
    "result-with-nan": Defect(
        "answer-object",
        on_result_body(lambda body: body.replace(b'"artifacts"', b'"score":NaN,"artifacts"', 1)),
        active=True,
        issue=2,
    ),
    "result-encoded-twice": Defect(
        "answer-object", on_result_body(lambda body: encode(body.decode())), active=True, issue=2
    ),
    "result-in-a-list": Defect(
        "answer-object", on_result_body(lambda body: b"[" + body + b"]"), active=True, issue=2
    ),
    "result-with-201": Defect("result-status", _created, active=True),
    "ascii-only": Defect("input-unicode", refuses(_ascii_only), active=True),
    # the way to it
    "hangs": Defect(
        "answers-in-time", when(lambda a: is_post(a) and a.value == "no request", NeverAnswers())
    ),
    "floods": Defect("answer-size", when(lambda a: is_post(a) and a.value == "no request", EndlessAnswer())),
    "compresses": Defect(
        "answer-plain",
        with_headers({"Content-Type": "application/json", "Content-Encoding": "x-own"}),
    ),
    "redirects": Defect("address", when(is_post, Reply(status=308, headers={"Location": "/elsewhere"}))),
    "is-not-there": Defect("address", when(is_post, Reply(status=404, value={"detail": "Not Found"}))),
    "wants-a-key": Defect("allowed", when(is_post, Reply(status=401, value={"error": "Unauthorized"}))),
    "is-a-website": Defect("speaks-protocol", when(is_post, HTML)),
    "is-not-moved-yet": Defect(
        "speaks-protocol", when(lambda _: False, HTML), protocol="simple-a2a", asked_for="jsonrpc-2.0"
    ),
    # Simple A2A
    "simple-without-status": Defect(
        "simple-answer", on_success(lambda answer: answer.pop("status")), protocol="simple-a2a", active=True
    ),
    "simple-status-ok": Defect(
        "simple-answer", on_success(_set("status", "ok")), protocol="simple-a2a", active=True
    ),
    "simple-other-task": Defect(
        "simple-task-id", on_success(_set("task_id", "another")), protocol="simple-a2a", active=True
    ),
    "simple-no-output": Defect(
        "simple-output", on_success(_set("output", None)), protocol="simple-a2a", active=True
    ),
    "simple-never-succeeds": Defect("simple-success", on_success(_fail), protocol="simple-a2a", active=True),
    # A2A
    "no-card": Defect("card-present", when(lambda a: a.wants_card, Reply(status=404)), protocol="a2a-0.3"),
    "card-is-cut": Defect(
        "card-readable", when(lambda a: a.wants_card, Reply(raw=b'{"name": "Cut')), protocol="a2a-0.3"
    ),
    "card-names-another-host": Defect(
        "card-endpoint", on_card(_set("url", "http://10.0.0.1:8080/agent")), protocol="a2a-0.3"
    ),
    "task-without-context": Defect(
        "result-task", in_result(_drop("contextId")), protocol="a2a-0.3", active=True
    ),
    "knows-every-task": Defect("unknown-task", _knows_every_task, protocol="a2a-0.3"),
    "card-is-away": Defect(
        "protocol-clear", when(lambda a: a.wants_card, FAILED), protocol="a2a-0.3", asked_for="auto"
    ),
    "wants-a-key-for-its-card": Defect(
        "allowed", when(lambda _: True, Reply(status=401)), protocol="a2a-0.3", asked_for="auto"
    ),
    "state-of-an-older-version": Defect(
        "result-state", in_task(_set("status", {"state": "completed"})), protocol="a2a-1.0", active=True
    ),
    "parts-without-content": Defect(
        "result-parts",
        in_task(lambda task: _first(task["artifacts"]).update({"parts": [{"mediaType": "text/plain"}]})),
        protocol="a2a-1.0",
        active=True,
    ),
    "task-not-wrapped": Defect(
        "result-task",
        on_result(lambda answer: answer.update({"result": _object(answer["result"])["task"]})),
        protocol="a2a-1.0",
        active=True,
    ),
}


def says(answer: Callable[[AgentRequest], str]) -> Alteration:
    """Another output."""

    def alter(asked: AgentRequest, good: Reply) -> Reaction:
        if good.is_result:
            _first(_first(good.result["artifacts"])["parts"])["text"] = answer(asked)
        return good

    return alter


def _query_of_json(asked: AgentRequest) -> str:
    """What the migration guide's own agents do: a text that is not JSON has no query."""
    try:
        found = decode(asked.text.encode())
    except msgspec.DecodeError:
        return "Processed: "
    return f"Processed: {found.get('query', '') if isinstance(found, dict) else ''}"


# What is recommended only.
WARNED: Mapping[str, Defect] = {
    "reads-only-json": Defect("input-form", says(_query_of_json), active=True),
    "ignores-its-input": Defect("input-used", says(lambda _: "Hello!"), active=True),
    "bad-params-are-internal-errors": Defect("params-checked", codes({-32602: -32603})),
    "bad-params-crash-it": Defect("refusals-whole", when(has_bad_params, ClosesConnection())),
    "page-for-broken-json": Defect(
        "parse-error", when(is_broken_json, msgspec.structs.replace(FAILED, status=400))
    ),
    "broken-json-is-invalid": Defect("parse-error", codes({-32700: -32600})),
    "crashes-on-no-object": Defect("object-required", when(lambda a: isinstance(a.value, str), FAILED)),
    "not-http": Defect(
        "refusals-whole",
        when(lambda a: a.value == "no request", ClosesConnection(b"\x00\x01 garbage\r\n\r\n")),
    ),
    "breaks-off": Defect(
        "refusals-whole",
        when(
            lambda a: a.value == "no request",
            ClosesConnection(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"),
        ),
    ),
    "simple-takes-anything": Defect("simple-refuses", _taken, protocol="simple-a2a"),
    "refuses-a-charset": Defect("accepts-charset", when(lambda a: "charset" in a.content_type, UNREAD)),
    "says-it-is-text": Defect("answers-json", with_headers({"Content-Type": "text/plain"})),
    "fails-on-get": Defect("survives-get", when(lambda a: a.method == "GET" and not a.wants_card, FAILED)),
    "crashes-on-batches": Defect(
        "batch-answered", when(lambda a: isinstance(a.value, list) and bool(a.value), FAILED)
    ),
    "numbers-become-texts": Defect("numeric-id", _text_ids),
    "numbers-become-texts-in-results": Defect("numeric-id", _numbers_as_texts_in_results, active=True),
    "no-error-beside-results": Defect("one-of-both", on_result(_set("error", None)), active=True),
    "no-result-beside-errors": Defect("one-of-both", on_error(_set("result", None))),
    "own-id-for-broken-json": Defect("parse-error-id", _own_id_for_broken_json),
    "says-it-twice": Defect("json-plain", with_body(lambda body: b'{"jsonrpc":"1.0",' + body[1:])),
    "begins-with-a-mark": Defect("json-plain", with_body(lambda body: b"\xef\xbb\xbf" + body)),
    "shows-its-insides": Defect(
        "error-no-internals",
        on_error(_set("trace", 'Traceback (most recent call last):\n  File "agent.py", line 1')),
    ),
    "works-twice": Defect(
        "repeated-message",
        in_result(lambda r: _first(_first(r["artifacts"])["parts"]).update({"text": uuid4().hex})),
        active=True,
    ),
    "knows-any-task": Defect("unknown-task", _knows_every_task),
    "card-lacks-skills": Defect("card-complete", on_card(_drop("skills")), protocol="a2a-0.3"),
    "card-of-another-version": Defect(
        "card-protocol", on_card(_set("protocolVersion", "9.0")), protocol="a2a-0.3"
    ),
    "simple-page-for-errors": Defect(
        "simple-error-form",
        when(is_broken_json, msgspec.structs.replace(FAILED, status=400)),
        protocol="simple-a2a",
    ),
}
