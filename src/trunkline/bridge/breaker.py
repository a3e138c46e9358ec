"""
What the ends of calls tell about the agents that have a breaker, noted in the transaction that writes the answers.

A call counts once, by its first message: whether the agent takes it. Polls do not count.
"""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from trunkline.agents import BreakerPolicy
from trunkline.agents.call_limits.breaker import CallEnd
from trunkline.bridge.calls.results import CallResult
from trunkline.messages import StepError
from trunkline.services.subscriptions.reporter import Change, ChangeReporter
from trunkline.stores.base import BreakerChange, RecordedCallEnd, Transaction
from trunkline.telemetry import log_events
from trunkline.telemetry.metrics import Metrics

log = structlog.stdlib.get_logger()

_ENDED_WELL = CallEnd(failed=False)
_INCONCLUSIVE = CallEnd(failed=None)

_FAILURES = frozenset(
    {
        "agent_dns_failed",
        "agent_unreachable",
        "agent_tls_failed",
        "agent_token_unavailable",
        "agent_timeout",
        "agent_connection_lost",
        "agent_task_lost",
        "agent_unavailable",
        # Nothing about the agent could be found out: it did not answer.
        "agent_protocol_unclear",
        "agent_answer_too_large",
        "agent_answer_compressed",
        "agent_answer_malformed",
        "agent_response_id_mismatch",
        "agent_batch_answer_missing",
    }
)
# Ours or the operator's: the agent was not asked.
NOT_CAUSED_BY_AGENT = frozenset(
    {
        "out_of_resources",
        "agent_unknown",
        "agent_address_forbidden",
        "agent_transport_unavailable",
        "agent_url_invalid",
        "agent_program_unknown",
        "agent_secret_unreadable",
        "secret_missing",
        "secret_unreadable",
        "agent_token_refused",
        "request_not_encodable",
        "blob_missing",
        "attachments_too_large",
        "internal_error",
    }
)
# Statuses below 500 that say "not now" and nothing about the request.
_NOT_NOW = frozenset({408, 425, 429})


class BreakerObserver:
    def __init__(self, metrics: Metrics, reporter: ChangeReporter | None = None) -> None:
        """`reporter`: for the subscriptions to opened breakers."""
        self._metrics = metrics
        self._reporter = reporter
        self._changes: list[BreakerChange] = []

    async def note(self, tx: Transaction, results: Sequence[CallResult]) -> None:
        calls = [call for item in results if (call := _noted(item)) is not None]
        self._changes = await tx.agents.record_calls(calls) if calls else []
        opened = [change for change in self._changes if change.status == "open"]
        if opened and self._reporter is not None:
            await self._reporter.report(tx, [_opened(change) for change in opened])

    def committed(self) -> None:
        for change in self._changes:
            if change.status == "open":
                self._metrics.breakers_opened.labels(change.agent).inc()
                log.warning(log_events.BREAKER_OPENED, agent=change.agent, reason=change.reason)
            else:
                log.info(log_events.BREAKER_CLOSED, agent=change.agent)
        self._changes = []

    def rolled_back(self) -> None:
        self._changes = []


def _opened(change: BreakerChange) -> Change:
    return Change("breaker.open", change.agent, {"agent": change.agent, "reason": change.reason})


def _noted(item: CallResult) -> RecordedCallEnd | None:
    policy = item.claim.breaker
    if policy is None or item.claim.remote_task_id is not None:
        return None
    return RecordedCallEnd(item.claim.task.agent, policy, _end_of(item, policy))


def _end_of(item: CallResult, policy: BreakerPolicy) -> CallEnd:
    result = item.result
    if result is None:
        return _ENDED_WELL
    if result.error is not None:
        return judge_error(result.error, policy)
    return _INCONCLUSIVE if result.status in {"cancelled", "unknown"} else _ENDED_WELL


def judge_error(error: StepError, policy: BreakerPolicy) -> CallEnd:
    """What an error tells about the agent."""
    if error.code in NOT_CAUSED_BY_AGENT:
        return _INCONCLUSIVE
    if not _is_failure(error, policy):
        return _ENDED_WELL
    return CallEnd(failed=True, error=error.message)


def _is_failure(error: StepError, policy: BreakerPolicy) -> bool:
    match error.code:
        case "agent_jsonrpc_error":
            return policy.jsonrpc_errors
        case "agent_http_error":
            status = error.http_status or 0
            return status >= 500 or status in _NOT_NOW
        case code:
            return code in _FAILURES
