"""Agents, what bridges know of them together, and how much they have to do."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

import msgspec

from trunkline.agents import Agent, BreakerPolicy
from trunkline.agents.call_limits.breaker import BreakerStatus, CallEnd
from trunkline.agents.call_limits.limit_state import AgentLimitState
from trunkline.clock import Instant


class RecordedCallEnd(msgspec.Struct, frozen=True):
    """How a call of an agent with a breaker has ended."""

    agent: str
    policy: BreakerPolicy
    end: CallEnd


class BreakerChange(msgspec.Struct, frozen=True):
    """A breaker that has opened or closed."""

    agent: str
    status: BreakerStatus
    reason: str | None = None


class AgentLoad(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent has to do, and what bridges know of it together."""

    at: Instant
    # Claimed by a bridge, or taken by the agent.
    in_flight: int
    queued: int
    state: AgentLimitState


class AgentReads(Protocol):
    async def get(self, name_or_id: str) -> Agent | None:
        """The agent with that name; if there is none, the one with that id."""
        ...

    async def known(self, names: Collection[str]) -> set[str]:
        """Those of the names that an agent has."""
        ...

    async def page(
        self,
        *,
        limit: int,
        after: str | None = None,
        protocol: str | None = None,
        published: bool = False,
    ) -> list[Agent]:
        """In the order of their names; `after` is the last name seen. `published`: only those that are."""
        ...

    async def load(self, name: str) -> AgentLoad:
        """Also for an agent that has never been called."""
        ...

    async def loads(self, agents: Collection[str]) -> dict[str, AgentLoad]:
        """Like `load`, for many agents."""
        ...

    async def pools(self, *, limit: int) -> list[str]:
        """The pools that agents are in, by name."""
        ...


class AgentWrites(Protocol):
    async def insert(self, agent: Agent) -> None:
        """Raises `AlreadyExists` when the name is taken."""
        ...

    async def update(self, agent: Agent, expected_version: int) -> bool:
        """
        Write every field of `agent`; False when the stored version differs.

        A new name, URL or options reset its limits: what bridges knew of it is forgotten.
        """
        ...

    async def delete(self, agent_id: str) -> bool:
        """Delete the agent with everything known of it, except its events."""
        ...

    async def reset_limits(self, name: str) -> None:
        """Forget what bridges know of the agent together: its breaker is closed, its bucket full."""
        ...

    async def record_calls(self, calls: Sequence[RecordedCallEnd]) -> list[BreakerChange]:
        """Count how calls have ended, in that order; returns the breakers that opened or closed."""
        ...
