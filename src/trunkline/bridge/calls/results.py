"""
What calls bring back, and what their outcomes mean for the task, for the next poll and for a bridge that takes over.

Deterministic, no I/O.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TypeAlias, TypedDict, assert_never

import msgspec
import structlog

from trunkline.bridge.agents.resolver import ResolvedAgent
from trunkline.bridge.agents.routes import Route
from trunkline.clock import Instant
from trunkline.messages import ERROR_CODES, AgentResult, AgentTask, StepError, fix_for
from trunkline.protocols import Failed, Interrupted, Outcome, Succeeded, Working
from trunkline.stores.base import ClaimedTask, ExchangeRecord, TaskAnswer
from trunkline.transports.answer_memory import CallMemory

log = structlog.stdlib.get_logger()

_UNSUPPORTED_OPERATION = -32004
_TOO_MANY = 429

_FIRST_DELAY = timedelta(milliseconds=200)
_DELAY_GROWTH = 1.5
_MAX_DELAY = timedelta(seconds=5)
# From there on every delay is the longest; without an end the growth would exceed what a timedelta can hold.
_MAX_GROWTHS = 9
# An agent that sends push notifications is polled all the same, in case one is lost.
_FIRST_DELAY_WITH_PUSH = timedelta(seconds=1)
_DELAY_GROWTH_WITH_PUSH = 3
_MAX_DELAY_WITH_PUSH = timedelta(minutes=5)


class CallProgress(msgspec.Struct, frozen=True, kw_only=True):
    """A report of a call that goes on: the agent has accepted the task, or says how far it is."""

    claim: ClaimedTask
    # Keeps the claim (`holds`).
    answer: TaskAnswer
    result: AgentResult


class CallResult(msgspec.Struct, kw_only=True):
    """How a call ended. With `answer.poll_at` the agent works on, and is polled then."""

    claim: ClaimedTask
    answer: TaskAnswer
    # None: the executor has been told the same before.
    result: AgentResult | None
    exchanges: list[ExchangeRecord]
    # Where it went, if the agent's migration gave the run a choice.
    route: Route | None = None
    # What its answer holds of the memory for answers, until the result is stored.
    memory: CallMemory | None = None


class CallExchanges(msgspec.Struct, frozen=True, kw_only=True):
    """The exchanges of a call that decides nothing: its task ends, or has ended, without it."""

    claim: ClaimedTask
    exchanges: list[ExchangeRecord]


CallUpdate: TypeAlias = CallProgress | CallResult | CallExchanges


class ResultIds(TypedDict):
    task_id: str
    run_id: str
    step: str
    attempt: int
    correlation_id: str
    reply_partition: int | None


def ids_of(claim: ClaimedTask) -> ResultIds:
    """What every result says about its task."""
    task = claim.task
    return {
        "task_id": task.task_id,
        "run_id": task.run_id,
        "step": task.step,
        "attempt": task.attempt,
        "correlation_id": task.correlation_id,
        "reply_partition": task.reply_partition,
    }


def task_log(task: AgentTask) -> structlog.stdlib.BoundLogger:
    """A logger whose every line names the task."""
    return log.bind(
        run_id=task.run_id,
        task_id=task.task_id,
        step=task.step,
        attempt=task.attempt,
        agent_name=task.agent,
        correlation_id=task.correlation_id,
    )


def step_error(code: str, message: str) -> StepError:
    return StepError(code=code, message=message, fix=fix_for(code))


def resend_doubt(claim: ClaimedTask) -> str | None:
    """Why the agent may already have this message; None: it certainly does not."""
    if claim.task.doubtful:
        return "The previous attempt got no answer."
    if claim.epoch > 1:
        return "The previous process ended before it got an answer."
    return None


def mark_doubtful(error: StepError, claim: ClaimedTask) -> StepError:
    """A call without an answer passes on that the agent may have the message."""
    code = ERROR_CODES[error.code]
    if code.answered or not (code.sent or resend_doubt(claim) is not None):
        return error
    return msgspec.structs.replace(error, doubtful=True)


def hints_at_other_dialect(error: StepError) -> bool:
    """No proof that the agent speaks another dialect by now, but what one would look like."""
    return error.code == "agent_answer_malformed" or (
        error.code == "agent_http_error" and error.http_status == 500
    )


def refuses_streams(outcome: Outcome) -> bool:
    """Its card offers them, but it says that it took nothing because it has none, or does not know the method."""
    return (
        isinstance(outcome, Failed)
        and (outcome.other_dialect or outcome.error.jsonrpc_code == _UNSUPPORTED_OPERATION)
        and outcome.remote_task_id is None
    )


def unfinished(state: str) -> Failed:
    return Failed(error=step_error("agent_task_unfinished", f"Task state: {state}"))


def after_failed_poll(outcome: Failed, remote_task_id: str) -> Outcome:
    """A poll that got no answer, a 429 or a 5xx is repeated; an agent that cannot be polled is not."""
    error = outcome.error
    if outcome.task_unknown:
        # It took the message and has lost it: as if it had never answered.
        return Failed(error=step_error("agent_task_lost", f"The agent has lost its task: {error.message}"))
    overloaded = error.code == "agent_http_error" and (error.http_status or 0) >= 500
    if overloaded or error.http_status == _TOO_MANY or not ERROR_CODES[error.code].answered:
        return Working(remote_task_id=remote_task_id, state="working")
    if error.jsonrpc_code == -32601:
        return unfinished("working")
    return outcome


def poll_delay(polls: int) -> timedelta:
    """Until the next poll, after so many: short at first, then longer and longer."""
    return min(_FIRST_DELAY * _DELAY_GROWTH ** min(polls, _MAX_GROWTHS), _MAX_DELAY)


def poll_delay_with_push(polls: int) -> timedelta:
    return min(
        _FIRST_DELAY_WITH_PUSH * _DELAY_GROWTH_WITH_PUSH ** min(polls, _MAX_GROWTHS), _MAX_DELAY_WITH_PUSH
    )


def ended_with(claim: ClaimedTask, exchanges: list[ExchangeRecord], result: AgentResult) -> CallResult:
    answer = TaskAnswer(
        key=claim.key, epoch=claim.epoch, remote_task_id=result.remote_task_id, polls=claim.polls
    )
    return CallResult(claim=claim, answer=answer, result=result, exchanges=exchanges)


def result_of(
    claim: ClaimedTask, outcome: Succeeded | Failed | Interrupted, at: Instant, agent: ResolvedAgent
) -> AgentResult:
    protocol = agent.protocol
    match outcome:
        case Succeeded():
            return AgentResult(
                **ids_of(claim),
                status="success",
                at=at,
                output=msgspec.Raw(outcome.output),
                protocol=protocol,
                context_id=outcome.context_id,
                remote_task_id=outcome.remote_task_id,
                warnings=list(outcome.warnings),
            )
        case Failed():
            return AgentResult(
                **ids_of(claim),
                # Its outcome is not known, and another call to find out is not allowed.
                status="unknown" if outcome.error.code == "outcome_unknown" else "error",
                at=at,
                error=mark_doubtful(outcome.error, claim),
                protocol=protocol,
                context_id=outcome.context_id,
                warnings=list(outcome.warnings),
                retry=agent.agent.retry,
            )
        case Interrupted():
            return AgentResult(
                **ids_of(claim),
                status="interrupted",
                at=at,
                question=outcome.question,
                protocol=protocol,
                context_id=outcome.context_id,
                remote_task_id=outcome.remote_task_id,
            )
        case _:
            assert_never(outcome)
