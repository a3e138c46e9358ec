"""The latest work of agents: sums for every minute, and how the last calls have ended."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple, Protocol

import msgspec

from trunkline.clock import Instant
from trunkline.ids import RunId

_MICROSECONDS = 60_000_000


def minute_of(at: Instant) -> int:
    """Minutes since 1970."""
    return at // _MICROSECONDS


def begin_of(minute: int) -> Instant:
    return Instant(minute * _MICROSECONDS)


class AgentMinute(msgspec.Struct, frozen=True, kw_only=True):
    """The attempts on an agent that have ended within a minute."""

    agent: str
    minute: int
    calls: int
    failures: int
    # From the beginning of the call to its end, of all of them together and of the longest.
    total_ms: int
    longest_ms: int


class CallPosition(NamedTuple):
    """Where a list of calls goes on."""

    ended_at: Instant
    row: int


class EndedCall(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt of a step on an agent, and how it has ended."""

    row: int
    run_id: RunId
    step: str
    attempt: int
    # None: it was interrupted before this was recorded.
    called_at: Instant | None
    ended_at: Instant
    outcome: str
    error_code: str | None = None

    @property
    def place(self) -> CallPosition:
        return CallPosition(self.ended_at, self.row)


class ActivityReads(Protocol):
    async def minutes(self, since: int, agents: Collection[str]) -> list[AgentMinute]:
        """Of these agents, each from that minute on, oldest first; all bridges added up."""
        ...

    async def calls(self, agent: str, *, limit: int, before: CallPosition | None = None) -> list[EndedCall]:
        """The last calls that have ended, newest first; reads about `limit` rows."""
        ...

    async def last_calls(self, agents: Collection[str]) -> dict[str, EndedCall]:
        """The last call of each agent that has any."""
        ...


class ActivityWrites(Protocol):
    async def record(self, bridge: str, minutes: Sequence[AgentMinute]) -> None:
        """Add to what this bridge has recorded for the same agents and minutes."""
        ...

    async def forget(self, before: Instant) -> None:
        """Delete the minutes that had ended by then. The last calls are deleted with their runs."""
        ...
