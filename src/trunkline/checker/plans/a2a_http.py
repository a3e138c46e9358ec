"""
A2A 1.0 over HTTP+JSON.

    refused  POST /message:send  {}   {"message": {"parts": "no list"}}   {"message":       4xx
             GET  /tasks/no-such-task                                                        404
    active   POST /message:send  {"message": {…}}     {"task": {…}} or {"message": {…}}
"""

from __future__ import annotations

from trunkline.agents.check_reports import CheckSample
from trunkline.checker.check_plan import (
    CheckPlan,
    PlannedCheck,
    RuleResult,
    for_each_exchange,
    met,
    not_applicable,
    violated,
)
from trunkline.checker.exchanges import ProbeExchange, ProbeRequest
from trunkline.checker.plans.step_call import step_check, step_poll, step_task
from trunkline.jsontypes import encode
from trunkline.protocols import ProtocolAdapter

_REFUSED = ("no-message", "parts-no-list")


def a2a_http_plan(adapter: ProtocolAdapter, nonce: str, sample: CheckSample) -> CheckPlan:
    task = step_task(nonce, sample)
    step = adapter.encode(task)
    unknown = adapter.encode_poll(task, f"no-such-task-{nonce}") or step
    bad = {"message": {"role": "ROLE_USER", "messageId": "check", "parts": "no list"}}

    def sent(name: str, body: bytes) -> ProbeRequest:
        return ProbeRequest(name=name, body=body, headers=step.headers, path=step.path)

    return CheckPlan(
        probes=[
            sent("no-message", b"{}"),
            sent("parts-no-list", encode(bad)),
            sent("not-json", b'{"message": '),
            ProbeRequest(name="unknown-task", body=None, headers=unknown.headers, path=unknown.path),
            ProbeRequest(name="step", body=step.body, headers=step.headers, path=step.path, active=True),
        ],
        checks=[
            PlannedCheck(
                id="params-checked", rule=for_each_exchange(_refused, *_REFUSED), level="recommended"
            ),
            PlannedCheck(id="parse-error", rule=for_each_exchange(_refused, "not-json"), level="recommended"),
            PlannedCheck(id="unknown-task", rule=for_each_exchange(_not_found, "unknown-task")),
            step_check(adapter, nonce, sample),
        ],
        speaks=lambda exchange: exchange.is_json,
        follow_up=step_poll(adapter, nonce, sample),
    )


def _refused(exchange: ProbeExchange) -> RuleResult:
    if exchange.answer is None:
        return not_applicable("No answer: see answers-whole.")
    judged = met if 400 <= exchange.status < 500 else violated
    return judged(exchange.summary(), exchange)


def _not_found(exchange: ProbeExchange) -> RuleResult:
    if exchange.answer is None:
        return not_applicable("No answer: see answers-whole.")
    return (met if exchange.status == 404 else violated)(exchange.summary(), exchange)
