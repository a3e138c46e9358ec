"""
A step of a workflow, sent as the bridge sends it and read as the bridge reads it.

    step        the request of a step
    step-poll   if the task is still working: one poll of its status
"""

from __future__ import annotations

from collections.abc import Callable

from trunkline.agents.check_reports import CheckSample
from trunkline.checker.check_plan import (
    ExchangeRule,
    PlannedCheck,
    RuleResult,
    for_each_exchange,
    met,
    not_applicable,
    violated,
)
from trunkline.checker.exchanges import ProbeExchange, ProbeExchanges, ProbeRequest
from trunkline.messages import AgentTask
from trunkline.protocols import Failed, ProtocolAdapter, ProtocolTranslationError, Succeeded, Working

_POLL = "step-poll"


def step_task(nonce: str, sample: CheckSample) -> AgentTask:
    """The task as the bridge receives it for a step."""
    return AgentTask(task_id=f"check-{nonce}/step/0", input_data=sample.input)


def step_poll(
    adapter: ProtocolAdapter, nonce: str, sample: CheckSample
) -> Callable[[ProbeExchanges], ProbeRequest | None]:
    """The poll after the step; None if the task has finished or the dialect cannot poll."""
    task = step_task(nonce, sample)

    def ask(exchanges: ProbeExchanges) -> ProbeRequest | None:
        working = _working(adapter, task, exchanges)
        poll = None if working is None else adapter.encode_poll(task, working.remote_task_id)
        if poll is None:
            return None
        return ProbeRequest(
            name=_POLL, body=poll.body or None, headers=poll.headers, path=poll.path, active=True
        )

    return ask


def step_check(adapter: ProtocolAdapter, nonce: str, sample: CheckSample) -> PlannedCheck:
    task = step_task(nonce, sample)

    def rule(exchanges: ProbeExchanges) -> RuleResult:
        working = _working(adapter, task, exchanges)
        if working is None:
            return for_each_exchange(_usable_by_bridge(adapter, task), "step")(exchanges)
        step, poll = exchanges["step"], exchanges.get(_POLL)
        if poll is not None and poll.answer is not None:
            return _poll_works(adapter, task, working, step, poll)
        if adapter.encode_poll(task, working.remote_task_id) is None:
            return violated("The task has not finished, and the agent does not support polling.", step)
        return not_applicable("The task has not finished, and the agent did not answer the poll.")

    return PlannedCheck(id="works-in-workflow", rule=rule)


def _working(adapter: ProtocolAdapter, task: AgentTask, exchanges: ProbeExchanges) -> Working | None:
    """The result for a step whose task is still working."""
    answer = exchanges["step"].answer if "step" in exchanges else None
    if answer is None:
        return None
    try:
        outcome = adapter.decode(answer, task)
    except ProtocolTranslationError:
        return None
    return outcome if isinstance(outcome, Working) else None


def _poll_works(
    adapter: ProtocolAdapter, task: AgentTask, working: Working, step: ProbeExchange, poll: ProbeExchange
) -> RuleResult:
    result = _usable_by_bridge(adapter, task, working.remote_task_id)(poll)
    if result.judgement != "violated":
        return met("The task has not finished, and the agent reports its status.", step, poll)
    return violated(
        f"The task has not finished, and the agent answers the poll with: {result.seen}", step, poll
    )


def _usable_by_bridge(
    adapter: ProtocolAdapter, task: AgentTask, asked_for: str | None = None
) -> ExchangeRule:
    """Whether the bridge can use the answer about this task."""

    def judge(exchange: ProbeExchange) -> RuleResult:
        if exchange.answer is None:
            return not_applicable("No answer: see answers-whole.")
        try:
            outcome = adapter.decode(exchange.answer, task)
        except ProtocolTranslationError as exc:
            return violated(str(exc), exchange)
        answered_id = outcome.remote_task_id
        if asked_for is not None and answered_id is not None and answered_id != asked_for:
            return violated(
                f"Response ID mismatch: asked for the task {asked_for}, got {answered_id}", exchange
            )
        match outcome:
            case Failed(error=error):
                return violated(error.message, exchange)
            case Succeeded(warnings=warnings) if warnings:
                return met(f"The answer has an output, with a warning: {warnings[0]}", exchange)
            case _:
                return met("The bridge can use the answer.", exchange)

    return judge
