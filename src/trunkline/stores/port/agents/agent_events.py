"""
The history of agents: their events, their checks, and what is recorded while an agent migrates.

The last of these is how the calls of each endpoint have ended, and how both have answered the same task.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal, Protocol

import msgspec

from trunkline.agents.migration.routing import EndpointName
from trunkline.clock import Instant
from trunkline.ids import RunId

# `migration`: the data is the whole state of the agent's migration from then on.
AgentEventKind = Literal["migration", "card_changed", "grade_changed", "dialect_changed"]


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
    """Something that has happened to an agent: events are added and never changed."""

    # From 1, without gaps; none appears after a greater one has been seen.
    id: int
    at: Instant


class CheckRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One check of an agent, or of its migration target."""

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
    """What the target of an agent answered to a copy of a task."""

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


class Grade(msgspec.Struct, frozen=True, kw_only=True):
    """What the last check of an agent has found, in short."""

    check_id: str
    at: Instant
    grade: str
    passed: bool


class AgentEventReads(Protocol):
    async def last_id(self) -> int:
        """The id of the last event; 0 when there is none."""
        ...

    async def latest_migrations(self, agent_ids: Collection[str]) -> dict[str, AgentEvent]:
        """The last event of kind `migration` of each agent that has one."""
        ...

    async def migrations_since(self, after: int) -> list[AgentEvent]:
        """All events of kind `migration` after that id, oldest first."""
        ...

    async def page(
        self,
        *,
        limit: int,
        before: int | None = None,
        agent_id: str | None = None,
        agent: str | None = None,
    ) -> list[AgentEvent]:
        """Newest first; `before` is the last id seen, `agent` the name that it had at that time."""
        ...


class AgentEventWrites(Protocol):
    async def lock(self) -> None:
        """No other transaction adds an event until this one ends. Call it before `ComparisonWrites.lock_calls`."""
        ...

    async def last_id(self) -> int:
        """Like `AgentEventReads.last_id`, as this transaction sees it."""
        ...

    async def latest_migrations(self, agent_ids: Collection[str]) -> dict[str, AgentEvent]:
        """Like `AgentEventReads.latest_migrations`, as this transaction sees it."""
        ...

    async def put(self, events: Sequence[NewAgentEvent]) -> list[AgentEvent]:
        """Locks first unless `lock` was called."""
        ...


class CheckReads(Protocol):
    async def page(self, agent_id: str, *, limit: int, before: str | None = None) -> list[CheckRecord]:
        """Newest first; `before` is the last id seen."""
        ...

    async def last(self, agent_id: str, url: str, protocol: str) -> CheckRecord | None: ...

    async def last_grades(self, agent_ids: Collection[str]) -> dict[str, Grade]:
        """Of the last check of each agent that was checked, at whichever URL and in whichever protocol."""
        ...


class CheckWrites(Protocol):
    async def put(self, check: CheckRecord, keep: int) -> CheckRecord | None:
        """
        Keep the last `keep` checks of an agent.

        Returns the last one before with the same url, protocol and active, if there is one.
        """
        ...


class ComparisonReads(Protocol):
    async def page(
        self, agent_id: str, *, limit: int, before: str | None = None, verdict: str | None = None
    ) -> list[ComparisonRecord]:
        """Newest first; `before` is the last id seen."""
        ...

    async def counts(self, agent_id: str, since: int) -> dict[str, int]:
        """How many comparisons of each verdict are stored for the shadow that this agent event began."""
        ...

    async def calls(self, agent_id: str) -> dict[EndpointName, bytes]:
        """How the last calls of source (`old`) and target (`new`) have ended, as `put_calls` has written it."""
        ...


class ComparisonWrites(Protocol):
    async def put(self, comparisons: Sequence[ComparisonRecord], keep: int) -> None:
        """Keep the last `keep` comparisons of an agent."""
        ...

    async def lock_calls(self, agent_ids: Collection[str]) -> dict[tuple[str, EndpointName], bytes]:
        """How the last calls have ended, as `put_calls` has written it; locked until the transaction ends."""
        ...

    async def put_calls(self, calls: Mapping[tuple[str, EndpointName], bytes]) -> None: ...

    async def delete_calls(self, agent_id: str) -> None:
        """Deletes what is known of the calls of both endpoints."""
        ...
