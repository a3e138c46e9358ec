"""
What an agent answers to messages over JSON-RPC. Sent only with --active, because the agent treats messages as work.

    jsonrpc-2.0        {"status": {"state": "completed"}, "artifacts": [{"parts": […]}], "history": [{"role", "parts"}]}
    a2a-0.2, a2a-0.3   {"kind": "task", "id", "contextId", "status", …} or {"kind": "message", "role": "agent", "parts"}
    a2a-1.0            {"task": {"id", "contextId", "status": {"state": "TASK_STATE_COMPLETED"}, …}} or {"message": …}

`MessageFormat` describes the differences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from trunkline.agents.check_reports import DEFAULT_SAMPLE, CheckSample
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
from trunkline.checker.plans.jsonrpc_envelope import (
    RpcDialect,
    code_in,
    envelope,
    failure_in,
    is_known_code,
    is_same,
)
from trunkline.checker.plans.step_call import step_check, step_task
from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.protocols import ProtocolAdapter

# The sample request of the migration guide.
GUIDE_ID = "test-123"
GUIDE_TEXT = '{"query": "test query"}'
UNICODE_TEXT = '{"query": "Grüße aus Zürich, 你好, 🙂"}'
# JSON that a handler may not expect, in texts that are valid messages.
UNUSUAL_TEXTS = ("42", "null", "[]", '{"query": 42}', '{"unexpected": {"deeper": [1, 2, 3]}}')

# States of a task that could not be done. They are valid states, so they do not violate the format.
_NOT_DONE = ("failed", "rejected", "input-required", "auth-required")

MESSAGES = ("json-input", "text-input", "unicode-input", "id-input", "repeat")
_UNUSUAL = tuple(f"odd-{number}" for number in range(1, len(UNUSUAL_TEXTS) + 1))


class MessageFormat(msgspec.Struct, frozen=True, kw_only=True):
    """How a version of A2A writes messages, tasks and parts."""

    # The message of a user with this id and text.
    message: Callable[[str, str], JsonObject]
    # The task in a result, or None if it is a message or something else; and the message.
    task: Callable[[JsonObject], JsonObject | None]
    direct: Callable[[JsonObject], JsonObject | None]
    completed: str
    # Other valid states of an accepted task.
    states: frozenset[str]
    user: str
    agent: str
    # What is wrong with a part, as the end of a sentence; None: nothing.
    defect: Callable[[JsonObject], str | None]
    # Whether artifacts and history are required, as in the migration guide's checklist.
    requires_all_fields: bool


def probes(
    dialect: RpcDialect,
    message_format: MessageFormat,
    nonce: str,
    adapter: ProtocolAdapter,
    sample: CheckSample,
) -> list[ProbeRequest]:
    def send(name: str, call_id: str | int, message_id: str, text: str, **fields: Json) -> ProbeRequest:
        params: JsonObject = {"message": message_format.message(message_id, text)}
        body: JsonObject = {"jsonrpc": "2.0", "id": call_id, "method": dialect.send, "params": params}
        return ProbeRequest(
            name=name, body=encode(body | fields), headers=dialect.headers, active=True, id=call_id, text=text
        )

    number = f"9{nonce}".translate(str.maketrans("abcdef", "123456"))
    step = adapter.encode(step_task(nonce, sample))
    # Exactly as in the migration guide.
    given = GUIDE_TEXT if sample == DEFAULT_SAMPLE else sample.json_text
    return [
        send("json-input", GUIDE_ID, f"msg-{GUIDE_ID}", given),
        send("text-input", f"check-{nonce}-text", f"msg-{nonce}-text", sample.text),
        send(
            "unicode-input",
            f"prüfung-{nonce}-🙂",
            f"msg-{nonce}-unicode",
            UNICODE_TEXT if sample == DEFAULT_SAMPLE else given,
        ),
        send("id-input", number.zfill(30), f"msg-{nonce}-id", sample.text),
        # The previous message again, so that an agent that recognises messages has no work.
        send("number-input", 12345, f"msg-{nonce}-id", sample.text),
        send("repeat", f"check-{nonce}-repeat", f"msg-{nonce}-text", sample.text),
        *(
            send(name, f"check-{nonce}-{name}", f"msg-{nonce}-{name}", text)
            for name, text in zip(_UNUSUAL, UNUSUAL_TEXTS, strict=True)
        ),
        send("script-version", "test-1", f"msg-{nonce}-script-1", '{"query": "test"}', jsonrpc="1.0"),
        send(
            "script-method", "test-1", f"msg-{nonce}-script-2", '{"query": "test"}', method="invalid/method"
        ),
        ProbeRequest(name="step", body=step.body, headers=step.headers, path=step.path, active=True),
    ]


def planned_checks(
    dialect: RpcDialect,
    message_format: MessageFormat,
    nonce: str,
    adapter: ProtocolAdapter,
    sample: CheckSample,
) -> list[PlannedCheck]:
    asked: dict[str, Rule] = {
        "input-extracted": _input_found(message_format),
        "input-json": _input_accepted("json-input", "text-input"),
        "input-text": _input_accepted("text-input", "json-input"),
        "input-unicode": _unicode_kept(message_format)
        if sample == DEFAULT_SAMPLE
        else _skipped_for_own_sample,
        "result-present": for_each_exchange(_has_result_or_error, *MESSAGES),
        "result-status": for_each_exchange(_status_is_ok, *MESSAGES),
        "result-jsonrpc": for_each_exchange(_versioned, *MESSAGES),
        "result-id-present": for_each_exchange(_has_id, *MESSAGES),
        "result-id": for_each_exchange(_same_id, *MESSAGES),
        "result-state": for_each_exchange(_of_task(message_format, _state), *MESSAGES),
        "result-artifacts": for_each_exchange(_of_task(message_format, _artifacts), *MESSAGES),
        "result-parts": for_each_exchange(_of_task(message_format, _parts), *MESSAGES),
        "result-history": for_each_exchange(_of_task(message_format, _history), *MESSAGES),
        "internal-error": for_each_exchange(_unusual_input_handled, *_UNUSUAL),
        "repeated-message": _repetition_recognised(message_format),
    }
    if not message_format.requires_all_fields:
        asked["result-task"] = for_each_exchange(_task_or_message(message_format), *MESSAGES)
    judged = [PlannedCheck(id=name, rule=rule, level=dialect.level(name)) for name, rule in asked.items()]
    return [*judged, step_check(adapter, nonce, sample)]


def result_of(exchange: ProbeExchange) -> JsonObject | None:
    """The result of an answer, unless it reports a failure."""
    answer = envelope(exchange)
    result = None if answer is None else answer.get("result")
    return result if isinstance(result, dict) and failure_in(result) is None else None


def _is_refused(exchange: ProbeExchange) -> bool:
    """Whether the message was answered but not accepted."""
    answer = envelope(exchange)
    if answer is None:
        return exchange.status >= 400
    return answer.get("error") is not None and "result" not in answer


def _input_found(message_format: MessageFormat) -> Rule:
    def rule(exchanges: ProbeExchanges) -> RuleResult:
        tried = [exchanges[name] for name in ("json-input", "text-input") if name in exchanges]
        if not tried:
            return not_applicable("Not checked.")
        tried = [exchange for exchange in tried if exchange.answer is not None]
        if not tried:
            return not_applicable("No answer: see answers-whole.")
        if all(_is_refused(exchange) for exchange in tried):
            return violated(
                f"Agent receives request but can't parse input data: {_describe_error(tried[0])}", *tried
            )
        for exchange in tried:
            shown = _user_text_in_history(message_format, exchange)
            if shown is not None and not shown.strip():
                return violated(
                    "The user's message in the history is empty: the agent did not read the input.", exchange
                )
        return met("The agent read the input.", tried[0])

    return rule


def _input_accepted(name: str, other: str) -> Rule:
    def rule(exchanges: ProbeExchanges) -> RuleResult:
        exchange, other_exchange = exchanges.get(name), exchanges.get(other)
        if exchange is None or other_exchange is None:
            return not_applicable("Not checked.")
        if exchange.answer is None:
            return not_applicable("No answer: see answers-whole.")
        if not _is_refused(exchange):
            return met("The message was accepted.", exchange)
        if _is_refused(other_exchange):
            return not_applicable("The agent reads no input at all: see input-extracted.")
        return violated(
            f"Agent receives request but can't parse input data: {_describe_error(exchange)}", exchange
        )

    return rule


def _skipped_for_own_sample(exchanges: ProbeExchanges) -> RuleResult:
    del exchanges
    return not_applicable("Not checked, because you provided the messages.")


def _unicode_kept(message_format: MessageFormat) -> Rule:
    def rule(exchanges: ProbeExchanges) -> RuleResult:
        exchange, plain = exchanges.get("unicode-input"), exchanges.get("json-input")
        if exchange is None or plain is None:
            return not_applicable("Not checked.")
        if exchange.answer is None or _is_refused(plain):
            return not_applicable("Other checks report the reason.")
        if _is_refused(exchange):
            return violated(
                f"The same message fails with non-ASCII characters: {_describe_error(exchange)}", exchange
            )
        shown = _user_text_in_history(message_format, exchange) or ""
        garbled = UNICODE_TEXT.encode().decode("latin-1")
        lost = "".join(letter if letter.isascii() else "?" for letter in UNICODE_TEXT)
        if "\N{REPLACEMENT CHARACTER}" in shown or shown in (garbled, lost):
            return violated(f"The history shows the text as {shown}", exchange)
        return met("The text was read correctly.", exchange)

    return rule


def _user_text_in_history(message_format: MessageFormat, exchange: ProbeExchange) -> str | None:
    """The user's message according to the history; None: the history does not show it."""
    task = message_format.task(result_of(exchange) or {})
    history = None if task is None else task.get("history")
    for item in _objects(history):
        if item.get("role") == message_format.user and isinstance(item.get("parts"), list):
            texts = [part.get("text") for part in _objects(item["parts"])]
            return "".join(text for text in texts if isinstance(text, str))
    return None


def _describe_error(exchange: ProbeExchange) -> str:
    answer = envelope(exchange)
    error = None if answer is None else answer.get("error")
    if not isinstance(error, dict):
        return exchange.summary()
    return f"error {encode(error.get('code')).decode()}: {error.get('message')}"


def _has_result_or_error(exchange: ProbeExchange) -> RuleResult:
    if exchange.answer is None:
        return not_applicable("No answer: see answers-whole.")
    answer = envelope(exchange)
    if answer is None:
        if exchange.status >= 400:
            return not_applicable("The message was rejected.")
        if exchange.unread:
            return not_applicable("No readable answer: see answer-object.")
        return violated("malformed JSON-RPC response: Response missing both 'result' and 'error'", exchange)
    has_result, has_error = answer.get("result") is not None, answer.get("error") is not None
    if has_result and has_error:
        return violated("The answer has both 'result' and 'error'.", exchange)
    if not has_result and not has_error:
        return violated("malformed JSON-RPC response: Response missing both 'result' and 'error'", exchange)
    if has_result and not isinstance(answer["result"], dict):
        return violated("result is not an object.", exchange)
    return met("The answer has either 'result' or 'error'.", exchange)


def _status_is_ok(exchange: ProbeExchange) -> RuleResult:
    if result_of(exchange) is None:
        return not_applicable("No result.")
    return (met if exchange.status == 200 else violated)(f"HTTP {exchange.status}", exchange)


def _versioned(exchange: ProbeExchange) -> RuleResult:
    if result_of(exchange) is None:
        return not_applicable("No result.")
    answer = exchange.object
    if "jsonrpc" not in answer:
        return violated("malformed JSON-RPC response: Response missing 'jsonrpc' field", exchange)
    if answer["jsonrpc"] != "2.0":
        return violated(f"Unsupported JSON-RPC version: {encode(answer['jsonrpc']).decode()}", exchange)
    return met("jsonrpc is '2.0'.", exchange)


def _has_id(exchange: ProbeExchange) -> RuleResult:
    if result_of(exchange) is None:
        return not_applicable("No result.")
    if exchange.object.get("id") is None:
        return violated("malformed JSON-RPC response: Response missing 'id' field", exchange)
    return met("The result has an id.", exchange)


def _same_id(exchange: ProbeExchange) -> RuleResult:
    if result_of(exchange) is None or exchange.object.get("id") is None:
        return not_applicable("No id to compare.")
    found, wanted = exchange.object["id"], exchange.probe.id
    if not is_same(found, wanted):
        shown = encode(found).decode()
        return violated(f"Response ID mismatch: expected {encode(wanted).decode()}, got {shown}", exchange)
    return met("The answer has the id of the request.", exchange)


_OfTask = Callable[[MessageFormat, JsonObject, ProbeExchange], RuleResult]


def _of_task(message_format: MessageFormat, judge: _OfTask) -> ExchangeRule:
    def judged(exchange: ProbeExchange) -> RuleResult:
        result = result_of(exchange)
        if result is None:
            return not_applicable("No result.")
        task = message_format.task(result)
        return (
            not_applicable("The result is not a task.")
            if task is None
            else judge(message_format, task, exchange)
        )

    return judged


def _state_in(task: JsonObject) -> Json:
    status = task.get("status")
    return status.get("state") if isinstance(status, dict) else None


def _state(message_format: MessageFormat, task: JsonObject, exchange: ProbeExchange) -> RuleResult:
    state = _state_in(task)
    if state == message_format.completed:
        return met(f"Task state: {state}", exchange)
    if isinstance(state, str) and state in message_format.states and isinstance(task.get("id"), str):
        return met(f"Task state: {state}; the bridge polls the task.", exchange)
    if state in _NOT_DONE and isinstance(task.get("contextId"), str):
        return not_applicable(f"Task state: {state}. Send a task that the agent can do: --input, --text.")
    if state is None:
        return violated("The result has no status.state.", exchange)
    return violated(
        f"Task state: {encode(state).decode()}; success is '{message_format.completed}'.", exchange
    )


def _is_over(message_format: MessageFormat, task: JsonObject) -> bool:
    state = _state_in(task)
    return not (
        isinstance(state, str)
        and state != message_format.completed
        and state in (*message_format.states, *_NOT_DONE)
    )


def _artifacts(message_format: MessageFormat, task: JsonObject, exchange: ProbeExchange) -> RuleResult:
    if not _is_over(message_format, task):
        return not_applicable("The task has not finished.")
    artifacts = task.get("artifacts")
    if not isinstance(artifacts, list) or not artifacts:
        if not message_format.requires_all_fields and _answers_in_messages(message_format, task):
            return met("The output is in the task's messages.", exchange)
        return violated(
            "Extracted no output from the response: the 'artifacts' array is empty or missing.", exchange
        )
    for number, artifact in enumerate(artifacts):
        parts = artifact.get("parts") if isinstance(artifact, dict) else None
        if not isinstance(parts, list) or not parts:
            return violated(f"artifacts[{number}] has no 'parts', or the list is empty.", exchange)
    return met("Every artifact has parts.", exchange)


def _answers_in_messages(message_format: MessageFormat, task: JsonObject) -> bool:
    status = task.get("status")
    said = isinstance(status, dict) and isinstance(status.get("message"), dict)
    return said or any(item.get("role") == message_format.agent for item in _objects(task.get("history")))


def _parts(message_format: MessageFormat, task: JsonObject, exchange: ProbeExchange) -> RuleResult:
    judged = False
    for name, holder in _holders(task):
        parts = holder.get("parts")
        for number, part in enumerate(parts if isinstance(parts, list) else []):
            judged = True
            defect = message_format.defect(part) if isinstance(part, dict) else "is not an object"
            if defect is not None:
                return violated(f"{name}.parts[{number}] {defect}.", exchange)
    return met("Every part is complete.", exchange) if judged else not_applicable("The answer has no parts.")


def _holders(task: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    for name in ("artifacts", "history"):
        for number, item in enumerate(_objects(task.get(name))):
            yield f"{name}[{number}]", item


def _history(message_format: MessageFormat, task: JsonObject, exchange: ProbeExchange) -> RuleResult:
    if not _is_over(message_format, task):
        return not_applicable("The task has not finished.")
    history = task.get("history")
    if not history and not message_format.requires_all_fields:
        return not_applicable("A2A does not require a history, and the agent returns none.")
    if not isinstance(history, list):
        return violated("history is missing or not a list.", exchange)
    for number, item in enumerate(history):
        defect = _message_defect(message_format, item)
        if defect is not None:
            return violated(f"Can't extract output from history: item {number} {defect}.", exchange)
    roles = [item.get("role") for item in _objects(history)]
    missing = [role for role in (message_format.user, message_format.agent) if role not in roles]
    if missing and message_format.requires_all_fields:
        return violated(f"history has no message whose role is {missing[0]!r}.", exchange)
    return met(f"history has {len(history)} messages.", exchange)


def _message_defect(message_format: MessageFormat, item: Json) -> str | None:
    if not isinstance(item, dict):
        return "is not an object"
    if item.get("role") is None:
        return "is missing 'role'"
    if item["role"] not in (message_format.user, message_format.agent):
        return f"has the role {encode(item['role']).decode()}"
    parts = item.get("parts")
    return None if isinstance(parts, list) and parts else "is missing 'parts'"


def _task_or_message(message_format: MessageFormat) -> ExchangeRule:
    def judge(exchange: ProbeExchange) -> RuleResult:
        result = result_of(exchange)
        if result is None:
            return not_applicable("No result.")
        task, message = message_format.task(result), message_format.direct(result)
        if task is not None:
            missing = [name for name in ("id", "contextId") if not isinstance(task.get(name), str)]
            return (
                violated(f"The task has no {missing[0]}.", exchange) if missing else met("A task.", exchange)
            )
        if message is None:
            return violated("The result is neither a task nor a message.", exchange)
        defect = _message_defect(message_format, message)
        return met("A message.", exchange) if defect is None else violated(f"The message {defect}.", exchange)

    return judge


def _unusual_input_handled(exchange: ProbeExchange) -> RuleResult:
    if exchange.answer is None:
        return not_applicable("No answer: see answers-whole.")
    answer = envelope(exchange)
    if answer is None and exchange.status < 400:
        return not_applicable("No readable answer: see result-present.")
    if answer is None:
        return violated(
            f"{exchange.summary()} for the text {exchange.probe.text}, which is not a JSON-RPC answer.",
            exchange,
        )
    if answer.get("error") is None or "result" in answer:
        return met("Unusual input was accepted.", exchange)
    code = code_in(answer)
    if code is None:
        return not_applicable("The error has no code: see error-code-and-message.")
    if not is_known_code(code):
        return violated(f"Error {code} is not a JSON-RPC code. Use -32603 for internal failures.", exchange)
    return met(f"Error {code}", exchange)


def _repetition_recognised(message_format: MessageFormat) -> Rule:
    def rule(exchanges: ProbeExchanges) -> RuleResult:
        first, second = exchanges.get("text-input"), exchanges.get("repeat")
        if first is None or second is None:
            return not_applicable("Not checked.")
        given, again = result_of(first), result_of(second)
        if given is None or again is None:
            return not_applicable("The agent did not return two results to compare.")
        if _identity(message_format, given) == _identity(message_format, again):
            return met("Both answers are the same.", first, second)
        return violated("The repeated message started another task.", first, second)

    return rule


def _identity(message_format: MessageFormat, result: JsonObject) -> Json:
    """What two answers about the same work have in common."""
    task = message_format.task(result)
    if task is None:
        return (message_format.direct(result) or result).get("parts")
    return task["id"] if isinstance(task.get("id"), str) else task.get("artifacts")


def _objects(value: Json) -> Sequence[JsonObject]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
