"""
Push notification configs: where the updates of a caller's task are sent. They exist as long as their task's run does.

`put` and `delete` wait for a transition of the run that is being written, and a later one waits for them. So a
transition either sees a config, or has an earlier place than the config in the history of the task.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple, Protocol

import msgspec

from trunkline.clock import Instant
from trunkline.ids import RunId


class PushConfigKey(NamedTuple):
    run_id: RunId
    # Chosen by the caller, or by us; unique within the task.
    id: str


class PushConfig(msgspec.Struct, frozen=True, kw_only=True):
    key: PushConfigKey
    # The address and the credentials, encrypted.
    sealed: bytes
    created_at: Instant
    # Attempts in a row that have failed.
    failures: int = 0
    # Why the last attempt failed; None: it has succeeded.
    error: str | None = None
    # None: notifications are sent.
    disabled_at: Instant | None = None


class PushConfigReads(Protocol):
    async def get(self, key: PushConfigKey) -> PushConfig | None: ...

    async def of_task(self, run_id: RunId) -> list[PushConfig]:
        """Oldest first."""
        ...

    async def page(self, *, limit: int, after: PushConfigKey | None = None) -> list[PushConfig]:
        """In the order of their keys."""
        ...


class PushConfigWrites(Protocol):
    async def put(self, config: PushConfig, *, most: int) -> bool:
        """
        Adds a config, or replaces the one with its key and enables it.

        False, and nothing is changed: the task does not exist, or has `most` others already.
        """
        ...

    async def delete(self, key: PushConfigKey) -> None:
        """Does nothing if there is none."""
        ...

    async def keys_of(self, run_ids: Collection[RunId]) -> list[PushConfigKey]:
        """Of all configs of these runs."""
        ...

    async def note(self, key: PushConfigKey, failures: int, error: str | None, *, disable: bool) -> None:
        """What came of the last attempts."""
        ...

    async def enable(self, key: PushConfigKey) -> bool:
        """As if nothing had failed. False: there is none."""
        ...

    async def reseal(self, key: PushConfigKey, sealed: bytes, *, expected: bytes) -> bool:
        """Replaces the encrypted form by another one of the same content. False: it has changed, or is gone."""
        ...
