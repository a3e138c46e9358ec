"""
JSON-RPC itself, for every dialect over it: requests that an agent refuses without doing work.

    {"jsonrpc": "2.0", "id": "…", "method": "trunkline/no-such-method", "params": {}}      -32601
    {"jsonrpc": "1.0", …}                                                                  -32600
    {"jsonrpc": "2.0", …, "method": "message/send", "params": {}}                          -32602
    {"jsonrpc": "2.0", "id":                                                               -32700
    "no request"   []                                                                      -32600
    answer  {"jsonrpc": "2.0", "id": "…", "error": {"code": -32601, "message": "…"}}

None of them holds a message, so an agent that refuses nothing has nothing to work on either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from trunkline.agents.check_reports import Level
from trunkline.checker.exchanges import Exchange, Exchanges, Probe
from trunkline.checker.judging import Judge, Question, Rule, Ruling, broken, each, kept, moot
from trunkline.jsontypes import Json, JsonObject, encode

PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS, NO_TASK = -32700, -32600, -32601, -32602, -32001
UNKNOWN_METHOD = "trunkline/no-such-method"
_FAILED_STATES = ("failed", "rejected", "error", "task_state_failed", "task_state_rejected")
_TRACES = ("Traceback (most recent call last)", "\\n    at ", "\n    at ", "goroutine 1 [", "panic: ")
# Whatever else JSON-RPC and the protocols over it have, is between these two.
_CODES = range(-32768, -31999)


class Wording(msgspec.Struct, frozen=True, kw_only=True):
    """How a dialect over JSON-RPC calls what it has, and how strict its checks are."""

    protocol: str
    # Without one nothing is sent to it that lacks a message: anything may be input.
    send: str
    headers: Mapping[str, str] = {}
    # None: it has no tasks that could be asked for.
    get: str | None = None
    # Params that must be refused.
    bad_params: Sequence[Json] = ()
    # What else than -32602 is good enough for them.
    params_codes: frozenset[int] = frozenset({INVALID_PARAMS})
    task_codes: frozenset[int] = frozenset({NO_TASK})
    # By check: where it is not required.
    levels: Mapping[str, Level] = {}

    def level(self, check: str) -> Level:
        return self.levels.get(check, "required")


def probes(wording: Wording, nonce: str) -> list[Probe]:
    """To be sent in this order: the first one tells whether there is any sense in the others."""

    def call(name: str, call_id: Json, **fields: Json) -> Probe:
        given = {key: value for key, value in (_unknown(call_id) | fields).items() if value is not None}
        return Probe(name=name, body=encode(given), headers=wording.headers, id=call_id)

    def raw(name: str, body: bytes) -> Probe:
        return Probe(name=name, body=body, headers=wording.headers)

    known = wording.send if wording.bad_params else UNKNOWN_METHOD
    sent = [
        call("method-unknown", f"check-{nonce}"),
        msgspec.structs.replace(
            call("charset", f"check-{nonce}-charset"),
            headers={**wording.headers, "Content-Type": "application/json; charset=utf-8"},
        ),
        call("id-like-a-number", "00012345678901234567890"),
        call("id-long", f"check-{nonce}-" + "x" * 200),
        call("id-unicode", f"prüfung-{nonce}-验证-🙂"),
        call("id-number", 7),
        call("version-wrong", f"check-{nonce}-version", jsonrpc="1.0", method=known),
        call("version-missing", f"check-{nonce}-no-version", jsonrpc=None, method=known),
        call("method-missing", f"check-{nonce}-no-method", method=None),
        *(
            call(f"params-{number}", f"check-{nonce}-params-{number}", method=wording.send, params=params)
            for number, params in enumerate(wording.bad_params, 1)
        ),
        raw("not-json", b'{"jsonrpc": "2.0", "id": "check", "method": '),
        raw("not-an-object", b'"no request"'),
        raw("empty-batch", b"[]"),
        raw("batch", encode([_unknown(f"check-{nonce}-first"), _unknown(f"check-{nonce}-second")])),
        Probe(name="get", body=None, headers=wording.headers),
    ]
    if wording.get is not None:
        task: JsonObject = {"id": f"no-such-task-{nonce}"}
        sent.append(call("unknown-task", f"check-{nonce}-task", method=wording.get, params=task))
    return sent


def _unknown(call_id: Json) -> JsonObject:
    return {"jsonrpc": "2.0", "id": call_id, "method": UNKNOWN_METHOD, "params": {}}


def questions(wording: Wording, with_results: Sequence[str] = ()) -> list[Question]:
    """`with_results`: further exchanges, with messages, whose answers may be errors, too."""
    params = [f"params-{number}" for number in range(1, len(wording.bad_params) + 1)]
    versions = ("version-wrong", "version-missing")
    ids = ("id-like-a-number", "id-long", "id-unicode")
    calls = ("method-unknown", *ids, *versions, "method-missing", *params, "unknown-task")
    answers = (*calls, *with_results)
    asked = {
        "method-checked": each(_refused_with(NO_METHOD), "method-unknown", "script-method"),
        "version-checked": each(_refused_with(INVALID_REQUEST), *versions, "script-version"),
        "method-required": each(_refused_with(INVALID_REQUEST, NO_METHOD), "method-missing"),
        "params-checked": each(_refused_with(*wording.params_codes), *params),
        "parse-error": each(_refused_with(PARSE_ERROR), "not-json"),
        "object-required": each(_refused_with(INVALID_REQUEST), "not-an-object", "empty-batch"),
        "batch-answered": each(_answered_batch, "batch"),
        "parse-error-id": each(_without_id, "not-json"),
        "numeric-id": each(_echoed_number, "id-number", "number-input"),
        "accepts-charset": each(_read_with_charset, "charset"),
        "answer-object": _objects(ids, with_results),
        "one-of-both": each(_nothing_beside, *answers),
        "error-object": each(_error_apart, *answers),
        "error-code-and-message": each(_code_and_message, *answers),
        "error-message": each(_says_something, *answers),
        "error-jsonrpc": each(_versioned_error, *answers),
        "error-id": each(_echoed_error, *answers),
        "error-no-internals": each(_no_trace, *answers, "not-json", "not-an-object", "empty-batch", "batch"),
        "unknown-task": each(_refused_with(*wording.task_codes), "unknown-task"),
    }
    unasked = {
        name for name, there in (("params-checked", params), ("unknown-task", wording.get)) if not there
    }
    return [
        Question(id=name, rule=rule, level=wording.level(name))
        for name, rule in asked.items()
        if name not in unasked
    ]


def envelope(exchange: Exchange) -> JsonObject | None:
    """The answer, where it is one of JSON-RPC, however incomplete."""
    answer = exchange.object
    is_one = "jsonrpc" in answer or "result" in answer or isinstance(answer.get("error"), dict)
    return answer if is_one else None


def is_rpc(exchange: Exchange) -> bool:
    return envelope(exchange) is not None


def failure_in(result: Json) -> str | None:
    """What a result says when it reports a failure."""
    if not isinstance(result, dict):
        return None
    if result.get("error"):
        return "result.error"
    if isinstance(result.get("id"), str) and "contextId" in result:
        # A task of A2A may well have failed, and that is its result.
        return None
    status = result.get("status")
    state = status.get("state") if isinstance(status, dict) else status
    return f"state {state!r}" if isinstance(state, str) and state.lower() in _FAILED_STATES else None


def reads_json(exchanges: Exchanges) -> Ruling:
    """Whether the first request, which is well-formed, was read at all."""
    first = exchanges.get("method-unknown")
    if first is None or first.answer is None:
        return moot("Nothing was answered.")
    answer = envelope(first)
    if answer is None:
        said = first.answer.body[:4096].lower()
        refused = first.status == 415 or (400 <= first.status < 500 and b"content-type" in said)
        return (
            broken(f"HTTP {first.status}: the Content-Type is refused.", first)
            if refused
            else kept("", first)
        )
    if code_in(answer) == PARSE_ERROR:
        return broken("Error -32700 for a body that is JSON.", first)
    return kept("It was read.", first)


def code_in(answer: JsonObject) -> int | None:
    error = answer.get("error")
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) and not isinstance(code, bool) else None


def _unanswered(exchange: Exchange) -> Ruling | None:
    return moot("It was not answered: see refusals-whole.") if exchange.answer is None else None


def _refused_with(*codes: int) -> Judge:
    def judge(exchange: Exchange) -> Ruling:
        if (unanswered := _unanswered(exchange)) is not None:
            return unanswered
        answer = envelope(exchange)
        if answer is None:
            return broken(f"{exchange.seen()}, which is no JSON-RPC error.", exchange)
        if failure_in(answer.get("result")) is not None:
            return moot("The error stands in the result: see error-object.")
        if answer.get("error") is None:
            return broken("It was taken: the answer has no error.", exchange)
        code = code_in(answer)
        if code is None:
            return moot("The error has no code: see error-code-and-message.")
        judged = kept if code in codes else broken
        return judged(f"Error {code}: {_message(answer)}", exchange)

    return judge


def _message(answer: JsonObject) -> str:
    error = answer.get("error")
    message = error.get("message") if isinstance(error, dict) else error
    return message if isinstance(message, str) else encode(message).decode()


def _error(exchange: Exchange) -> JsonObject | None:
    """The envelope of an answer that is an error and nothing else."""
    answer = envelope(exchange)
    if answer is None or answer.get("error") is None or answer.get("result") is not None:
        return None
    return answer


def _objects(refused: Sequence[str], taken: Sequence[str]) -> Rule:
    def rule(exchanges: Exchanges) -> Ruling:
        # An agent whose first refusal is a page of its own has these as well: see method-checked.
        refuses = "method-unknown" in exchanges and is_rpc(exchanges["method-unknown"])
        return each(_is_object, *(refused if refuses else ()), *taken)(exchanges)

    return rule


def _is_object(exchange: Exchange) -> Ruling:
    if exchange.answer is None:
        return moot("It was not answered.")
    if exchange.status >= 400 and not exchange.is_json:
        return moot("The request was refused.")
    if exchange.unread:
        return broken(f"{exchange.unread}.", exchange)
    return kept("Every answer is a JSON object.", exchange)


def _nothing_beside(exchange: Exchange) -> Ruling:
    answer = envelope(exchange)
    if answer is None:
        return moot("There was no answer of JSON-RPC.")
    for name, other in (("error", "result"), ("result", "error")):
        if name in answer and answer[name] is None and answer.get(other) is not None:
            return broken(f"The answer has '{name}': null beside '{other}'.", exchange)
    return kept("No answer has null beside its result or error.", exchange)


def _error_apart(exchange: Exchange) -> Ruling:
    answer = envelope(exchange)
    if answer is None:
        return moot("There was no answer of JSON-RPC.")
    where = failure_in(answer.get("result"))
    if where is not None:
        return broken(f"The failure is in 'result' ({where}), not in 'error'.", exchange)
    if answer.get("error") is None:
        return moot("No error was answered.")
    return kept("Failures are in 'error'.", exchange)


def _code_and_message(exchange: Exchange) -> Ruling:
    answer = _error(exchange)
    if answer is None:
        return moot("No error was answered.")
    error = answer["error"]
    if not isinstance(error, dict):
        return broken(f"error is {encode(error).decode()}, not an object.", exchange)
    if code_in(answer) is None:
        return broken(f"error.code is {encode(error.get('code')).decode()}, not a whole number.", exchange)
    if not isinstance(error.get("message"), str):
        return broken("error.message is missing, or no text.", exchange)
    return kept("code and message are there.", exchange)


def _says_something(exchange: Exchange) -> Ruling:
    answer = _error(exchange)
    error = {} if answer is None else answer["error"]
    message = error.get("message") if isinstance(error, dict) else None
    if not isinstance(message, str):
        return moot("There is no message to read.")
    return kept(message, exchange) if message.strip() else broken("error.message is empty.", exchange)


def _versioned_error(exchange: Exchange) -> Ruling:
    answer = _error(exchange)
    if answer is None:
        return moot("No error was answered.")
    if "jsonrpc" not in answer:
        return broken("Response missing 'jsonrpc' field", exchange)
    if answer["jsonrpc"] != "2.0":
        return broken(f"Unsupported JSON-RPC version: {encode(answer['jsonrpc']).decode()}", exchange)
    return kept("jsonrpc is '2.0'.", exchange)


def _echoed_error(exchange: Exchange) -> Ruling:
    answer = _error(exchange)
    if answer is None:
        return moot("No error was answered.")
    if code_in(answer) == INVALID_REQUEST and "id" in answer and answer["id"] is None:
        return moot("JSON-RPC has no id for what is no request.")
    return _echoed(exchange)


def _echoed(exchange: Exchange) -> Ruling:
    if (unanswered := _unanswered(exchange)) is not None:
        return unanswered
    answer = envelope(exchange)
    if answer is None:
        return broken(f"{exchange.seen()}, which has no id.", exchange)
    wanted = exchange.probe.id
    if "id" not in answer:
        return broken(f"The answer has no id; expected {wanted}.", exchange)
    if not is_same(answer["id"], wanted):
        got = encode(answer["id"]).decode()
        return broken(f"Response ID mismatch: expected {encode(wanted).decode()}, got {got}", exchange)
    return kept("The id came back unchanged.", exchange)


def _echoed_number(exchange: Exchange) -> Ruling:
    if exchange.probe.active and envelope(exchange) is None:
        return moot("There is no answer to read: see answer-object and result-present.")
    return _echoed(exchange)


def _without_id(exchange: Exchange) -> Ruling:
    answer = _error(exchange)
    if answer is None or code_in(answer) != PARSE_ERROR:
        return moot("There is no such error: see parse-error.")
    if answer.get("id") is not None:
        return broken(f"The id is {encode(answer['id']).decode()}; nobody can have read one.", exchange)
    return kept("It has no id.", exchange)


def is_same(found: Json, wanted: Json) -> bool:
    """The same value of the same type: 7 is not "7", nor true 1."""
    return type(found) is type(wanted) and found == wanted


def _no_trace(exchange: Exchange) -> Ruling:
    if exchange.answer is None:
        return moot("It was not answered.")
    said = exchange.answer.body.decode(errors="replace")
    trace = next((trace for trace in _TRACES if trace in said), None)
    if trace is not None:
        return broken("The answer shows a stack trace.", exchange)
    return kept("No answer shows a stack trace.", exchange)


def _answered_batch(exchange: Exchange) -> Ruling:
    if (unanswered := _unanswered(exchange)) is not None:
        return unanswered
    value = exchange.value
    if isinstance(value, list) and len(value) == 2:
        return kept("Each request of the batch was answered.", exchange)
    answer = _error(exchange)
    if answer is not None and code_in(answer) is not None:
        return kept(f"Batches are refused: error {code_in(answer)}.", exchange)
    return broken(f"{exchange.seen()}, neither a list of two answers nor an error.", exchange)


def _read_with_charset(exchange: Exchange) -> Ruling:
    if (unanswered := _unanswered(exchange)) is not None:
        return unanswered
    answer = envelope(exchange)
    if answer is None or code_in(answer) == PARSE_ERROR:
        return broken(f"{exchange.seen()}: it was not read.", exchange)
    return kept("It was read.", exchange)


def is_known_code(code: int | None) -> bool:
    return code in _CODES
