"""What the API shows of the system itself: how it stands, who has changed what, and who is asking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from trunkline import __version__
from trunkline.api.services import OK
from trunkline.api.views import page_json
from trunkline.brokers.base import Lag
from trunkline.clock import Instant, rfc3339
from trunkline.jsontypes import encode
from trunkline.services.operations.system_status import MAX_COUNTED, SystemSnapshot
from trunkline.stores.base import KeyRole
from trunkline.stores.port.operations import AuditEntry, Queues, SeenProcess


class _Dependency(msgspec.Struct):
    name: str
    ok: bool
    detail: str | None


class _Process(msgspec.Struct):
    id: str
    name: str
    roles: Sequence[str]
    pool: str | None
    version: str
    started_at: str
    seen_at: str
    alive: bool
    # The one that has answered.
    this: bool


class _Count(msgspec.Struct):
    name: str
    count: int
    # False: at least as many.
    exact: bool


class _Consumers(msgspec.Struct):
    group: str
    topic: str
    role: str
    pool: str | None
    waiting: int | None
    partitions: int | None
    detail: str | None


class _System(msgspec.Struct):
    at: str
    version: str
    mode: str
    store: str
    broker: str
    ready: bool
    dependencies: list[_Dependency]
    processes: list[_Process] | None
    runs: list[_Count] | None
    queues: list[_Count] | None
    consumers: list[_Consumers] | None
    warnings: Sequence[str]


def system_json(
    sight: SystemSnapshot, dependencies: Mapping[str, str], warnings: Sequence[str], now: Instant
) -> bytes:
    """`dependencies`: each with "ok", or the reason why it is not."""
    asked = [
        _Dependency(name, reason == OK, None if reason == OK else reason)
        for name, reason in sorted(dependencies.items())
    ]
    processes, queues = sight.processes, sight.queues
    return encode(
        _System(
            at=rfc3339(now),
            version=__version__,
            mode=sight.setup.mode,
            store=sight.setup.store,
            broker=sight.setup.broker,
            ready=all(dependency.ok for dependency in asked),
            dependencies=asked,
            processes=None if processes is None else [_process(each, sight.this.id) for each in processes],
            runs=None if queues is None else [_count(*each) for each in queues.runs.items()],
            queues=None if queues is None else _queues(queues),
            consumers=None if sight.lags is None else [_consumers(each) for each in sight.lags],
            warnings=[*warnings, *sight.warnings],
        )
    )


def _process(process: SeenProcess, this: str) -> _Process:
    return _Process(
        process.id,
        process.name,
        process.roles,
        process.pool,
        process.version,
        rfc3339(process.started_at),
        rfc3339(process.seen_at),
        process.alive,
        process.id == this,
    )


def _queues(queues: Queues) -> list[_Count]:
    return [_count(name, value) for name, value in msgspec.structs.asdict(queues).items() if name != "runs"]


def _consumers(lag: Lag) -> _Consumers:
    group = lag.group
    return _Consumers(
        group.name, group.topic, group.role, group.pool, lag.waiting, lag.partitions, lag.trouble
    )


def _count(name: str, count: int) -> _Count:
    return _Count(name, count, count < MAX_COUNTED)


class _Entry(msgspec.Struct):
    id: str
    at: str
    who: str | None
    kind: str
    action: str
    subject: str
    detail: msgspec.Raw


def audit_json(entries: Sequence[AuditEntry], next_cursor: str | None) -> bytes:
    return page_json(
        [
            _Entry(
                entry.id,
                rfc3339(entry.at),
                entry.who,
                entry.kind,
                entry.action,
                entry.subject,
                msgspec.Raw(entry.detail),
            )
            for entry in entries
        ],
        next_cursor,
    )


def caller_json(name: str | None, role: KeyRole) -> bytes:
    return encode({"name": name, "role": role})
