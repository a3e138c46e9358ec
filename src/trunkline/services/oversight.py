"""
The system as those see it who run it: which processes live, how much waits, and what should not stay as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Literal

import msgspec

from trunkline.clock import Clock
from trunkline.errors import Unavailable
from trunkline.stores.base import Store
from trunkline.stores.oversight import Process, Queues, SeenProcess

# Enough to tell a queue that is long from one that grows, and counted in milliseconds.
MOST_COUNTED = 10_000
_MOST_PROCESSES = 200
_NEEDED = {
    "executor": "No executor is alive: runs are accepted and stand still. Start one: trunkline serve --role executor.",
    "bridge": "No bridge is alive: no agent is called. Start one: trunkline serve --role bridge.",
}


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    # `embedded`: one process is the whole system.
    mode: Literal["embedded", "distributed"]
    store: Literal["sqlite", "postgresql"]
    broker: Literal["memory", "kafka"]


class Sight(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to see at one moment."""

    this: Process
    setup: Setup
    # None, both: the store cannot be asked at the moment.
    processes: Sequence[SeenProcess] | None
    queues: Queues | None
    warnings: list[str]


class Oversight:
    def __init__(self, store: Store, clock: Clock, this: Process, setup: Setup) -> None:
        self._store = store
        self._clock = clock
        self._this = this
        self._setup = setup

    async def look(self) -> Sight:
        """Answers also while the store is away: that is when people look."""
        try:
            processes = await self._processes()
            queues = await self._store.queues(MOST_COUNTED)
        except Unavailable:
            # Readiness says why, with the same words.
            return Sight(this=self._this, setup=self._setup, processes=None, queues=None, warnings=[])
        return Sight(
            this=self._this,
            setup=self._setup,
            processes=processes,
            queues=queues,
            warnings=[*_missing_roles(processes), *_waiting(queues)],
        )

    async def _processes(self) -> Sequence[SeenProcess]:
        """This one too, which has not said so yet or, where it alone has the store, never does."""
        others: Sequence[SeenProcess] = ()
        if self._setup.store == "postgresql":
            others = await self._store.processes(limit=_MOST_PROCESSES)
            if any(process.id == self._this.id for process in others):
                return others
        seen = SeenProcess(**msgspec.structs.asdict(self._this), seen_at=self._clock.now(), alive=True)
        return [seen, *others]


def _missing_roles(processes: Collection[SeenProcess]) -> Iterator[str]:
    roles = {role for process in processes if process.alive for role in process.roles}
    for role, warning in _NEEDED.items():
        if role not in roles:
            yield warning


def _waiting(queues: Queues) -> Iterator[str]:
    if queues.dead_letters:
        yield (
            f"{_number(queues.dead_letters)} messages could not be read or applied and wait for a decision: replay or"
            " discard them."
        )
    if queues.tasks_without_secret:
        yield (
            f"{_number(queues.tasks_without_secret)} tasks wait for agents whose secrets are not here: give them again"
            " (trunkline agents apply)."
        )


def _number(count: int) -> str:
    return f"{count:,}" if count < MOST_COUNTED else f"{count:,} or more"
