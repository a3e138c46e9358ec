"""
Whom a task talks to: the agent as the registry has it or, for runs that call its new side, that one.

Everything that concerns a task goes to the same side, on whichever bridge and after every restart: the run's stamp
says which. What is found out about a new side is kept apart from the agent's row, which is the old one.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

import msgspec

from trunkline.agents import Agent, Dialect
from trunkline.agents.migration import Target
from trunkline.agents.migration.sides import Moment, Side, target_of
from trunkline.bridge.dialects import DialectBook, Dialects
from trunkline.bridge.partners import Partners
from trunkline.jsontypes import encode
from trunkline.messages import AgentTask
from trunkline.services.routes import Routes


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """To one side of an agent."""

    # On the new side with that one's address and protocol.
    agent: Agent
    partners: Partners
    side: Side = "old"
    # How the agent's move stood for the run, where that gave the agent two sides.
    moment: Moment | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """For the record of what was sent this way."""
        if self.moment is None:
            return ()
        return (f"To the {self.side} side of the agent: for this run its migration is at {self._stage}.",)

    @property
    def _stage(self) -> str:
        return "" if self.moment is None else self.moment.state.stage.replace("_", " ")


class Sides:
    """Used with `async with` it ends what it has opened for new sides when it is left."""

    def __init__(
        self,
        partners: Partners,
        routes: Routes,
        open_dialects: Callable[[DialectBook], Dialects],
        open_partners: Callable[[Dialects], Partners],
    ) -> None:
        self._partners = partners
        self._routes = routes
        self._open_dialects = open_dialects
        self._open_partners = open_partners
        self._new: dict[tuple[str, bytes], Partners] = {}
        self._closing = AsyncExitStack()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._closing.aclose()

    def only(self, agent: Agent) -> Way:
        """To an agent that did not move when the run was accepted."""
        return Way(agent=agent, partners=self._partners)

    async def of(self, agent: Agent, task: AgentTask) -> Way:
        """Raises `Unavailable`."""
        moment = await self._routes.state_at(agent.id, task.routes)
        if moment is None or not (moment.is_open or _has_old_row(agent, moment)):
            return self.only(agent)
        target = target_of(moment.state, task.run_id, agent.id)
        if target is None:
            return Way(agent=agent, partners=self._partners, moment=moment)
        return self.new(agent, target, moment)

    def new(self, agent: Agent, target: Target, moment: Moment) -> Way:
        """To the new side, whether the run calls it or not."""
        moved = _moved(agent, target)
        key = (agent.id, encode(target))
        partners = self._new.get(key)
        if partners is None:
            dialects = self._open_dialects(_Page(moved))
            self._closing.push_async_exit(dialects)
            partners = self._new[key] = self._open_partners(dialects)
        return Way(agent=moved, partners=partners, side="new", moment=moment)


class _Page:
    """What was found out about one new side, for as long as this process lives."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    async def get(self, name_or_id: str) -> Agent:
        del name_or_id
        return self._agent

    async def record_dialect(self, agent: Agent, dialect: Dialect | None) -> bool:
        self._agent = msgspec.structs.replace(agent, dialect=dialect)
        return True


def _has_old_row(agent: Agent, moment: Moment) -> bool:
    """Whether this is the agent as it was before its move was finished: a row is read every two seconds only."""
    return agent.version < moment.state.row_version


def _moved(agent: Agent, target: Target) -> Agent:
    return msgspec.structs.replace(
        agent,
        url=target.url,
        protocol=target.protocol,
        protocol_config=target.protocol_config,
        dialect=None,
        # Where the old side is to be called instead of where its card says.
        options=msgspec.structs.replace(agent.options, endpoint_override=None),
    )
