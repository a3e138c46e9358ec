"""What a store keeps of agents' latest work: sums for every minute, and how the last attempts have ended."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple, Protocol

import msgspec

from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.stores.port.tasks import AgentLoad

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


class CallPlace(NamedTuple):
    """Where a list of calls goes on."""

    ended_at: Instant
    row: int


class EndedCall(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt of a step on an agent, and how it has ended."""

    row: int
    run_id: RunId
    step: str
    attempt: int
    # None: it was broken off before anybody noted it.
    called_at: Instant | None
    ended_at: Instant
    outcome: str
    error_code: str | None = None

    @property
    def place(self) -> CallPlace:
        return CallPlace(self.ended_at, self.row)


class Grade(msgspec.Struct, frozen=True, kw_only=True):
    """What the last check of an agent has found, in short."""

    check_id: str
    at: Instant
    grade: str
    passed: bool


class ActivityWrites(Protocol):
    async def note_activity(self, bridge: str, minutes: Sequence[AgentMinute]) -> None:
        """Adds to what this bridge has noted of the same agents and minutes."""
        ...

    async def forget_activity(self, before: Instant) -> None:
        """Minutes that had ended by then. The last calls go with their runs."""
        ...


class ActivityReads(Protocol):
    async def agent_minutes(self, since: int, agents: Collection[str]) -> list[AgentMinute]:
        """Of these agents, each from that minute on, oldest first; of all bridges together."""
        ...

    async def agent_calls(
        self, agent: str, *, limit: int, before: CallPlace | None = None
    ) -> list[EndedCall]:
        """The last that have ended, newest first; costs what it gives."""
        ...

    async def last_calls(self, agents: Collection[str]) -> dict[str, EndedCall]:
        """The last one of each agent that has any."""
        ...

    async def agent_loads(self, agents: Collection[str]) -> dict[str, AgentLoad]:
        """As `agent_load`, of many."""
        ...

    async def last_grades(self, agent_ids: Collection[str]) -> dict[str, Grade]:
        """Of the last check of each agent that has been checked, as it is registered or as it is to be."""
        ...


def step_of(task_id: str) -> str:
    """A task's id is its run's id, its step and a number, with slashes between them."""
    return task_id.partition("/")[2].rpartition("/")[0]
