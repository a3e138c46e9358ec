"""What the API shows of agents' moves; `schemas.migration` describes the same shapes."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from trunkline.agents.migration import MigrationState
from trunkline.agents.migration.blockers import CutoverBlocker
from trunkline.agents.migration.routing import EndpointName
from trunkline.api.views import page_json
from trunkline.clock import rfc3339
from trunkline.jsontypes import encode
from trunkline.services.migration.output_changes import ChangedRead
from trunkline.services.migration.plan import (
    CheckOutcome,
    EndpointCalls,
    MigrationDetail,
    MigrationPlanEntry,
    OfferedProtocol,
)
from trunkline.services.migration.repository import BulkChangeResult, RefusedChange, StageChange
from trunkline.services.migration.states import decode_migration
from trunkline.stores.port.agent_events import AgentEvent, ComparisonRecord


class _Target(msgspec.Struct):
    url: str
    protocol: str
    protocol_config: object


class _Attestation(msgspec.Struct):
    who: str
    at: str
    note: str


class _State(msgspec.Struct):
    stage: str
    target: _Target | None
    percent: float
    limits: dict[str, object]
    ready: _Attestation | None
    forced: bool


class _Event(msgspec.Struct):
    id: int
    agent: str
    kind: str
    at: str
    who: str
    why: str
    data: _State | msgspec.Raw


class _Change(msgspec.Struct):
    agent: str
    migration: _State
    # None: it was so already.
    event: _Event | None


class _Outcome(msgspec.Struct):
    changed: list[_Change]
    refused: list[RefusedChange]
    left_alone: list[RefusedChange]


class _Check(msgspec.Struct):
    at: str
    url: str
    protocol: str
    grade: str
    passed: bool


class _Entry(msgspec.Struct):
    agent: str
    url: str
    protocol: str
    in_use: str | None
    offers: list[OfferedProtocol]
    workflows: list[str]
    migration: _State | None
    event: _Event | None
    last_check: _Check | None
    blockers: list[CutoverBlocker]
    expressions: list[ChangedRead]
    comparisons: dict[str, int]
    calls: dict[EndpointName, EndpointCalls]


class _Status(_Entry):
    old_runs: int


class _Comparison(msgspec.Struct):
    id: str
    at: str
    run: str
    step: str
    verdict: str
    comparison: msgspec.Raw


def migration_state(state: MigrationState | None) -> object:
    """Of an agent: where its move stands; None: nowhere."""
    return None if state is None else _state(state)


def change_json(change: StageChange) -> bytes:
    return encode(_change(change))


def changes_json(changes: Sequence[StageChange]) -> bytes:
    return outcome_json(BulkChangeResult(changed=list(changes), refused=[], left_alone=[]))


def outcome_json(outcome: BulkChangeResult) -> bytes:
    changed = [_change(change) for change in outcome.changed]
    return encode(_Outcome(changed, outcome.refused, outcome.left_alone))


def entries_json(entries: Sequence[MigrationPlanEntry], next_cursor: str | None) -> bytes:
    return page_json([_entry(entry) for entry in entries], next_cursor)


def status_json(status: MigrationDetail) -> bytes:
    return encode(_Status(**msgspec.structs.asdict(_entry(status.entry)), old_runs=status.old_runs))


def agent_events_json(events: Sequence[AgentEvent], next_cursor: str | None) -> bytes:
    return page_json([_event(event) for event in events], next_cursor)


def comparisons_json(records: Sequence[ComparisonRecord], next_cursor: str | None) -> bytes:
    return page_json(
        [
            _Comparison(
                record.id,
                rfc3339(record.at),
                record.run_id,
                record.step,
                record.verdict,
                msgspec.Raw(record.record),
            )
            for record in records
        ],
        next_cursor,
    )


def _state(state: MigrationState) -> _State:
    target, ready = state.target, state.ready
    return _State(
        stage=state.stage,
        target=None if target is None else _Target(target.url, target.protocol, target.protocol_config),
        percent=state.percent,
        limits=msgspec.structs.asdict(state.limits),
        ready=None if ready is None else _Attestation(ready.who, rfc3339(ready.at), ready.note),
        forced=state.forced,
    )


def _event(event: AgentEvent) -> _Event:
    state = decode_migration(event) if event.kind == "migration" else None
    return _Event(
        event.id,
        event.agent,
        event.kind,
        rfc3339(event.at),
        event.who,
        event.why,
        msgspec.Raw(event.data) if state is None else _state(state),
    )


def _change(change: StageChange) -> _Change:
    event = change.event
    return _Change(change.agent, _state(change.state), None if event is None else _event(event))


def _check(check: CheckOutcome) -> _Check:
    return _Check(rfc3339(check.at), check.url, check.protocol, check.grade, check.passed)


def _entry(entry: MigrationPlanEntry) -> _Entry:
    return _Entry(
        agent=entry.agent,
        url=entry.url,
        protocol=entry.protocol,
        in_use=entry.in_use,
        offers=entry.offers,
        workflows=entry.workflows,
        migration=None if entry.state is None else _state(entry.state),
        event=None if entry.event is None else _event(entry.event),
        last_check=None if entry.last_check is None else _check(entry.last_check),
        blockers=entry.blockers,
        expressions=entry.expressions,
        comparisons=entry.comparisons,
        calls=entry.calls,
    )
