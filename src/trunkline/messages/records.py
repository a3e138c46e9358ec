"""What goes to a broker and comes from it: messages, records, dispatches of tasks, and the names of the topics."""

from __future__ import annotations

import msgspec

from trunkline.ids import RunId

# Whichever partition, and the same for all such messages of a topic that are sent at once: each partition that is
# written to costs a request.
ANY_PARTITION = -1


class OutgoingMessage(msgspec.Struct, frozen=True, array_like=True):
    """
    One message for one topic. Messages with the same key keep their order; an empty one is none.

    With a partition they go there instead of where their key leads, if there is one with that number.
    """

    topic: str
    key: str
    value: bytes
    headers: tuple[tuple[str, bytes], ...] = ()
    # The key of a replayed record from another system, if it is not text; `key` is empty then.
    raw_key: bytes | None = None
    partition: int | None = None

    @property
    def record_key(self) -> bytes | None:
        """The key as the broker gets it."""
        return self.raw_key or self.key.encode() or None


class BrokerRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a broker delivered, before anybody has read it."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()


class TaskKey(msgspec.Struct, frozen=True):
    task_id: str
    attempt: int


class Dispatch(msgspec.Struct, frozen=True):
    """A task that was sent, and is sent again until its result has come. `payload` is the encoded task."""

    key: TaskKey
    run_id: RunId
    payload: bytes


class TopicNames(msgspec.Struct, frozen=True, kw_only=True):
    tasks: str = "trunkline.tasks"
    results: str = "trunkline.results"
    events: str = "trunkline.events"
    commands: str = "trunkline.commands"

    def tasks_of(self, pool: str | None) -> str:
        return self.tasks if pool is None else f"{self.tasks}.{pool}"
