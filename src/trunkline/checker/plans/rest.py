"""
A2A 1.0 over HTTP+JSON.

    refused  POST /message:send  {}   {"message": {"parts": "no list"}}   {"message":       4xx
             GET  /tasks/no-such-task                                                        404
    active   POST /message:send  {"message": {…}}     {"task": {…}} or {"message": {…}}
"""

from __future__ import annotations

from trunkline.agents.check_reports import CheckSample
from trunkline.checker.exchanges import Exchange, Probe
from trunkline.checker.judging import Plan, Question, Ruling, broken, each, kept, moot
from trunkline.checker.plans.steps import step_poll, step_question, step_task
from trunkline.jsontypes import encode
from trunkline.protocols import ProtocolAdapter

_REFUSED = ("no-message", "parts-no-list")


def rest_plan(adapter: ProtocolAdapter, nonce: str, sample: CheckSample) -> Plan:
    task = step_task(nonce, sample)
    step = adapter.encode(task)
    unknown = adapter.encode_poll(task, f"no-such-task-{nonce}") or step
    bad = {"message": {"role": "ROLE_USER", "messageId": "check", "parts": "no list"}}

    def sent(name: str, body: bytes) -> Probe:
        return Probe(name=name, body=body, headers=step.headers, path=step.path)

    return Plan(
        probes=[
            sent("no-message", b"{}"),
            sent("parts-no-list", encode(bad)),
            sent("not-json", b'{"message": '),
            Probe(name="unknown-task", body=None, headers=unknown.headers, path=unknown.path),
            Probe(name="step", body=step.body, headers=step.headers, path=step.path, active=True),
        ],
        questions=[
            Question(id="params-checked", rule=each(_refused, *_REFUSED), level="recommended"),
            Question(id="parse-error", rule=each(_refused, "not-json"), level="recommended"),
            Question(id="unknown-task", rule=each(_not_found, "unknown-task")),
            step_question(adapter, nonce, sample),
        ],
        speaks=lambda exchange: exchange.is_json,
        last=step_poll(adapter, nonce, sample),
    )


def _refused(exchange: Exchange) -> Ruling:
    if exchange.answer is None:
        return moot("It was not answered: see answers-whole.")
    judged = kept if 400 <= exchange.status < 500 else broken
    return judged(exchange.seen(), exchange)


def _not_found(exchange: Exchange) -> Ruling:
    if exchange.answer is None:
        return moot("It was not answered: see answers-whole.")
    return (kept if exchange.status == 404 else broken)(exchange.seen(), exchange)
