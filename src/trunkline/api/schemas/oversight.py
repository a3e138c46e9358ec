"""The shapes of what the API shows of the system itself."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from trunkline.api.schemas.common import JsonObject, NextCursor, Shape, Time

Role = Literal["viewer", "operator", "admin"]


class Dependency(Shape):
    name: str
    ok: bool
    detail: str | None = Field(description="Why it is not; null where it is.")


class Process(Shape):
    id: str
    name: str = Field(description="Host and process id.")
    roles: list[str]
    pool: str | None = Field(description="Of bridges: it takes the tasks of that pool alone.")
    version: str
    started_at: Time
    seen_at: Time = Field(description="When it has last said that it lives.")
    alive: bool = Field(description="False: it should have said so again by now.")
    this: bool = Field(description="It is the one that answers.")


class Count(Shape):
    name: str
    count: int
    exact: bool = Field(description="False: there are at least as many; they are not counted any further.")


class Consumers(Shape):
    """Processes that share the records of a topic of Kafka's among them."""

    group: str = Field(description="Their consumer group.")
    topic: str
    role: Literal["api", "bridge", "executor"] = Field(description="Of these processes.")
    pool: str | None = Field(description="Of bridges: the pool whose tasks they take.")
    waiting: int | None = Field(
        description="Records that the group has not settled, over all partitions; null: not known."
    )
    partitions: int | None = Field(description="Of the topic; null: not known.")
    detail: str | None = Field(description="Why it is not known; null where it is.")


class SystemState(Shape):
    """How the system stands."""

    at: Time
    version: str = Field(description="Of the process that answers.")
    mode: Literal["embedded", "distributed"] = Field(description="`embedded`: one process is all of it.")
    store: Literal["sqlite", "postgresql"]
    broker: Literal["memory", "kafka"]
    ready: bool = Field(description="Work can be taken by the process that answers.")
    dependencies: list[Dependency] = Field(description="Of the process that answers.")
    processes: list[Process] | None = Field(
        description="Those that live, and those that have not said good-bye; null: the store cannot be asked."
    )
    runs: list[Count] | None = Field(description="How many runs there are, by their status; null as above.")
    queues: list[Count] | None = Field(description="How much waits, and where; null as above.")
    consumers: list[Consumers] | None = Field(
        description="How far those are behind that take records from Kafka, as it was at most five seconds ago; null:"
        " there is no Kafka."
    )
    warnings: list[str] = Field(description="What stops no work, and should not stay as it is.")


class AuditEntry(Shape):
    id: str
    at: Time
    who: str | None = Field(description="The name of the key; null: no keys are in use, or none was needed.")
    kind: Literal["run", "workflow", "agent", "migration", "key", "secret", "dead_letter"]
    action: str = Field(description="What was done to it.", examples=["cancel"])
    subject: str = Field(description="What it was done to: a run's or a dead letter's id, or a name.")
    detail: JsonObject = Field(description="What else there is to say; never a secret, never what was sent.")


class AuditPage(Shape):
    items: list[AuditEntry]
    next_cursor: NextCursor


class Caller(Shape):
    """Who is asking."""

    name: str | None = Field(description="The name of the key; null: no keys are in use.")
    role: Role = Field(description="What the key may do; without keys everything.")
