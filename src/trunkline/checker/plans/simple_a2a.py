"""
Simple A2A.

    refused  {}   {"task_id": "…"}   "no request"   {"task_id":         4xx, or {"status": "error", "error": "…"}
    active   {"task_id": "…", "input": {"query": "…"}}
             {"task_id": "…", "status": "success", "output": {…}, "error": null}
"""

from __future__ import annotations

from trunkline.agents.check_reports import DEFAULT_SAMPLE, CheckSample
from trunkline.checker.check_plan import (
    CheckPlan,
    PlannedCheck,
    RuleResult,
    for_each_exchange,
    met,
    not_applicable,
    violated,
)
from trunkline.checker.exchanges import ProbeExchange, ProbeExchanges, ProbeRequest
from trunkline.checker.plans.step_call import step_check, step_poll, step_task
from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.protocols import ProtocolAdapter

_REFUSED = ("no-task", "no-input", "not-json", "not-an-object")
_TASKS = ("task", "task-unicode", "task-id-like-a-number")
_STATUSES = ("success", "error")


def simple_plan(adapter: ProtocolAdapter, nonce: str, sample: CheckSample) -> CheckPlan:
    step = adapter.encode(step_task(nonce, sample))
    given: Json = sample.input
    in_other_letters: Json = {"query": "Grüße, 你好, 🙂"} if sample == DEFAULT_SAMPLE else given
    return CheckPlan(
        probes=[
            ProbeRequest(name="no-task", body=b"{}"),
            ProbeRequest(name="no-input", body=encode({"task_id": f"check-{nonce}"})),
            ProbeRequest(name="not-json", body=b'{"task_id": "check", '),
            ProbeRequest(name="not-an-object", body=b'"no request"'),
            ProbeRequest(name="get", body=None),
            _task("task", f"check-{nonce}", given),
            _task("task-unicode", f"prüfung-{nonce}-🙂", in_other_letters),
            _task("task-id-like-a-number", "00012345678901234567890", given),
            ProbeRequest(name="step", body=step.body, headers=step.headers, active=True),
        ],
        checks=[
            # Trunkline never sends these requests.
            PlannedCheck(
                id="simple-refuses", rule=for_each_exchange(_refused, *_REFUSED), level="recommended"
            ),
            PlannedCheck(
                id="simple-error-form", rule=for_each_exchange(_said_in_json, *_REFUSED), level="recommended"
            ),
            PlannedCheck(id="simple-answer", rule=for_each_exchange(_is_answer, *_TASKS)),
            PlannedCheck(id="simple-success", rule=for_each_exchange(_succeeded, *_TASKS)),
            PlannedCheck(id="simple-task-id", rule=for_each_exchange(_same_task, *_TASKS)),
            PlannedCheck(id="simple-output", rule=for_each_exchange(_has_output, *_TASKS)),
            step_check(adapter, nonce, sample),
        ],
        speaks=_speaks,
        levels={"refusals-whole": "recommended"},
        follow_up=step_poll(adapter, nonce, sample),
    )


def _task(name: str, task_id: str, given: Json) -> ProbeRequest:
    return ProbeRequest(name=name, body=encode({"task_id": task_id, "input": given}), active=True, id=task_id)


def reads_json(exchanges: ProbeExchanges) -> RuleResult:
    first = exchanges.get("no-task")
    if first is None or first.answer is None:
        return not_applicable("The agent answered no request.")
    said = first.answer.body[:4096].lower()
    if first.status == 415 or (400 <= first.status < 500 and b"content-type" in said):
        return violated(f"HTTP {first.status}: the Content-Type is rejected.", first)
    return met("The request was parsed.", first)


def _speaks(exchange: ProbeExchange) -> bool:
    # Simple A2A defines no format for errors, but a JSON-RPC answer is of another dialect.
    return exchange.answer is not None and "jsonrpc" not in exchange.object


def _status(exchange: ProbeExchange) -> Json:
    return exchange.object.get("status")


def _is_refused(exchange: ProbeExchange) -> bool:
    # An agent that speaks several dialects may answer an invalid request in the format of another one.
    return exchange.status >= 400 or _status(exchange) == "error" or bool(exchange.object.get("error"))


def _refused(exchange: ProbeExchange) -> RuleResult:
    if exchange.answer is None:
        return not_applicable("No answer: see answers-whole.")
    if _is_refused(exchange):
        return met(exchange.summary(), exchange)
    return violated(f"The request was accepted: {exchange.summary()}.", exchange)


def _said_in_json(exchange: ProbeExchange) -> RuleResult:
    if exchange.answer is None or not _is_refused(exchange):
        return not_applicable("The request was not rejected.")
    if not exchange.object.get("error"):
        return violated(f"{exchange.summary()}, without an error message.", exchange)
    return met("The error has a message.", exchange)


def _answer(exchange: ProbeExchange) -> JsonObject | None:
    return exchange.object if _status(exchange) in _STATUSES else None


def _is_answer(exchange: ProbeExchange) -> RuleResult:
    if exchange.answer is None:
        return not_applicable("No answer: see answers-whole.")
    if not exchange.object:
        if exchange.status >= 400:
            return not_applicable("The task was rejected.")
        return violated(f"{exchange.unread or 'The answer is an empty object'}.", exchange)
    if "status" not in exchange.object:
        if exchange.status >= 400:
            return not_applicable("The task was rejected.")
        return violated("Response missing 'status' field", exchange)
    if _answer(exchange) is None:
        return violated(
            f"status is {encode(_status(exchange)).decode()}, not 'success' or 'error'.", exchange
        )
    return met(f"status is {_status(exchange)!r}.", exchange)


def _succeeded(exchange: ProbeExchange) -> RuleResult:
    if exchange.answer is None:
        return not_applicable("No answer: see answers-whole.")
    if _status(exchange) == "error" or exchange.status >= 400:
        said = exchange.object.get("error")
        return violated(f"The task failed: {said if isinstance(said, str) else exchange.summary()}", exchange)
    if _answer(exchange) is None:
        return not_applicable("No status: see simple-answer.")
    return met("The task was completed.", exchange)


def _same_task(exchange: ProbeExchange) -> RuleResult:
    answer = _answer(exchange)
    if answer is None:
        return not_applicable("No readable answer.")
    if answer.get("task_id") != exchange.probe.id:
        got = encode(answer.get("task_id")).decode()
        return violated(f"Response task_id mismatch: expected {exchange.probe.id}, got {got}", exchange)
    return met("The answer has the task_id of the request.", exchange)


def _has_output(exchange: ProbeExchange) -> RuleResult:
    answer = _answer(exchange)
    if answer is None or answer["status"] != "success":
        return not_applicable("The answer is not a success.")
    if answer.get("output") is None:
        return violated("output is null or missing.", exchange)
    if answer.get("error") is not None:
        return violated("The answer has both an output and an error.", exchange)
    return met("The answer has an output.", exchange)
