"""
What an agent over JSON-RPC answers to messages: asked with --active, since each of them may be taken for work.

    jsonrpc-2.0        {"status": {"state": "completed"}, "artifacts": [{"parts": […]}], "history": [{"role", "parts"}]}
    a2a-0.2, a2a-0.3   {"kind": "task", "id", "contextId", "status", …} or {"kind": "message", "role": "agent", "parts"}
    a2a-1.0            {"task": {"id", "contextId", "status": {"state": "TASK_STATE_COMPLETED"}, …}} or {"message": …}

`Form` is what tells them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from trunkline.agents.check_reports import DEFAULT_SAMPLE, CheckSample
from trunkline.checker.exchanges import Exchange, Exchanges, Probe
from trunkline.checker.judging import Judge, Question, Rule, Ruling, broken, each, kept, moot
from trunkline.checker.plans.envelope import (
    Wording,
    code_in,
    envelope,
    failure_in,
    is_known_code,
    is_same,
)
from trunkline.checker.plans.steps import step_question, step_task
from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.protocols import ProtocolAdapter

# Of the seed's own request.
SEED_ID = "test-123"
SEED_TEXT = '{"query": "test query"}'
UNICODE_TEXT = '{"query": "Grüße aus Zürich, 你好, 🙂"}'
# JSON that a handler may not expect, in texts that are valid messages.
ODD_TEXTS = ("42", "null", "[]", '{"query": 42}', '{"unexpected": {"deeper": [1, 2, 3]}}')

# What a task may be that could not be done: it is no mistake of form.
_NOT_DONE = ("failed", "rejected", "input-required", "auth-required")

MESSAGES = ("json-input", "text-input", "unicode-input", "id-input", "repeat")
_ODD = tuple(f"odd-{number}" for number in range(1, len(ODD_TEXTS) + 1))


class Form(msgspec.Struct, frozen=True, kw_only=True):
    """How a version of A2A writes messages, tasks and parts."""

    # The message of a user with this id and text.
    message: Callable[[str, str], JsonObject]
    # The task in a result, or None where it is a message or something else; and the message.
    task: Callable[[JsonObject], JsonObject | None]
    direct: Callable[[JsonObject], JsonObject | None]
    completed: str
    # What else an agent may say of a task that was taken.
    states: frozenset[str]
    user: str
    agent: str
    # What a part lacks.
    lacks: Callable[[JsonObject], str | None]
    # Whether artifacts and history must be there, as the seed's checklist has it.
    whole: bool


def probes(
    wording: Wording, form: Form, nonce: str, adapter: ProtocolAdapter, sample: CheckSample
) -> list[Probe]:
    def send(name: str, call_id: str | int, message_id: str, text: str, **fields: Json) -> Probe:
        params: JsonObject = {"message": form.message(message_id, text)}
        body: JsonObject = {"jsonrpc": "2.0", "id": call_id, "method": wording.send, "params": params}
        return Probe(
            name=name, body=encode(body | fields), headers=wording.headers, active=True, id=call_id, text=text
        )

    number = f"9{nonce}".translate(str.maketrans("abcdef", "123456"))
    step = adapter.encode(step_task(nonce, sample))
    # As the seed writes it, to the letter.
    given = SEED_TEXT if sample == DEFAULT_SAMPLE else sample.json_text
    return [
        send("json-input", SEED_ID, f"msg-{SEED_ID}", given),
        send("text-input", f"check-{nonce}-text", f"msg-{nonce}-text", sample.text),
        send(
            "unicode-input",
            f"prüfung-{nonce}-🙂",
            f"msg-{nonce}-unicode",
            UNICODE_TEXT if sample == DEFAULT_SAMPLE else given,
        ),
        send("id-input", number.zfill(30), f"msg-{nonce}-id", sample.text),
        # The message before once more, so that whoever knows messages has no work with it.
        send("number-input", 12345, f"msg-{nonce}-id", sample.text),
        send("repeat", f"check-{nonce}-repeat", f"msg-{nonce}-text", sample.text),
        *(
            send(name, f"check-{nonce}-{name}", f"msg-{nonce}-{name}", text)
            for name, text in zip(_ODD, ODD_TEXTS, strict=True)
        ),
        send("script-version", "test-1", f"msg-{nonce}-script-1", '{"query": "test"}', jsonrpc="1.0"),
        send(
            "script-method", "test-1", f"msg-{nonce}-script-2", '{"query": "test"}', method="invalid/method"
        ),
        Probe(name="step", body=step.body, headers=step.headers, path=step.path, active=True),
    ]


def questions(
    wording: Wording, form: Form, nonce: str, adapter: ProtocolAdapter, sample: CheckSample
) -> list[Question]:
    asked: dict[str, Rule] = {
        "input-extracted": _input_found(form),
        "input-json": _one_input("json-input", "text-input"),
        "input-text": _one_input("text-input", "json-input"),
        "input-unicode": _unicode_kept(form) if sample == DEFAULT_SAMPLE else _not_with_your_own,
        "result-present": each(_has_one, *MESSAGES),
        "result-status": each(_status_is_ok, *MESSAGES),
        "result-jsonrpc": each(_versioned, *MESSAGES),
        "result-id-present": each(_has_id, *MESSAGES),
        "result-id": each(_same_id, *MESSAGES),
        "result-state": each(_of_task(form, _state), *MESSAGES),
        "result-artifacts": each(_of_task(form, _artifacts), *MESSAGES),
        "result-parts": each(_of_task(form, _parts), *MESSAGES),
        "result-history": each(_of_task(form, _history), *MESSAGES),
        "internal-error": each(_internal, *_ODD),
        "repeated-message": _same_twice(form),
    }
    if not form.whole:
        asked["result-task"] = each(_task_or_message(form), *MESSAGES)
    judged = [Question(id=name, rule=rule, level=wording.level(name)) for name, rule in asked.items()]
    return [*judged, step_question(adapter, nonce, sample)]


def result_of(exchange: Exchange) -> JsonObject | None:
    """The result of an answer that has one which is no failure."""
    answer = envelope(exchange)
    result = None if answer is None else answer.get("result")
    return result if isinstance(result, dict) and failure_in(result) is None else None


def _is_refused(exchange: Exchange) -> bool:
    """Whether the message was answered, and not taken."""
    answer = envelope(exchange)
    if answer is None:
        return exchange.status >= 400
    return answer.get("error") is not None and "result" not in answer


def _input_found(form: Form) -> Rule:
    def rule(exchanges: Exchanges) -> Ruling:
        tried = [exchanges[name] for name in ("json-input", "text-input") if name in exchanges]
        if not tried:
            return moot("It was not asked.")
        if all(_is_refused(exchange) for exchange in tried):
            return broken(f"Agent receives request but can't parse input data: {_said(tried[0])}", *tried)
        for exchange in tried:
            heard = _heard(form, exchange)
            if heard is not None and not heard.strip():
                return broken(
                    "The history shows an empty message of the user: the input was not read.", exchange
                )
        return kept("The input was read.", tried[0])

    return rule


def _one_input(name: str, other: str) -> Rule:
    def rule(exchanges: Exchanges) -> Ruling:
        exchange, beside = exchanges.get(name), exchanges.get(other)
        if exchange is None or beside is None:
            return moot("It was not asked.")
        if exchange.answer is None:
            return moot("It was not answered: see answers-whole.")
        if not _is_refused(exchange):
            return kept("It was taken.", exchange)
        if _is_refused(beside):
            return moot("No input is read at all: see input-extracted.")
        return broken(f"Agent receives request but can't parse input data: {_said(exchange)}", exchange)

    return rule


def _not_with_your_own(exchanges: Exchanges) -> Ruling:
    del exchanges
    return moot("The messages are your own, and hold what you have put there.")


def _unicode_kept(form: Form) -> Rule:
    def rule(exchanges: Exchanges) -> Ruling:
        exchange, plain = exchanges.get("unicode-input"), exchanges.get("json-input")
        if exchange is None or plain is None:
            return moot("It was not asked.")
        if exchange.answer is None or _is_refused(plain):
            return moot("Other checks say why.")
        if _is_refused(exchange):
            return broken(f"Only the letters are others: {_said(exchange)}", exchange)
        heard = _heard(form, exchange) or ""
        garbled = UNICODE_TEXT.encode().decode("latin-1")
        lost = "".join(letter if letter.isascii() else "?" for letter in UNICODE_TEXT)
        if "\N{REPLACEMENT CHARACTER}" in heard or heard in (garbled, lost):
            return broken(f"The history shows the text as {heard}", exchange)
        return kept("The text was taken as it is.", exchange)

    return rule


def _heard(form: Form, exchange: Exchange) -> str | None:
    """What the history says the user has said; None: it says nothing about it."""
    task = form.task(result_of(exchange) or {})
    history = None if task is None else task.get("history")
    for item in _objects(history):
        if item.get("role") == form.user and isinstance(item.get("parts"), list):
            texts = [part.get("text") for part in _objects(item["parts"])]
            return "".join(text for text in texts if isinstance(text, str))
    return None


def _said(exchange: Exchange) -> str:
    answer = envelope(exchange)
    error = None if answer is None else answer.get("error")
    if not isinstance(error, dict):
        return exchange.seen()
    return f"error {encode(error.get('code')).decode()}: {error.get('message')}"


def _has_one(exchange: Exchange) -> Ruling:
    if exchange.answer is None:
        return moot("It was not answered: see answers-whole.")
    answer = envelope(exchange)
    if answer is None:
        if exchange.status >= 400:
            return moot("The message was refused.")
        if exchange.unread:
            return moot("There is nothing to look into: see answer-object.")
        return broken("malformed JSON-RPC response: Response missing both 'result' and 'error'", exchange)
    has_result, has_error = answer.get("result") is not None, answer.get("error") is not None
    if has_result and has_error:
        return broken("The answer has both 'result' and 'error'.", exchange)
    if not has_result and not has_error:
        return broken("malformed JSON-RPC response: Response missing both 'result' and 'error'", exchange)
    if has_result and not isinstance(answer["result"], dict):
        return broken("result is no object.", exchange)
    return kept("The answer has one of them.", exchange)


def _status_is_ok(exchange: Exchange) -> Ruling:
    if result_of(exchange) is None:
        return moot("There is no result.")
    return (kept if exchange.status == 200 else broken)(f"HTTP {exchange.status}", exchange)


def _versioned(exchange: Exchange) -> Ruling:
    if result_of(exchange) is None:
        return moot("There is no result.")
    answer = exchange.object
    if "jsonrpc" not in answer:
        return broken("malformed JSON-RPC response: Response missing 'jsonrpc' field", exchange)
    if answer["jsonrpc"] != "2.0":
        return broken(f"Unsupported JSON-RPC version: {encode(answer['jsonrpc']).decode()}", exchange)
    return kept("jsonrpc is '2.0'.", exchange)


def _has_id(exchange: Exchange) -> Ruling:
    if result_of(exchange) is None:
        return moot("There is no result.")
    if exchange.object.get("id") is None:
        return broken("malformed JSON-RPC response: Response missing 'id' field", exchange)
    return kept("The id is there.", exchange)


def _same_id(exchange: Exchange) -> Ruling:
    if result_of(exchange) is None or exchange.object.get("id") is None:
        return moot("There is no id to compare.")
    found, wanted = exchange.object["id"], exchange.probe.id
    if not is_same(found, wanted):
        shown = encode(found).decode()
        return broken(f"Response ID mismatch: expected {encode(wanted).decode()}, got {shown}", exchange)
    return kept("The id came back unchanged.", exchange)


_OfTask = Callable[[Form, JsonObject, Exchange], Ruling]


def _of_task(form: Form, judge: _OfTask) -> Judge:
    def judged(exchange: Exchange) -> Ruling:
        result = result_of(exchange)
        if result is None:
            return moot("There is no result.")
        task = form.task(result)
        return moot("The result is not a task.") if task is None else judge(form, task, exchange)

    return judged


def _state_in(task: JsonObject) -> Json:
    status = task.get("status")
    return status.get("state") if isinstance(status, dict) else None


def _state(form: Form, task: JsonObject, exchange: Exchange) -> Ruling:
    state = _state_in(task)
    if state == form.completed:
        return kept(f"Task state: {state}", exchange)
    if isinstance(state, str) and state in form.states and isinstance(task.get("id"), str):
        return kept(f"Task state: {state}; the bridge asks again by the task's id.", exchange)
    if state in _NOT_DONE and isinstance(task.get("contextId"), str):
        return moot(f"Task state: {state}. Give it something that it can do: --input, --text.")
    if state is None:
        return broken("The result has no status.state.", exchange)
    return broken(f"Task state: {encode(state).decode()}; success is '{form.completed}'.", exchange)


def _is_over(form: Form, task: JsonObject) -> bool:
    state = _state_in(task)
    return not (isinstance(state, str) and state != form.completed and state in (*form.states, *_NOT_DONE))


def _artifacts(form: Form, task: JsonObject, exchange: Exchange) -> Ruling:
    if not _is_over(form, task):
        return moot("The task is not over yet.")
    artifacts = task.get("artifacts")
    if not isinstance(artifacts, list) or not artifacts:
        if not form.whole and _speaks_otherwise(form, task):
            return kept("The answer is in the task's messages.", exchange)
        return broken(
            "Extracted no output from the response: the 'artifacts' array is empty or missing.", exchange
        )
    for number, artifact in enumerate(artifacts):
        parts = artifact.get("parts") if isinstance(artifact, dict) else None
        if not isinstance(parts, list) or not parts:
            return broken(f"artifacts[{number}] misses 'parts', or they are empty.", exchange)
    return kept("Every artifact has parts.", exchange)


def _speaks_otherwise(form: Form, task: JsonObject) -> bool:
    status = task.get("status")
    said = isinstance(status, dict) and isinstance(status.get("message"), dict)
    return said or any(item.get("role") == form.agent for item in _objects(task.get("history")))


def _parts(form: Form, task: JsonObject, exchange: Exchange) -> Ruling:
    judged = False
    for name, holder in _holders(task):
        parts = holder.get("parts")
        for number, part in enumerate(parts if isinstance(parts, list) else []):
            judged = True
            lacks = form.lacks(part) if isinstance(part, dict) else "is no object"
            if lacks is not None:
                return broken(f"{name}.parts[{number}] {lacks}.", exchange)
    return kept("Every part is complete.", exchange) if judged else moot("There are no parts.")


def _holders(task: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    for name in ("artifacts", "history"):
        for number, item in enumerate(_objects(task.get(name))):
            yield f"{name}[{number}]", item


def _history(form: Form, task: JsonObject, exchange: Exchange) -> Ruling:
    if not _is_over(form, task):
        return moot("The task is not over yet.")
    history = task.get("history")
    if not history and not form.whole:
        return moot("A2A leaves the history to the agent, and this one shows none.")
    if not isinstance(history, list):
        return broken("history is missing, or no list.", exchange)
    for number, item in enumerate(history):
        lacks = _message_lacks(form, item)
        if lacks is not None:
            return broken(f"Can't extract output from history: item {number} {lacks}.", exchange)
    roles = [item.get("role") for item in _objects(history)]
    missing = [role for role in (form.user, form.agent) if role not in roles]
    if missing and form.whole:
        return broken(f"history has no message whose role is {missing[0]!r}.", exchange)
    return kept(f"history has {len(history)} messages.", exchange)


def _message_lacks(form: Form, item: Json) -> str | None:
    if not isinstance(item, dict):
        return "is no object"
    if item.get("role") is None:
        return "is missing 'role'"
    if item["role"] not in (form.user, form.agent):
        return f"has the role {encode(item['role']).decode()}"
    parts = item.get("parts")
    return None if isinstance(parts, list) and parts else "is missing 'parts'"


def _task_or_message(form: Form) -> Judge:
    def judge(exchange: Exchange) -> Ruling:
        result = result_of(exchange)
        if result is None:
            return moot("There is no result.")
        task, message = form.task(result), form.direct(result)
        if task is not None:
            missing = [name for name in ("id", "contextId") if not isinstance(task.get(name), str)]
            return (
                broken(f"The task has no {missing[0]}.", exchange) if missing else kept("A task.", exchange)
            )
        if message is None:
            return broken("The result is neither a task nor a message.", exchange)
        lacks = _message_lacks(form, message)
        return kept("A message.", exchange) if lacks is None else broken(f"The message {lacks}.", exchange)

    return judge


def _internal(exchange: Exchange) -> Ruling:
    if exchange.answer is None:
        return moot("It was not answered: see answers-whole.")
    answer = envelope(exchange)
    if answer is None and exchange.status < 400:
        return moot("There is no answer to read: see result-present.")
    if answer is None:
        return broken(
            f"{exchange.seen()} for the text {exchange.probe.text}, which is no answer of JSON-RPC.", exchange
        )
    if answer.get("error") is None or "result" in answer:
        return kept("Odd input was taken.", exchange)
    code = code_in(answer)
    if code is None:
        return moot("The error has no code: see error-code-and-message.")
    if not is_known_code(code):
        return broken(f"Error {code} is none of JSON-RPC's codes; what fails inside is -32603.", exchange)
    return kept(f"Error {code}", exchange)


def _same_twice(form: Form) -> Rule:
    def rule(exchanges: Exchanges) -> Ruling:
        first, second = exchanges.get("text-input"), exchanges.get("repeat")
        if first is None or second is None:
            return moot("It was not asked.")
        given, again = result_of(first), result_of(second)
        if given is None or again is None:
            return moot("There are no two results to compare.")
        if _identity(form, given) == _identity(form, again):
            return kept("The second answer is the first.", first, second)
        return broken("The same message became another task.", first, second)

    return rule


def _identity(form: Form, result: JsonObject) -> Json:
    """What is the same in two answers about the same work."""
    task = form.task(result)
    if task is None:
        return (form.direct(result) or result).get("parts")
    return task["id"] if isinstance(task.get("id"), str) else task.get("artifacts")


def _objects(value: Json) -> Sequence[JsonObject]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
