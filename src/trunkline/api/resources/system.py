"""The system itself: whether it is ready, which processes live, how much waits, who has changed what, who is asking."""

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
    dependencies: Annotated[Mapping[str, str], Meta(description="Each dependency, with `ok`.")]
    warnings: Annotated[Sequence[str], Meta(description="What stops no work, and should not stay as it is.")]


class Dependency(TypedDict):
    name: str
    ok: bool
    detail: Annotated[str | None, Meta(description="Why it is not; null where it is.")]


class ProcessResource(TypedDict):
    id: str
    name: Annotated[str, Meta(description="Host and process id.")]
    roles: Sequence[str]
    pool: Annotated[str | None, Meta(description="Of bridges: it takes the tasks of that pool alone.")]
    version: str
    started_at: Timestamp
    seen_at: Annotated[Timestamp, Meta(description="When it has last said that it lives.")]
    alive: Annotated[bool, Meta(description="False: it should have said so again by now.")]
    this: Annotated[bool, Meta(description="It is the one that answers.")]


class Count(TypedDict):
    name: str
    count: int
    exact: Annotated[
        bool, Meta(description="False: there are at least as many; they are not counted any further.")
    ]


class Consumers(TypedDict):
    """Processes that share the records of a topic of Kafka's among them."""

    group: Annotated[str, Meta(description="Their consumer group.")]
    topic: str
    role: Annotated[ProcessRole, Meta(description="Of these processes.")]
    pool: Annotated[str | None, Meta(description="Of bridges: the pool whose tasks they take.")]
    waiting: Annotated[
        int | None,
        Meta(description="Records that the group has not settled, over all partitions; null: not known."),
    ]
    partitions: Annotated[int | None, Meta(description="Of the topic; null: not known.")]
    detail: Annotated[str | None, Meta(description="Why it is not known; null where it is.")]


class SystemState(TypedDict):
    """How the system stands."""

    at: Timestamp
    version: Annotated[str, Meta(description="Of the process that answers.")]
    mode: Annotated[
        Literal["embedded", "distributed"], Meta(description="`embedded`: one process is all of it.")
    ]
    store: Literal["sqlite", "postgresql"]
    broker: Literal["memory", "kafka"]
    ready: Annotated[bool, Meta(description="Work can be taken by the process that answers.")]
    dependencies: Annotated[list[Dependency], Meta(description="Of the process that answers.")]
    processes: Annotated[
        list[ProcessResource] | None,
        Meta(
            description="Those that live, and those that have not said good-bye; null: the store cannot be asked."
        ),
    ]
    runs: Annotated[
        list[Count] | None,
        Meta(description="How many runs there are, by their status; null as above."),
    ]
    queues: Annotated[list[Count] | None, Meta(description="How much waits, and where; null as above.")]
    consumers: Annotated[
        list[Consumers] | None,
        Meta(
            description="How far those are behind that take records from Kafka, as it was at most five seconds ago;"
            " null: there is no Kafka."
        ),
    ]
    warnings: Annotated[list[str], Meta(description="What stops no work, and should not stay as it is.")]


class AuditEntryResource(TypedDict):
    id: str
    at: Timestamp
    who: Annotated[
        str | None,
        Meta(description="The name of the key; null: no keys are in use, or none was needed."),
    ]
    kind: AuditKind
    action: Annotated[str, Meta(description="What was done to it.", examples=["cancel"])]
    subject: Annotated[
        str, Meta(description="What it was done to: a run's or a dead letter's id, or a name.")
    ]
    detail: Annotated[
        JsonMapping,
        Meta(description="What else there is to say; never a secret, never what was sent."),
    ]


class AuditPage(TypedDict):
    items: list[AuditEntryResource]
    next_cursor: NextCursor


class CallerResource(TypedDict):
    """Who is asking."""

    name: Annotated[str | None, Meta(description="The name of the key; null: no keys are in use.")]
    role: Annotated[KeyRole, Meta(description="What the key may do; without keys everything.")]


def system_state(
    sight: SystemSnapshot, dependencies: Mapping[str, str], warnings: Sequence[str], now: Instant
) -> SystemState:
    """`dependencies`: each with "ok", or the reason why it is not."""
    asked: list[Dependency] = [
        {"name": name, "ok": reason == OK, "detail": None if reason == OK else reason}
        for name, reason in sorted(dependencies.items())
    ]
    processes, queues = sight.processes, sight.queues
    return {
        "at": rfc3339(now),
        "version": __version__,
        "mode": sight.setup.mode,
        "store": sight.setup.store,
        "broker": sight.setup.broker,
        "ready": all(dependency["ok"] for dependency in asked),
        "dependencies": asked,
        "processes": None if processes is None else [_process(each, sight.this.id) for each in processes],
        "runs": None if queues is None else [_count(*each) for each in queues.runs.items()],
        "queues": None if queues is None else _queues(queues),
        "consumers": None if sight.lags is None else [_consumers(each) for each in sight.lags],
        "warnings": [*warnings, *sight.warnings],
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
        "detail": lag.trouble,
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
