"""
Outputs that steps share, and the claims of steps on outputs that do not exist yet.

An output ends with its time, or with the run that it came from. Of the claims on one output, one leads: its step does
the work. A claim ends with the step's interest, and then another one leads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import msgspec

from trunkline.clock import Instant
from trunkline.ids import RunId


class KeptOutput(msgspec.Struct, frozen=True, kw_only=True):
    digest: str
    output: bytes
    # Where it comes from.
    run_id: RunId
    step: str
    workflow: str
    # Empty: a workflow or a block.
    agent: str
    at: Instant
    expires_at: Instant


class OutputClaim(NamedTuple):
    run_id: RunId
    step: str
    # Of the step's question.
    number: int
    digest: str


class ClaimAnswers(msgspec.Struct, frozen=True, kw_only=True):
    """The answers to the steps that have claimed outputs. The others wait."""

    found: Sequence[tuple[OutputClaim, KeptOutput]] = ()
    # Their output exists, but does not fit into this answer.
    again: Sequence[OutputClaim] = ()
    # Their steps do the work. Those of earlier claims may be among them.
    leads: Sequence[OutputClaim] = ()
    # They do the work without a claim: a step that leads waits for their run, so they must not wait for another one.
    alone: Sequence[OutputClaim] = ()


class CacheSize(NamedTuple):
    outputs: int
    size_bytes: int


class OutputCacheReads(Protocol):
    async def size(self) -> CacheSize:
        """Without those whose time is over."""
        ...


class OutputCacheWrites(Protocol):
    async def lock(self, digests: Sequence[str]) -> None:
        """What this transaction reads and writes of these outputs, no other changes. Once, before all else."""
        ...

    async def keep(self, outputs: Sequence[KeptOutput]) -> list[OutputClaim]:
        """Each replaces the one that there was; the claims on them, which have ended."""
        ...

    async def claim(self, claims: Sequence[OutputClaim], *, max_bytes: int) -> ClaimAnswers:
        """
        Each replaces what its step had claimed; no step comes twice.

        Not more than `max_bytes` of outputs, or one. Claims of runs that are over, or gone, end here.
        """
        ...

    async def release(self, claims: Sequence[OutputClaim]) -> list[OutputClaim]:
        """Ends them, whatever their number; the claims that lead instead."""
        ...

    async def evict(self, *, max_outputs: int, max_bytes: int) -> int:
        """Deletes what is over, and beyond these limits what would be over next; how many."""
        ...

    async def clear(self, *, workflow: str | None = None, agent: str | None = None) -> int:
        """Deletes the outputs that steps of a workflow, or calls of an agent, have had; or all; how many."""
        ...
