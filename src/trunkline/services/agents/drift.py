"""
Drift of agents: a card that has changed, a check with another grade, another dialect.

Each becomes an agent event, once, in the transaction that has seen it, and is counted.
"""

from __future__ import annotations

import msgspec
import structlog

from trunkline.agents import Agent, Dialect
from trunkline.agents.check_reports import AgentCheckReport, CheckTarget, drift_between
from trunkline.agents.migration.comparison import AnswerComparison
from trunkline.id_generation import new_id
from trunkline.jsontypes import JsonObject, encode
from trunkline.services.subscriptions.reporter import Change, ChangeReporter
from trunkline.stores.base import Store, Transaction
from trunkline.stores.port.agents.agent_events import AgentEvent, AgentEventKind, CheckRecord, NewAgentEvent
from trunkline.telemetry import log_events
from trunkline.telemetry.metrics import Metrics

log = structlog.stdlib.get_logger()

# Whose doing it is that we have looked.
OURSELVES = "trunkline"
# Of each agent; a check with its evidence takes some tens of kilobytes.
KEPT_CHECKS = 50

_LOGGED: dict[AgentEventKind, str] = {
    "card_changed": log_events.CARD_CHANGED,
    "grade_changed": log_events.GRADE_CHANGED,
    "dialect_changed": log_events.DIALECT_CHANGED,
}
_reports = msgspec.json.Decoder(AgentCheckReport)


class CardChange(msgspec.Struct, frozen=True, kw_only=True):
    """The data of an event `card_changed`: digests of the card's bytes, or None without a card."""

    before: str | None
    digest: str | None
    card_url: str | None = None


class DialectChange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The data of an event `dialect_changed`: the agent was updated in place."""

    before: str
    after: str
    # How many recorded calls were sent again; None: the agent is not declared repeatable.
    compared: int | None = None
    # Those whose answer is not the recorded one.
    differing: list[AnswerComparison] = []


_card_changes = msgspec.json.Decoder(CardChange)


class DriftRecorder:
    def __init__(self, store: Store, metrics: Metrics, reporter: ChangeReporter | None = None) -> None:
        """`reporter`: for the subscriptions to changed grades."""
        self._store = store
        self._metrics = metrics
        self._reporter = reporter

    async def record_check(
        self, agent: Agent, report: AgentCheckReport, target: CheckTarget | None = None
    ) -> CheckRecord:
        """
        Stores a check of an agent, or of its migration target.

        Another grade, or another card, than at the last check of the same kind is an event.
        """
        async with self._store.transaction() as tx:
            record = CheckRecord(
                id=new_id(),
                agent_id=agent.id,
                at=tx.now,
                url=agent.url if target is None else target.url,
                protocol=report.protocol if target is None else target.protocol,
                active=report.active,
                grade=report.grade,
                passed=report.passed,
                report=encode(report),
            )
            # Before anything else is locked.
            await tx.agent_events.lock()
            before = await tx.checks.put(record, KEPT_CHECKS)
            changes = [] if before is None else _changes(agent, before, report)
            written = await put_new_events(tx, self._store, changes)
            graded = [event for event in written if event.kind == "grade_changed"]
            if graded and self._reporter is not None:
                await self._reporter.report(tx, [_graded(event, report) for event in graded])
        self.report_events(written)
        if target is None:
            self._metrics.show_grade(agent.name, report.grade)
        return record

    async def record_dialect_change(self, agent: Agent, change: DialectChange) -> None:
        event = _event(agent, "dialect_changed", _dialect_words(change), encode(change))
        async with self._store.transaction() as tx:
            await tx.agent_events.lock()
            written = await tx.agent_events.put([event])
        self.report_events(written)

    def report_events(self, events: list[AgentEvent]) -> None:
        """To be called when they are committed."""
        for event in events:
            self._metrics.drifts.labels(event.agent, event.kind.removesuffix("_changed")).inc()
            log.warning(_LOGGED[event.kind], agent=event.agent, reason=event.why)


def _graded(event: AgentEvent, report: AgentCheckReport) -> Change:
    data: JsonObject = {"agent": event.agent, "grade": report.grade, "reason": event.why, "url": report.url}
    return Change("check.grade_changed", event.agent, data)


def card_change(agent: Agent, before: Dialect | None, dialect: Dialect | None) -> NewAgentEvent | None:
    """The event to record when an agent's dialect has been detected again; None: its card is the same."""
    if before is None or dialect is None or before.card_digest == dialect.card_digest:
        return None
    change = CardChange(
        before=before.card_digest, digest=dialect.card_digest, card_url=dialect.card_url or before.card_url
    )
    return _event(agent, "card_changed", _card_words(change), encode(change))


async def put_new_events(tx: Transaction, store: Store, events: list[NewAgentEvent]) -> list[AgentEvent]:
    """Writes those that are not recorded yet: bridges and checks both read cards. The caller holds the lock."""
    new = [event for event in events if not await _is_recorded(store, event)]
    return await tx.agent_events.put(new) if new else []


async def _is_recorded(store: Store, event: NewAgentEvent) -> bool:
    if event.kind != "card_changed":
        return False
    for known in await store.agent_events.page(limit=20, agent_id=event.agent_id):
        if known.kind == event.kind:
            return _card_changes.decode(known.data).digest == _card_changes.decode(event.data).digest
    return False


def _changes(agent: Agent, record: CheckRecord, report: AgentCheckReport) -> list[NewAgentEvent]:
    try:
        before = _reports.decode(record.report)
    except msgspec.ValidationError:
        # Another version of the program has asked, and perhaps other questions.
        return []
    drift = drift_between(before, report)
    if drift is None:
        return []
    changes: list[NewAgentEvent] = []
    if drift.card_changed:
        change = CardChange(before=before.card_digest, digest=report.card_digest)
        changes.append(_event(agent, "card_changed", _card_words(change), encode(change)))
    if drift.grade != drift.grade_before:
        worse = f"; regressions: {', '.join(drift.worse)}" if drift.worse else ""
        better = f"; improvements: {', '.join(drift.better)}" if drift.better else ""
        words = (
            f"The grade at {report.url} changed from {drift.grade_before} to {drift.grade}{worse}{better}."
        )
        changes.append(_event(agent, "grade_changed", words, encode(drift)))
    return changes


def _card_words(change: CardChange) -> str:
    if change.digest is None:
        return "The agent no longer has a card."
    return "The agent now has a card." if change.before is None else "The agent's card has changed."


def _dialect_words(change: DialectChange) -> str:
    changed = f"The agent was updated in place: it spoke {change.before}, and now speaks {change.after}."
    if change.compared is None:
        why = "because the agent is not declared repeatable"
        return f"{changed} Its answers were not compared with recorded ones, {why}."
    if not change.compared:
        return f"{changed} Its answers could not be compared, because no call was recorded."
    if not change.differing:
        return f"{changed} It answers {change.compared} recorded calls as before."
    return (
        f"{changed} Its outputs have changed: it answers {len(change.differing)} of {change.compared} recorded calls "
        f"differently. {_first_difference(change.differing[0])}"
    )


def _first_difference(comparison: AnswerComparison) -> str:
    if comparison.new_error is not None:
        return f"First: it failed: {comparison.new_error}"
    first = comparison.differences[0]
    return f"First: {first.path} was {first.old or 'missing'} and is {first.new or 'missing'}."


def _event(agent: Agent, kind: AgentEventKind, why: str, data: bytes) -> NewAgentEvent:
    return NewAgentEvent(agent_id=agent.id, agent=agent.name, kind=kind, who=OURSELVES, why=why, data=data)
