"""A task on its way to a bridge, as the store remembers it until its result has come."""

from __future__ import annotations

import msgspec

from trunkline.ids import RunId


class TaskKey(msgspec.Struct, frozen=True):
    task_id: str
    attempt: int


class Dispatch(msgspec.Struct, frozen=True):
    """A task that was sent, and is sent again until its result has come. `payload` is the encoded task."""

    key: TaskKey
    run_id: RunId
    payload: bytes
