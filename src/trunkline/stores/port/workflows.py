"""Workflows and their versions, and the JSON Schemas that their steps refer to by name."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple, Protocol

import msgspec

from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.machine.state import RunStatus


class WorkflowVersion(msgspec.Struct, frozen=True, kw_only=True):
    """One immutable version of a workflow."""

    workflow_id: str
    name: str
    version: int
    # The definition as `workflow.load_workflow` canonicalised it: equal content, equal bytes.
    canonical: bytes
    # What the user wrote, as it was written.
    source: bytes
    created_at: Instant


class SavedVersion(NamedTuple):
    """A version by its number, without its definition."""

    workflow_id: str
    name: str
    version: int


class LastRun(NamedTuple):
    """What a list of workflows shows of a run."""

    id: RunId
    status: RunStatus
    created_at: Instant


class WorkflowReads(Protocol):
    async def get(self, name_or_id: str, version: int | None = None) -> WorkflowVersion | None:
        """
        The workflow with that name; if there is none, the one with that id.

        The latest version unless `version` is given.
        """
        ...

    async def page(
        self, *, limit: int, after: str | None = None, search: str | None = None
    ) -> list[WorkflowVersion]:
        """
        Latest versions, in the order of their names. `search` is a part of the name, in any case.

        Without those whose name has a slash: Trunkline has made them itself, for published agents.
        """
        ...

    async def last_runs(self, names: Sequence[str], *, each: int) -> dict[str, list[LastRun]]:
        """The newest runs of these workflows, at most `each` of one; workflows without runs are missing."""
        ...

    async def versions(
        self, workflow_id: str, *, limit: int, before: int | None = None
    ) -> list[WorkflowVersion]:
        """Newest first; `before` is the last version seen."""
        ...

    async def all_versions(self) -> list[SavedVersion]:
        """All versions of all workflows, without their definitions."""
        ...


class WorkflowWrites(Protocol):
    async def insert_version(self, version: WorkflowVersion) -> None:
        """
        The first version also creates the workflow. The caller has read the latest version in this transaction.

        Raises `AlreadyExists` when there is such a version.
        """
        ...

    async def latest_version(self, name: str) -> WorkflowVersion | None: ...


class SavedSchema(msgspec.Struct, frozen=True, kw_only=True):
    """A JSON Schema by its name; `version` counts its changes."""

    name: str
    # As JSON.
    schema: bytes
    version: int
    created_at: Instant
    updated_at: Instant


class SchemaReads(Protocol):
    async def get(self, name: str) -> SavedSchema | None: ...

    async def some(self, names: Collection[str]) -> list[SavedSchema]:
        """Those that exist."""
        ...

    async def page(self, *, limit: int, after: str | None = None) -> list[SavedSchema]:
        """In the order of their names; `after` is the last name seen."""
        ...


class SchemaWrites(Protocol):
    async def get(self, name: str) -> SavedSchema | None: ...

    async def put(self, name: str, schema: bytes) -> SavedSchema:
        """Create it, or replace it."""
        ...

    async def delete(self, name: str) -> bool:
        """False when there is no such schema."""
        ...
