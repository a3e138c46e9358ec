"""
JSON-RPC itself, for every dialect that uses it: requests that an agent rejects without doing work.

    {"jsonrpc": "2.0", "id": "…", "method": "trunkline/no-such-method", "params": {}}      -32601
    {"jsonrpc": "1.0", …}                                                                  -32600
    {"jsonrpc": "2.0", …, "method": "message/send", "params": {}}                          -32602
    {"jsonrpc": "2.0", "id":                                                               -32700
    "no request"   []                                                                      -32600
    answer  {"jsonrpc": "2.0", "id": "…", "error": {"code": -32601, "message": "…"}}

None of them contains a message, so even an agent that rejects nothing has no work to do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from trunkline.agents.check_reports import Level
from trunkline.checker.check_plan import (
    ExchangeRule,
    PlannedCheck,
    Rule,
    RuleResult,
    for_each_exchange,
    met,
    not_applicable,
    violated,
)
from trunkline.checker.exchanges import ProbeExchange, ProbeExchanges, ProbeRequest
from trunkline.jsontypes import Json, JsonObject, encode

PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS, NO_TASK = -32700, -32600, -32601, -32602, -32001
UNKNOWN_METHOD = "trunkline/no-such-method"
_FAILED_STATES = ("failed", "rejected", "error", "task_state_failed", "task_state_rejected")
_STACK_TRACE_MARKS = (
    "Traceback (most recent call last)",
    "\\n    at ",
    "\n    at ",
    "goroutine 1 [",
    "panic: ",
)
# All other codes of JSON-RPC and the protocols over it are between these two.
_CODES = range(-32768, -31999)


class RpcDialect(msgspec.Struct, frozen=True, kw_only=True):
    """The method names of a dialect over JSON-RPC, and how strict its checks are."""

    protocol: str
    # If None, no request without a message is sent, because anything may be input.
    send: str
    headers: Mapping[str, str] = {}
    # None: it has no method to get a task.
    get: str | None = None
    # Params that must be rejected.
    bad_params: Sequence[Json] = ()
    # Codes that are accepted for them in addition to -32602.
    params_codes: frozenset[int] = frozenset({INVALID_PARAMS})
    task_codes: frozenset[int] = frozenset({NO_TASK})
    # The levels of checks that are not required.
    levels: Mapping[str, Level] = {}

    def level(self, check: str) -> Level:
        return self.levels.get(check, "required")


def probes(dialect: RpcDialect, nonce: str) -> list[ProbeRequest]:
    """The requests in the order in which they are sent; the first one decides whether the others make sense."""

    def call(name: str, call_id: Json, **fields: Json) -> ProbeRequest:
        given = {key: value for key, value in (_unknown(call_id) | fields).items() if value is not None}
        return ProbeRequest(name=name, body=encode(given), headers=dialect.headers, id=call_id)

    def raw(name: str, body: bytes) -> ProbeRequest:
        return ProbeRequest(name=name, body=body, headers=dialect.headers)

    known = dialect.send if dialect.bad_params else UNKNOWN_METHOD
    sent = [
        call("method-unknown", f"check-{nonce}"),
        msgspec.structs.replace(
            call("charset", f"check-{nonce}-charset"),
            headers={**dialect.headers, "Content-Type": "application/json; charset=utf-8"},
        ),
        call("id-like-a-number", "00012345678901234567890"),
        call("id-long", f"check-{nonce}-" + "x" * 200),
        call("id-unicode", f"prüfung-{nonce}-验证-🙂"),
        call("id-number", 7),
        call("version-wrong", f"check-{nonce}-version", jsonrpc="1.0", method=known),
        call("version-missing", f"check-{nonce}-no-version", jsonrpc=None, method=known),
        call("method-missing", f"check-{nonce}-no-method", method=None),
        *(
            call(f"params-{number}", f"check-{nonce}-params-{number}", method=dialect.send, params=params)
            for number, params in enumerate(dialect.bad_params, 1)
        ),
        raw("not-json", b'{"jsonrpc": "2.0", "id": "check", "method": '),
        raw("not-an-object", b'"no request"'),
        raw("empty-batch", b"[]"),
        raw("batch", encode([_unknown(f"check-{nonce}-first"), _unknown(f"check-{nonce}-second")])),
        ProbeRequest(name="get", body=None, headers=dialect.headers),
    ]
    if dialect.get is not None:
        task: JsonObject = {"id": f"no-such-task-{nonce}"}
        sent.append(call("unknown-task", f"check-{nonce}-task", method=dialect.get, params=task))
    return sent


def _unknown(call_id: Json) -> JsonObject:
    return {"jsonrpc": "2.0", "id": call_id, "method": UNKNOWN_METHOD, "params": {}}


def planned_checks(dialect: RpcDialect, with_results: Sequence[str] = ()) -> list[PlannedCheck]:
    """`with_results`: further exchanges, with messages, whose answers may be errors as well."""
    params = [f"params-{number}" for number in range(1, len(dialect.bad_params) + 1)]
    versions = ("version-wrong", "version-missing")
    ids = ("id-like-a-number", "id-long", "id-unicode")
    calls = ("method-unknown", *ids, *versions, "method-missing", *params, "unknown-task")
    answers = (*calls, *with_results)
    asked = {
        "method-checked": for_each_exchange(_refused_with(NO_METHOD), "method-unknown", "script-method"),
        "version-checked": for_each_exchange(_refused_with(INVALID_REQUEST), *versions, "script-version"),
        "method-required": for_each_exchange(_refused_with(INVALID_REQUEST, NO_METHOD), "method-missing"),
        "params-checked": for_each_exchange(_refused_with(*dialect.params_codes), *params),
        "parse-error": for_each_exchange(_refused_with(PARSE_ERROR), "not-json"),
        "object-required": for_each_exchange(_refused_with(INVALID_REQUEST), "not-an-object", "empty-batch"),
        "batch-answered": for_each_exchange(_answered_batch, "batch"),
        "parse-error-id": for_each_exchange(_without_id, "not-json"),
        "numeric-id": for_each_exchange(_echoed_number, "id-number", "number-input"),
        "accepts-charset": for_each_exchange(_read_with_charset, "charset"),
        "answer-object": _objects(ids, with_results),
        "one-of-both": for_each_exchange(_no_null_member, *answers),
        "error-object": for_each_exchange(_failure_is_an_error, *answers),
        "error-code-and-message": for_each_exchange(_code_and_message, *answers),
        "error-message": for_each_exchange(_says_something, *answers),
        "error-jsonrpc": for_each_exchange(_versioned_error, *answers),
        "error-id": for_each_exchange(_echoed_error, *answers),
        "error-no-internals": for_each_exchange(
            _no_trace, *answers, "not-json", "not-an-object", "empty-batch", "batch"
        ),
        "unknown-task": for_each_exchange(_refused_with(*dialect.task_codes), "unknown-task"),
    }
    left_out = {
        name for name, there in (("params-checked", params), ("unknown-task", dialect.get)) if not there
    }
    return [
        PlannedCheck(id=name, rule=rule, level=dialect.level(name))
        for name, rule in asked.items()
        if name not in left_out
    ]


def envelope(exchange: ProbeExchange) -> JsonObject | None:
    """The answer if it is JSON-RPC, even an incomplete one."""
    answer = exchange.object
    is_one = "jsonrpc" in answer or "result" in answer or isinstance(answer.get("error"), dict)
    return answer if is_one else None


def is_rpc(exchange: ProbeExchange) -> bool:
    return envelope(exchange) is not None


def failure_in(result: Json) -> str | None:
    """The failure that a result reports, if any."""
    if not isinstance(result, dict):
        return None
    if result.get("error"):
        return "result.error"
    if isinstance(result.get("id"), str) and "contextId" in result:
        # A failed A2A task is a valid result.
        return None
    status = result.get("status")
    state = status.get("state") if isinstance(status, dict) else status
    return f"state {state!r}" if isinstance(state, str) and state.lower() in _FAILED_STATES else None


def reads_json(exchanges: ProbeExchanges) -> RuleResult:
    """Whether the agent parsed the first request, which is well-formed."""
    first = exchanges.get("method-unknown")
    if first is None or first.answer is None:
        return not_applicable("The agent answered no request.")
    answer = envelope(first)
    if answer is None:
        said = first.answer.body[:4096].lower()
        refused = first.status == 415 or (400 <= first.status < 500 and b"content-type" in said)
        return (
            violated(f"HTTP {first.status}: the Content-Type is rejected.", first)
            if refused
            else met("", first)
        )
    if code_in(answer) == PARSE_ERROR:
        return violated("Error -32700 for a body that is valid JSON.", first)
    return met("The request was parsed.", first)


def code_in(answer: JsonObject) -> int | None:
    error = answer.get("error")
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) and not isinstance(code, bool) else None


def _unanswered(exchange: ProbeExchange) -> RuleResult | None:
    return not_applicable("No answer: see refusals-whole.") if exchange.answer is None else None


def _refused_with(*codes: int) -> ExchangeRule:
    def judge(exchange: ProbeExchange) -> RuleResult:
        if (unanswered := _unanswered(exchange)) is not None:
            return unanswered
        answer = envelope(exchange)
        if answer is None:
            return violated(f"{exchange.summary()}, which is not a JSON-RPC error.", exchange)
        if failure_in(answer.get("result")) is not None:
            return not_applicable("The error is in the result: see error-object.")
        if answer.get("error") is None:
            return violated("The request was accepted: the answer has no error.", exchange)
        code = code_in(answer)
        if code is None:
            return not_applicable("The error has no code: see error-code-and-message.")
        judged = met if code in codes else violated
        return judged(f"Error {code}: {_message(answer)}", exchange)

    return judge


def _message(answer: JsonObject) -> str:
    error = answer.get("error")
    message = error.get("message") if isinstance(error, dict) else error
    return message if isinstance(message, str) else encode(message).decode()


def _error(exchange: ProbeExchange) -> JsonObject | None:
    """The envelope of an answer that has only an error."""
    answer = envelope(exchange)
    if answer is None or answer.get("error") is None or answer.get("result") is not None:
        return None
    return answer


def _objects(refused: Sequence[str], taken: Sequence[str]) -> Rule:
    def rule(exchanges: ProbeExchanges) -> RuleResult:
        # If the first error is not JSON-RPC, the others are not either: see method-checked.
        refuses = "method-unknown" in exchanges and is_rpc(exchanges["method-unknown"])
        return for_each_exchange(_is_object, *(refused if refuses else ()), *taken)(exchanges)

    return rule


def _is_object(exchange: ProbeExchange) -> RuleResult:
    if exchange.answer is None:
        return not_applicable("No answer.")
    if exchange.status >= 400 and not exchange.is_json:
        return not_applicable("The request was rejected.")
    if exchange.unread:
        return violated(f"{exchange.unread}.", exchange)
    return met("Every answer is a JSON object.", exchange)


def _no_null_member(exchange: ProbeExchange) -> RuleResult:
    answer = envelope(exchange)
    if answer is None:
        return not_applicable("No answer was JSON-RPC.")
    for name, other in (("error", "result"), ("result", "error")):
        if name in answer and answer[name] is None and answer.get(other) is not None:
            return violated(f"The answer has both '{name}': null and '{other}'.", exchange)
    return met("No answer has a null next to its result or error.", exchange)


def _failure_is_an_error(exchange: ProbeExchange) -> RuleResult:
    answer = envelope(exchange)
    if answer is None:
        return not_applicable("No answer was JSON-RPC.")
    where = failure_in(answer.get("result"))
    if where is not None:
        return violated(f"The failure is in 'result' ({where}), not in 'error'.", exchange)
    if answer.get("error") is None:
        return not_applicable("No answer was an error.")
    return met("Failures are in 'error'.", exchange)


def _code_and_message(exchange: ProbeExchange) -> RuleResult:
    answer = _error(exchange)
    if answer is None:
        return not_applicable("No answer was an error.")
    error = answer["error"]
    if not isinstance(error, dict):
        return violated(f"error is {encode(error).decode()}, not an object.", exchange)
    if code_in(answer) is None:
        return violated(f"error.code is {encode(error.get('code')).decode()}, not an integer.", exchange)
    if not isinstance(error.get("message"), str):
        return violated("error.message is missing or not a string.", exchange)
    return met("The error has a code and a message.", exchange)


def _says_something(exchange: ProbeExchange) -> RuleResult:
    answer = _error(exchange)
    error = {} if answer is None else answer["error"]
    message = error.get("message") if isinstance(error, dict) else None
    if not isinstance(message, str):
        return not_applicable("No error message.")
    return met(message, exchange) if message.strip() else violated("error.message is empty.", exchange)


def _versioned_error(exchange: ProbeExchange) -> RuleResult:
    answer = _error(exchange)
    if answer is None:
        return not_applicable("No answer was an error.")
    if "jsonrpc" not in answer:
        return violated("Response missing 'jsonrpc' field", exchange)
    if answer["jsonrpc"] != "2.0":
        return violated(f"Unsupported JSON-RPC version: {encode(answer['jsonrpc']).decode()}", exchange)
    return met("jsonrpc is '2.0'.", exchange)


def _echoed_error(exchange: ProbeExchange) -> RuleResult:
    answer = _error(exchange)
    if answer is None:
        return not_applicable("No answer was an error.")
    if code_in(answer) == INVALID_REQUEST and "id" in answer and answer["id"] is None:
        return not_applicable("JSON-RPC defines no id for the answer to an invalid request.")
    return _echoed(exchange)


def _echoed(exchange: ProbeExchange) -> RuleResult:
    if (unanswered := _unanswered(exchange)) is not None:
        return unanswered
    answer = envelope(exchange)
    if answer is None:
        return violated(f"{exchange.summary()}, which has no id.", exchange)
    wanted = exchange.probe.id
    if "id" not in answer:
        return violated(f"The answer has no id; expected {wanted}.", exchange)
    if not is_same(answer["id"], wanted):
        got = encode(answer["id"]).decode()
        return violated(f"Response ID mismatch: expected {encode(wanted).decode()}, got {got}", exchange)
    return met("The answer has the id of the request.", exchange)


def _echoed_number(exchange: ProbeExchange) -> RuleResult:
    if exchange.probe.active and envelope(exchange) is None:
        return not_applicable("No readable answer: see answer-object and result-present.")
    return _echoed(exchange)


def _without_id(exchange: ProbeExchange) -> RuleResult:
    answer = _error(exchange)
    if answer is None or code_in(answer) != PARSE_ERROR:
        return not_applicable("No error -32700: see parse-error.")
    if answer.get("id") is not None:
        return violated(
            f"The id is {encode(answer['id']).decode()}, although the request had no readable id.", exchange
        )
    return met("The id is null.", exchange)


def is_same(found: Json, wanted: Json) -> bool:
    """The same value of the same type: 7 is not "7", nor true 1."""
    return type(found) is type(wanted) and found == wanted


def _no_trace(exchange: ProbeExchange) -> RuleResult:
    if exchange.answer is None:
        return not_applicable("No answer.")
    said = exchange.answer.body.decode(errors="replace")
    trace = next((trace for trace in _STACK_TRACE_MARKS if trace in said), None)
    if trace is not None:
        return violated("The answer shows a stack trace.", exchange)
    return met("No answer shows a stack trace.", exchange)


def _answered_batch(exchange: ProbeExchange) -> RuleResult:
    if (unanswered := _unanswered(exchange)) is not None:
        return unanswered
    value = exchange.value
    if isinstance(value, list) and len(value) == 2:
        return met("Each request of the batch was answered.", exchange)
    answer = _error(exchange)
    if answer is not None and code_in(answer) is not None:
        return met(f"Batches are rejected: error {code_in(answer)}.", exchange)
    return violated(f"{exchange.summary()}, which is neither a list of two answers nor an error.", exchange)


def _read_with_charset(exchange: ProbeExchange) -> RuleResult:
    if (unanswered := _unanswered(exchange)) is not None:
        return unanswered
    answer = envelope(exchange)
    if answer is None or code_in(answer) == PARSE_ERROR:
        return violated(f"{exchange.summary()}: the request was not parsed.", exchange)
    return met("The request was parsed.", exchange)


def is_known_code(code: int | None) -> bool:
    return code in _CODES
