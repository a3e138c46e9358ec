"""
Simple A2A.

    refused  {}   {"task_id": "…"}   "no request"   {"task_id":         4xx, or {"status": "error", "error": "…"}
    active   {"task_id": "…", "input": {"query": "…"}}
             {"task_id": "…", "status": "success", "output": {…}, "error": null}
"""

from __future__ import annotations

from trunkline.agents.check_reports import DEFAULT_SAMPLE, CheckSample
from trunkline.checker.exchanges import Exchange, Exchanges, Probe
from trunkline.checker.judging import Plan, Question, Ruling, broken, each, kept, moot
from trunkline.checker.plans.steps import step_poll, step_question, step_task
from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.protocols import ProtocolAdapter

_REFUSED = ("no-task", "no-input", "not-json", "not-an-object")
_TASKS = ("task", "task-unicode", "task-id-like-a-number")
_STATUSES = ("success", "error")


def simple_plan(adapter: ProtocolAdapter, nonce: str, sample: CheckSample) -> Plan:
    step = adapter.encode(step_task(nonce, sample))
    given: Json = sample.input
    in_other_letters: Json = {"query": "Grüße, 你好, 🙂"} if sample == DEFAULT_SAMPLE else given
    return Plan(
        probes=[
            Probe(name="no-task", body=b"{}"),
            Probe(name="no-input", body=encode({"task_id": f"check-{nonce}"})),
            Probe(name="not-json", body=b'{"task_id": "check", '),
            Probe(name="not-an-object", body=b'"no request"'),
            Probe(name="get", body=None),
            _task("task", f"check-{nonce}", given),
            _task("task-unicode", f"prüfung-{nonce}-🙂", in_other_letters),
            _task("task-id-like-a-number", "00012345678901234567890", given),
            Probe(name="step", body=step.body, headers=step.headers, active=True),
        ],
        questions=[
            Question(id="simple-refuses", rule=each(_refused, *_REFUSED)),
            Question(id="simple-error-form", rule=each(_said_in_json, *_REFUSED), level="recommended"),
            Question(id="simple-answer", rule=each(_is_answer, *_TASKS)),
            Question(id="simple-success", rule=each(_succeeded, *_TASKS)),
            Question(id="simple-task-id", rule=each(_same_task, *_TASKS)),
            Question(id="simple-output", rule=each(_has_output, *_TASKS)),
            step_question(adapter, nonce, sample),
        ],
        speaks=_speaks,
        last=step_poll(adapter, nonce, sample),
    )


def _task(name: str, task_id: str, given: Json) -> Probe:
    return Probe(name=name, body=encode({"task_id": task_id, "input": given}), active=True, id=task_id)


def reads_json(exchanges: Exchanges) -> Ruling:
    first = exchanges.get("no-task")
    if first is None or first.answer is None:
        return moot("Nothing was answered.")
    said = first.answer.body[:4096].lower()
    if first.status == 415 or (400 <= first.status < 500 and b"content-type" in said):
        return broken(f"HTTP {first.status}: the Content-Type is refused.", first)
    return kept("It was read.", first)


def _speaks(exchange: Exchange) -> bool:
    # A refusal has no form of its own here; an answer of JSON-RPC is one of another dialect, though.
    return exchange.answer is not None and "jsonrpc" not in exchange.object


def _status(exchange: Exchange) -> Json:
    return exchange.object.get("status")


def _is_refused(exchange: Exchange) -> bool:
    # An agent that speaks more than one dialect may answer what is none in another one's form.
    return exchange.status >= 400 or _status(exchange) == "error" or bool(exchange.object.get("error"))


def _refused(exchange: Exchange) -> Ruling:
    if exchange.answer is None:
        return moot("It was not answered: see answers-whole.")
    if _is_refused(exchange):
        return kept(exchange.seen(), exchange)
    return broken(f"It was taken: {exchange.seen()}.", exchange)


def _said_in_json(exchange: Exchange) -> Ruling:
    if exchange.answer is None or not _is_refused(exchange):
        return moot("It was not refused.")
    if not exchange.object.get("error"):
        return broken(f"{exchange.seen()}, without an error that says what is wrong.", exchange)
    return kept("The refusal says what is wrong.", exchange)


def _answer(exchange: Exchange) -> JsonObject | None:
    return exchange.object if _status(exchange) in _STATUSES else None


def _is_answer(exchange: Exchange) -> Ruling:
    if exchange.answer is None:
        return moot("It was not answered: see answers-whole.")
    if not exchange.object:
        if exchange.status >= 400:
            return moot("The task was refused.")
        return broken(f"{exchange.unread or 'The answer is an empty object'}.", exchange)
    if "status" not in exchange.object:
        if exchange.status >= 400:
            return moot("The task was refused.")
        return broken("Response missing 'status' field", exchange)
    if _answer(exchange) is None:
        return broken(f"status is {encode(_status(exchange)).decode()}, not 'success' or 'error'.", exchange)
    return kept(f"status is {_status(exchange)!r}.", exchange)


def _succeeded(exchange: Exchange) -> Ruling:
    if exchange.answer is None:
        return moot("It was not answered: see answers-whole.")
    if _status(exchange) == "error" or exchange.status >= 400:
        said = exchange.object.get("error")
        return broken(
            f"The task was not done: {said if isinstance(said, str) else exchange.seen()}", exchange
        )
    if _answer(exchange) is None:
        return moot("There is no status: see simple-answer.")
    return kept("The task was done.", exchange)


def _same_task(exchange: Exchange) -> Ruling:
    answer = _answer(exchange)
    if answer is None:
        return moot("There is no answer to read.")
    if answer.get("task_id") != exchange.probe.id:
        got = encode(answer.get("task_id")).decode()
        return broken(f"Response task_id mismatch: expected {exchange.probe.id}, got {got}", exchange)
    return kept("The task_id came back unchanged.", exchange)


def _has_output(exchange: Exchange) -> Ruling:
    answer = _answer(exchange)
    if answer is None or answer["status"] != "success":
        return moot("There is no success to read.")
    if answer.get("output") is None:
        return broken("output is null, or missing.", exchange)
    if answer.get("error") is not None:
        return broken("There is an error beside the output.", exchange)
    return kept("The output is there.", exchange)
