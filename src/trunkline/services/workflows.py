"""
Workflows: saved as immutable versions, compiled once.

The store keeps the text; what runs is compiled from it and kept here for as long as it is in use.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from trunkline.errors import Conflict, Finding, Invalid, NotFound
from trunkline.id_generation import new_id
from trunkline.jsontypes import Json, JsonObject
from trunkline.messages import ERROR_CODES
from trunkline.services.heavy_work import HeavyWork
from trunkline.services.operations.audit_log import audit_entry
from trunkline.stores.base import LastRun, RunRecord, Store, WorkflowVersion
from trunkline.workflow import (
    CompiledWorkflow,
    LoadedWorkflow,
    WorkflowDefinition,
    WorkflowReference,
    called_agents,
    child_workflows,
    compile_workflow,
    definition_from_canonical,
    load_workflow,
)
from trunkline.workflow.document.yaml_writer import with_publish

# Versions with unfinished runs at one time.
_MAX_COMPILED = 256
# Of all of them together. A step takes about 7 kB.
MAX_COMPILED_STEPS = 50_000
# Child workflows whose outputs are known when a workflow is checked; each may have to be compiled.
_MAX_OUTPUTS = 20


class SaveResult(NamedTuple):
    version: WorkflowVersion
    # False: the content is that of the version that exists.
    created: bool
    warnings: Sequence[Finding]


class ValidationResult(NamedTuple):
    """What a text would come to if it were saved."""

    # None: it would be refused, for these errors.
    workflow: CompiledWorkflow | None
    errors: Sequence[Finding]
    warnings: Sequence[Finding]


class Workflows:
    def __init__(
        self, store: Store, work: HeavyWork | None = None, *, max_compiled_steps: int = MAX_COMPILED_STEPS
    ) -> None:
        self._store = store
        self._work = work or HeavyWork()
        self._max_compiled_steps = max_compiled_steps
        self._compiled: OrderedDict[tuple[str, int], CompiledWorkflow] = OrderedDict()
        self._compiled_steps = 0
        self._compiling = asyncio.Lock()

    async def set_publish(self, name_or_id: str, publish: Json) -> SaveResult:
        """
        The definition with another value of `publish`, as a new version. None removes it.

        Raises `Invalid`, or `Conflict` if another version was saved at the same time.
        """
        latest = await self.get(name_or_id)
        text = await self._work.run(with_publish, latest.source.decode(), publish)
        return await self.save(text.encode(), expected=latest.version)

    async def save(self, text: bytes, source: str = "workflow", *, expected: int | None = None) -> SaveResult:
        """
        The next version of the workflow that the text names, or the latest one when nothing has changed.

        `expected`: the version that the text was made of, if it must still be the latest one.

        Raises `Invalid` with every finding. An agent that is not registered (yet) is only warned of.
        """
        loaded = await self._load(text, source)
        async with self._store.transaction() as tx:
            latest = await tx.workflows.latest_version(loaded.definition.name)
            if expected is not None and (latest is None or latest.version != expected):
                raise Conflict(
                    f"Another version of workflow {loaded.definition.name} was saved at the same time.",
                    fix="Look at the latest version, and repeat the request if it still applies.",
                )
            if latest is not None and latest.canonical == loaded.canonical:
                return SaveResult(latest, False, loaded.warnings)
            version = WorkflowVersion(
                workflow_id=new_id() if latest is None else latest.workflow_id,
                name=loaded.definition.name,
                version=1 if latest is None else latest.version + 1,
                canonical=loaded.canonical,
                source=text,
                created_at=tx.now,
            )
            await tx.workflows.insert_version(version)
            await tx.audit.put([audit_entry("workflow", "save", version.name, version=version.version)])
        return SaveResult(version, True, loaded.warnings)

    async def check(self, text: bytes) -> ValidationResult:
        """Everything that saving the text would say, and nothing is saved."""
        try:
            loaded = await self._load(text, "workflow")
        except Invalid as refused:
            return ValidationResult(None, refused.findings, ())
        workflow = await self._work.run(compile_workflow, loaded.definition)
        return ValidationResult(workflow, (), loaded.warnings)

    async def get(self, name_or_id: str, version: int | None = None) -> WorkflowVersion:
        found = await self._store.workflows.get(name_or_id, version)
        if found is None:
            what = "" if version is None else f" with version {version}"
            raise NotFound(
                f"There is no workflow {name_or_id!r}{what}.",
                fix="List the workflows: trunkline workflows list.",
            )
        return found

    async def list(
        self, *, limit: int, after: str | None = None, search: str | None = None
    ) -> Sequence[WorkflowVersion]:
        """The latest version of each, in the order of their names; `after` is the last name seen."""
        return await self._store.workflows.page(limit=limit, after=after, search=search)

    async def last_runs(
        self, versions: Sequence[WorkflowVersion], each: int
    ) -> Mapping[str, Sequence[LastRun]]:
        """By name, newest first."""
        return await self._store.workflows.last_runs([version.name for version in versions], each=each)

    async def versions(
        self, name_or_id: str, *, limit: int, before: int | None = None
    ) -> Sequence[WorkflowVersion]:
        """Newest first; `before` is the last version seen."""
        latest = await self.get(name_or_id)
        return await self._store.workflows.versions(latest.workflow_id, limit=limit, before=before)

    async def compiled(self, workflow_id: str, version: int) -> CompiledWorkflow:
        """A version, ready to run."""
        key = (workflow_id, version)
        workflow = self._compiled.get(key)
        if workflow is None:
            # One at a time: of many runs that start together, the first compiles for all.
            async with self._compiling:
                workflow = self._compiled.get(key)
                if workflow is None:
                    workflow = await self._compile(workflow_id, version)
                    self._keep(key, workflow)
        self._compiled.move_to_end(key)
        return workflow

    async def compiled_for(self, run: RunRecord) -> CompiledWorkflow:
        """What a run runs: its version, or a block of it."""
        return (await self.compiled(run.workflow_id, run.workflow_version)).block(run.block)

    def _keep(self, key: tuple[str, int], workflow: CompiledWorkflow) -> None:
        """In place of those that were used least recently."""
        self._compiled[key] = workflow
        self._compiled_steps += workflow.step_count
        while len(self._compiled) > 1 and (
            len(self._compiled) > _MAX_COMPILED or self._compiled_steps > self._max_compiled_steps
        ):
            _, dropped = self._compiled.popitem(last=False)
            self._compiled_steps -= dropped.step_count

    async def _compile(self, workflow_id: str, version: int) -> CompiledWorkflow:
        saved = await self.get(workflow_id, version)
        # In a thread: a workflow of thousands of steps takes longer than everyone else should wait.
        return await asyncio.to_thread(_compile, saved.canonical)

    async def _load(self, text: bytes, source: str) -> LoadedWorkflow:
        loaded = await self._work.run(_load, text, source)
        schemas: Mapping[str, JsonObject] = {}
        if loaded.schemas:
            # Read once more, with the schemas in the places of their names.
            found = await self._store.schemas.some(loaded.schemas)
            schemas = {saved.name: _schema(saved.schema) for saved in found}
            loaded = await self._work.run(_load, text, source, schemas)
        agents = set(called_agents(loaded.definition))
        known = await self._store.agents.known(agents)
        below = await self._reachable(loaded.definition)
        if (
            known == agents
            and below.unknown.isdisjoint(child_workflows(loaded.definition))
            and not below.cycles
            and not below.found
        ):
            return loaded
        # Read once more for the place of each in the text, and with what child workflows put out.
        children = set(child_workflows(loaded.definition)) - below.unknown
        outputs = {} if below.cycles else await self._outputs(below.found)
        return await self._work.run(_load, text, source, schemas, known, children, below.cycles, outputs)

    async def _outputs(
        self, found: Mapping[WorkflowReference, WorkflowVersion]
    ) -> dict[WorkflowReference, CompiledWorkflow]:
        """The workflows that expressions may read the outputs of, those that are used first first."""
        outputs: dict[WorkflowReference, CompiledWorkflow] = {}
        for reference, saved in islice(found.items(), _MAX_OUTPUTS):
            # What an older version of the program accepted tells nothing.
            with suppress(Invalid):
                outputs[reference] = await self.compiled(saved.workflow_id, saved.version)
        return outputs

    async def _reachable(self, definition: WorkflowDefinition) -> _ReachableWorkflows:
        """
        Follows the workflows that it begins, and those that they begin, as they are now.

        Two that are saved at the same moment may still make a cycle; then the depth of runs has its limit.
        """
        below = _ReachableWorkflows(set(), {}, {})
        if not child_workflows(definition):
            return below
        latest = await self._store.workflows.get(definition.name)
        itself: set[WorkflowReference] = {
            (definition.name, None),
            (definition.name, 1 + (latest.version if latest else 0)),
        }
        for first in child_workflows(definition):
            seen: dict[WorkflowReference, WorkflowReference | None] = {first: None}
            waiting = [first]
            while waiting:
                child = waiting.pop()
                if child in itself:
                    below.cycles[first] = _cycle_text(definition.name, child, seen)
                    break
                saved = await self._store.workflows.get(*child)
                if saved is None:
                    below.unknown.add(child)
                    continue
                below.found[child] = saved
                for next_ in child_workflows(definition_from_canonical(saved.canonical)):
                    if next_ not in seen:
                        seen[next_] = child
                        waiting.append(next_)
        return below


class _ReachableWorkflows(NamedTuple):
    unknown: set[WorkflowReference]
    # By the child that the way back begins with.
    cycles: dict[WorkflowReference, str]
    found: dict[WorkflowReference, WorkflowVersion]


def _cycle_text(
    name: str, last: WorkflowReference, came_from: Mapping[WorkflowReference, WorkflowReference | None]
) -> str:
    steps = [last[0]]
    before = came_from[last]
    while before is not None:
        steps.append(before[0])
        before = came_from[before]
    return " -> ".join([name, *reversed(steps)])


def _load(
    text: bytes,
    source: str,
    schemas: Mapping[str, JsonObject] | None = None,
    known_agents: Collection[str] | None = None,
    known_workflows: Collection[WorkflowReference] | None = None,
    cycles: Mapping[WorkflowReference, str] = MappingProxyType({}),
    children: Mapping[WorkflowReference, CompiledWorkflow] = MappingProxyType({}),
) -> LoadedWorkflow:
    return load_workflow(
        text,
        source=source,
        known_agents=known_agents,
        known_error_codes=ERROR_CODES,
        known_workflows=known_workflows,
        cycles=cycles,
        known_schemas=schemas,
        children=children,
    )


def _schema(text: bytes) -> JsonObject:
    return msgspec.json.decode(text, type=dict[str, Json])


def _compile(canonical: bytes) -> CompiledWorkflow:
    return compile_workflow(definition_from_canonical(canonical))
