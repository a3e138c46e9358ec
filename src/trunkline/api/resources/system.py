"""The state of the system: readiness, processes, queues, the audit log, and the caller's identity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, TypedDict, cast

import msgspec
from msgspec import Meta

from trunkline import __version__
from trunkline.api.resources.common import JsonMapping, NextCursor, Timestamp, stored_json
from trunkline.api.services import OK
from trunkline.brokers.base import Lag
from trunkline.clock import Instant, rfc3339
from trunkline.jsontypes import JsonObject
from trunkline.services.operations.system_status import MAX_COUNTED, SystemSnapshot
from trunkline.stores.base import KeyRole
from trunkline.stores.port.operations import AuditEntry, AuditKind, Queues, SeenProcess

ProcessRole = Literal["api", "bridge", "executor"]


class Liveness(TypedDict):
    status: str


class Readiness(TypedDict):
    status: str
    dependencies: Annotated[
        Mapping[str, str], Meta(description="The state of each dependency: `ok`, or what is wrong.")
    ]
    warnings: Annotated[
        Sequence[str], Meta(description="Problems that do not stop work, but need attention.")
    ]


class Dependency(TypedDict):
    name: str
    ok: bool
    detail: Annotated[str | None, Meta(description="What is wrong. Null if `ok` is true.")]


class ProcessResource(TypedDict):
    id: str
    name: Annotated[str, Meta(description="Host and process id.")]
    roles: Sequence[str]
    pool: Annotated[str | None, Meta(description="For a bridge: the agent pool whose tasks it takes.")]
    version: str
    started_at: Timestamp
    seen_at: Annotated[Timestamp, Meta(description="Time of the last heartbeat.")]
    alive: Annotated[bool, Meta(description="False if the last heartbeat is too old.")]
    this: Annotated[bool, Meta(description="Whether this is the process that answered the request.")]


class Count(TypedDict):
    name: str
    count: int
    exact: Annotated[
        bool, Meta(description="False if counting stopped at the limit, so that there may be more.")
    ]


class Consumers(TypedDict):
    """A Kafka consumer group, and its lag."""

    group: Annotated[str, Meta(description="Name of the consumer group.")]
    topic: str
    role: Annotated[ProcessRole, Meta(description="Role of the processes in the group.")]
    pool: Annotated[str | None, Meta(description="For bridges: the agent pool whose tasks they take.")]
    waiting: Annotated[
        int | None,
        Meta(
            description="Records that the group has not committed yet, over all partitions. Null if unknown."
        ),
    ]
    partitions: Annotated[int | None, Meta(description="Number of partitions of the topic. Null if unknown.")]
    detail: Annotated[str | None, Meta(description="Why a value is unknown. Null if all are known.")]


class SystemState(TypedDict):
    """The state of the system."""

    at: Timestamp
    version: Annotated[str, Meta(description="Version of the process that answers.")]
    mode: Annotated[
        Literal["embedded", "distributed"],
        Meta(description="`embedded`: all roles in one process. `distributed`: several processes."),
    ]
    store: Literal["sqlite", "postgresql"]
    broker: Literal["memory", "kafka"]
    ready: Annotated[bool, Meta(description="Whether the process that answers can accept work.")]
    dependencies: Annotated[list[Dependency], Meta(description="Dependencies of the process that answers.")]
    processes: Annotated[
        list[ProcessResource] | None,
        Meta(
            description="Running processes, and processes that ended without signing off. Null if the store "
            "is unavailable."
        ),
    ]
    runs: Annotated[
        list[Count] | None,
        Meta(description="Number of runs by status. Null if the store is unavailable."),
    ]
    queues: Annotated[
        list[Count] | None,
        Meta(description="Number of waiting entries by queue. Null if the store is unavailable."),
    ]
    consumers: Annotated[
        list[Consumers] | None,
        Meta(description="Lag of the Kafka consumer groups, at most five seconds old. Null without Kafka."),
    ]
    warnings: Annotated[list[str], Meta(description="Problems that do not stop work, but need attention.")]


class CacheResource(TypedDict):
    """The cache of outputs of steps."""

    outputs: Annotated[int, Meta(description="How many outputs can be reused.")]
    size_bytes: int


class ClearedCacheResource(TypedDict):
    cleared: Annotated[int, Meta(description="How many outputs were deleted.")]


class AuditEntryResource(TypedDict):
    id: str
    at: Timestamp
    who: Annotated[
        str | None,
        Meta(description="Name of the API key. Null if no key was used."),
    ]
    kind: AuditKind
    action: Annotated[str, Meta(description="What was done.", examples=["cancel"])]
    subject: Annotated[
        str, Meta(description="What was changed: the id of a run or a dead letter, or a name.")
    ]
    detail: Annotated[
        JsonMapping,
        Meta(description="Further details. Never contains secrets or payloads."),
    ]


class AuditPage(TypedDict):
    items: list[AuditEntryResource]
    next_cursor: NextCursor


class CallerResource(TypedDict):
    """The identity of the caller."""

    name: Annotated[str | None, Meta(description="Name of the API key. Null without API keys.")]
    role: Annotated[KeyRole, Meta(description="Role of the API key. `admin` without API keys.")]


def system_state(
    snapshot: SystemSnapshot, dependencies: Mapping[str, str], warnings: Sequence[str], now: Instant
) -> SystemState:
    """`dependencies` maps each dependency to "ok" or to what is wrong."""
    asked: list[Dependency] = [
        {"name": name, "ok": reason == OK, "detail": None if reason == OK else reason}
        for name, reason in sorted(dependencies.items())
    ]
    processes, queues = snapshot.processes, snapshot.queues
    return {
        "at": rfc3339(now),
        "version": __version__,
        "mode": snapshot.setup.mode,
        "store": snapshot.setup.store,
        "broker": snapshot.setup.broker,
        "ready": all(dependency["ok"] for dependency in asked),
        "dependencies": asked,
        "processes": None if processes is None else [_process(each, snapshot.this.id) for each in processes],
        "runs": None if queues is None else [_count(*each) for each in queues.runs.items()],
        "queues": None if queues is None else _queues(queues),
        "consumers": None if snapshot.lags is None else [_consumers(each) for each in snapshot.lags],
        "warnings": [*warnings, *snapshot.warnings],
    }


def _process(process: SeenProcess, this: str) -> ProcessResource:
    return {
        "id": process.id,
        "name": process.name,
        "roles": process.roles,
        "pool": process.pool,
        "version": process.version,
        "started_at": rfc3339(process.started_at),
        "seen_at": rfc3339(process.seen_at),
        "alive": process.alive,
        "this": process.id == this,
    }


def _queues(queues: Queues) -> list[Count]:
    return [_count(name, value) for name, value in msgspec.structs.asdict(queues).items() if name != "runs"]


def _consumers(lag: Lag) -> Consumers:
    return {
        "group": lag.group.name,
        "topic": lag.group.topic,
        "role": cast("ProcessRole", lag.group.role),
        "pool": lag.group.pool,
        "waiting": lag.waiting,
        "partitions": lag.partitions,
        "detail": lag.failure,
    }


def _count(name: str, count: int) -> Count:
    return {"name": name, "count": count, "exact": count < MAX_COUNTED}


def audit_entry(entry: AuditEntry) -> AuditEntryResource:
    return {
        "id": entry.id,
        "at": rfc3339(entry.at),
        "who": entry.who,
        "kind": entry.kind,
        "action": entry.action,
        "subject": entry.subject,
        "detail": cast("JsonObject", stored_json(entry.detail)),
    }
