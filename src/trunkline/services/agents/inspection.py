"""
Looking at one agent: its card as it is now, and test calls.

A test call is one message to an agent, sent as a step would send it. It is not a run: nothing but the audit entry is
stored, nothing is retried, and it does not count for the agent's limits and breaker. The composition root passes in the
functions that reach the agent.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Literal, Protocol

import msgspec
import structlog

from trunkline.agents import Agent
from trunkline.clock import Instant
from trunkline.jsontypes import Json
from trunkline.messages import Question, StepError
from trunkline.services.agents.registry import AgentRegistry
from trunkline.services.operations.audit_log import audit_entry
from trunkline.stores.base import Store
from trunkline.telemetry import log_events

log = structlog.stdlib.get_logger()

# The caller waits for it.
MAX_TEST_CALL = timedelta(seconds=60)


class CardView(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's card, redacted; or, as text, why there is none."""

    asked_at: Instant
    # As text: a status and what it was, an error, no answer.
    detail: str
    # The last URL that was requested; None: no request was sent.
    url: str | None = None
    card: Json = None
    # Of the card's bytes, as `Dialect.card_digest` has it.
    digest: str | None = None


class ViewCard(Protocol):
    """Fetches an agent's card, with its own credentials; whatever it answers is a view."""

    async def __call__(self, agent: Agent) -> CardView: ...


class AgentTestResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one test call."""

    outcome: Literal["success", "error", "interrupted"]
    started_at: Instant
    duration_ms: float
    # JSON; None: there is none, or `warnings` say why it is not here.
    output: bytes | None = None
    error: StepError | None = None
    question: Question | None = None
    warnings: Sequence[str] = ()
    # The protocol that was spoken; None: it is not known.
    protocol: str | None = None
    # As the wire of a run has them: JSON, redacted and cut.
    exchanges: Sequence[bytes] = ()


class SendTestCall(Protocol):
    """Sends one message to an agent, with its own credentials; whatever the agent does, there is a result."""

    async def __call__(
        self, agent: Agent, message: Json, *, longest: timedelta, correlation_id: str
    ) -> AgentTestResult: ...


class AgentTestCalls:
    def __init__(self, store: Store, registry: AgentRegistry, try_agent: SendTestCall) -> None:
        self._store = store
        self._registry = registry
        self._send = try_agent

    async def call(
        self, name: str, message: Json, *, longest: timedelta | None = None, correlation_id: str
    ) -> AgentTestResult:
        """
        `message` is what a step has as its input. The agent gets its own timeout, or `longest`, and never more than a
        minute. Raises `NotFound`.
        """
        agent = await self._registry.get(name)
        # Before the call: the agent may act on it whether we live to see the answer or not.
        async with self._store.transaction() as tx:
            await tx.audit.put([audit_entry("agent", "try", agent.name, correlation_id=correlation_id)])
        own = timedelta(milliseconds=agent.timeout_ms)
        result = await self._send(
            agent, message, longest=min(longest or own, MAX_TEST_CALL), correlation_id=correlation_id
        )
        log.info(
            log_events.AGENT_TRIED,
            agent=agent.name,
            outcome=result.outcome,
            code=None if result.error is None else result.error.code,
        )
        return result
