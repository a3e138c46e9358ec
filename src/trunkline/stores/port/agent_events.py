"""
What a store keeps of agents beside their rows: what has happened to them, how they were checked, how the calls of each
side have ended while an agent moves, and how its two sides have answered the same task.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal, Protocol

import msgspec

from trunkline.clock import Instant
from trunkline.ids import RunId

# `migration`: the data is the whole state of the agent's migration from then on.
AgentEventKind = Literal["migration", "card_changed", "grade_changed"]
Side = Literal["old", "new"]


class NewAgentEvent(msgspec.Struct, frozen=True, kw_only=True):
    agent_id: str
    # Its name at that time.
    agent: str
    kind: AgentEventKind
    who: str
    why: str
    # JSON.
    data: bytes

    def numbered(self, id_: int, at: Instant) -> AgentEvent:
        return AgentEvent(**msgspec.structs.asdict(self), id=id_, at=at)


class AgentEvent(NewAgentEvent, frozen=True, kw_only=True):
    """Something that has happened to an agent, for good: events are added and never changed."""

    # From 1, without gaps; none appears after a greater one has been seen.
    id: int
    at: Instant


class CheckRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One check of an agent, or of the side that it is to move to."""

    # Of version 7.
    id: str
    agent_id: str
    at: Instant
    url: str
    protocol: str
    # Whether messages were sent.
    active: bool
    grade: str
    passed: bool
    # JSON.
    report: bytes


class ComparisonRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What the new side of an agent has answered to a task of the old one."""

    # Of version 7.
    id: str
    agent_id: str
    # The agent event that began the shadow.
    since: int
    run_id: RunId
    step: str
    at: Instant
    verdict: str
    # JSON.
    record: bytes


class AgentRecordWrites(Protocol):
    async def lock_agent_events(self) -> None:
        """Nobody else adds an agent event until this transaction ends. To be asked for before `side_calls`."""
        ...

    async def last_agent_event(self) -> int:
        """The id of the last event, as this transaction sees it; 0: there is none."""
        ...

    async def latest_migrations(self, agent_ids: Collection[str]) -> dict[str, AgentEvent]:
        """The last event of kind `migration` of each that has one, as this transaction sees it."""
        ...

    async def put_agent_events(self, events: Sequence[NewAgentEvent]) -> list[AgentEvent]:
        """Locks first where that has not been done."""
        ...

    async def put_check(self, check: CheckRecord, keep: int) -> CheckRecord | None:
        """
        Keeps the last `keep` checks of an agent; the last one before that asked the same (url, protocol, active), if
        there is one.
        """
        ...

    async def put_comparisons(self, comparisons: Sequence[ComparisonRecord], keep: int) -> None:
        """Keeps the last `keep` comparisons of an agent."""
        ...

    async def side_calls(self, agent_ids: Collection[str]) -> dict[tuple[str, Side], bytes]:
        """How the last calls have ended, as `put_side_calls` has written it; held until the transaction ends."""
        ...

    async def put_side_calls(self, calls: Mapping[tuple[str, Side], bytes]) -> None: ...

    async def forget_sides(self, agent_id: str) -> None:
        """What is known of the calls of both sides."""
        ...


class AgentRecordReads(Protocol):
    async def last_agent_event(self) -> int:
        """The id of the last event; 0: there is none."""
        ...

    async def latest_migrations(self, agent_ids: Collection[str]) -> dict[str, AgentEvent]:
        """The last event of kind `migration` of each that has one."""
        ...

    async def migrations_since(self, after: int) -> list[AgentEvent]:
        """All events of kind `migration` after that id, oldest first."""
        ...

    async def agent_events(
        self,
        *,
        limit: int,
        before: int | None = None,
        agent_id: str | None = None,
        agent: str | None = None,
    ) -> list[AgentEvent]:
        """Newest first; `before` is the last id seen, `agent` the name that it had at that time."""
        ...

    async def checks(self, agent_id: str, *, limit: int, before: str | None = None) -> list[CheckRecord]:
        """Newest first; `before` is the last id seen."""
        ...

    async def last_check(self, agent_id: str, url: str, protocol: str) -> CheckRecord | None: ...

    async def comparisons(
        self, agent_id: str, *, limit: int, before: str | None = None, verdict: str | None = None
    ) -> list[ComparisonRecord]:
        """Newest first; `before` is the last id seen."""
        ...

    async def comparison_counts(self, agent_id: str, since: int) -> dict[str, int]:
        """How many of each verdict are kept of the shadow that this agent event began."""
        ...

    async def calls_of_sides(self, agent_id: str) -> dict[Side, bytes]: ...

    async def unfinished_runs_before(self, routes: int) -> int:
        """How many unfinished runs were accepted before this agent event was known."""
        ...
