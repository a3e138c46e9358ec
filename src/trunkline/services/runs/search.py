"""
Searching runs: a search becomes ranges of ids and workflow versions, by which a store finds runs.

Which agents a run calls stands in its workflow's version; a version never changes, so it is read once.
"""

from __future__ import annotations

import asyncio
import heapq
import re
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Sequence
from itertools import groupby, islice

import msgspec

from trunkline.clock import Instant
from trunkline.ids import RunId, first_run_id
from trunkline.machine.state import RunStatus
from trunkline.stores.base import RunRecord, Store, WorkflowVersion
from trunkline.stores.port.run_filters import RunFilter, VersionKey
from trunkline.stores.port.workflows import SavedVersion
from trunkline.workflow import called_agents, definition_from_canonical

# A version takes about a kilobyte here.
_MAX_CACHED = 20_000
_BATCH = 20
_HEX = re.compile("[0-9a-f]{1,32}")
_ID_GROUPS = (8, 4, 4, 4, 12)


class RunSearch(msgspec.Struct, frozen=True, kw_only=True):
    """What a run must be to be listed; all of it together."""

    statuses: tuple[RunStatus, ...] = ()
    # A name or an id.
    workflow: str | None = None
    # Its workflow's version has a step that calls this agent.
    agent: str | None = None
    # The beginning of its id, a part of its workflow's name, or its correlation id.
    text: str | None = None
    # Keys and values.
    labels: tuple[tuple[str, str], ...] = ()
    # When it was created, to the millisecond; a child with the run above all others that has begun it.
    since: Instant | None = None
    until: Instant | None = None
    parent: RunId | None = None
    with_children: bool = True


class ListedRun(msgspec.Struct, frozen=True):
    record: RunRecord
    agents: Sequence[str]


class RunFinder:
    def __init__(self, store: Store) -> None:
        self._store = store
        # By workflow id and version, in the order of the steps.
        self._agents: OrderedDict[tuple[str, int], tuple[str, ...]] = OrderedDict()

    async def find(
        self, search: RunSearch, *, limit: int, before: RunId | None = None, payloads: bool = True
    ) -> list[ListedRun]:
        """Newest first; `before` is the last id seen."""
        pages = [
            await self._store.runs.page(limit=limit, before=before, where=where, payloads=payloads)
            for where in await self._filters(search)
        ]
        merged = heapq.merge(*pages, key=lambda record: record.id, reverse=True)
        # A text may have found the same run in several searches.
        found = (next(same) for _, same in groupby(merged, key=lambda record: record.id))
        return [
            ListedRun(record, await self._agents_of(record.workflow_id, record.workflow_version))
            for record in islice(found, limit)
        ]

    async def _filters(self, search: RunSearch) -> list[RunFilter]:
        """Each finds some of what is asked for, all of them everything."""
        given = RunFilter(
            statuses=search.statuses,
            labels=search.labels,
            parent=search.parent,
            with_children=search.with_children,
            lowest=None if search.since is None else first_run_id(search.since),
            below=None if search.until is None else first_run_id(search.until),
        )
        if search.workflow is None and search.agent is None and search.text is None:
            return [given]
        saved = await self._store.workflows.all_versions()
        chosen = None
        if search.workflow is not None:
            chosen = _of_workflow(saved, search.workflow)
        if search.agent is not None:
            chosen = await self._calling(search.agent, saved if chosen is None else chosen)
        if search.text is None:
            return [_of(given, chosen, saved)]
        named = _named(search.text, saved if chosen is None else chosen)
        searches = [_of(given, named, saved)] if named else []
        searches.append(_of(msgspec.structs.replace(given, correlation_id=search.text), chosen, saved))
        span = _ids_beginning_with(search.text)
        if span is not None:
            searches.append(_of(_within(given, *span), chosen, saved))
        return searches

    async def _calling(self, agent: str, versions: Sequence[SavedVersion]) -> list[SavedVersion]:
        """Those of the versions that have a step which calls the agent."""
        unknown: defaultdict[str, list[int]] = defaultdict(list)
        for version in versions:
            if (version.workflow_id, version.version) not in self._agents:
                unknown[version.workflow_id].append(version.version)
        for workflow_id, numbers in unknown.items():
            before = max(numbers) + 1
            while before > min(numbers):
                batch = await self._store.workflows.versions(workflow_id, limit=_BATCH, before=before)
                await self._learn(batch)
                before = min((saved.version for saved in batch), default=0)
        return [
            version
            for version in versions
            if agent in await self._agents_of(version.workflow_id, version.version)
        ]

    async def _agents_of(self, workflow_id: str, version: int) -> tuple[str, ...]:
        key = workflow_id, version
        if key not in self._agents:
            saved = await self._store.workflows.get(workflow_id, version)
            await self._learn([] if saved is None else [saved])
        return self._agents.get(key, ())

    async def _learn(self, versions: Sequence[WorkflowVersion]) -> None:
        # In a thread: a workflow of thousands of steps takes longer than everyone else should wait.
        found = await asyncio.to_thread(lambda: [_agents_in(saved.canonical) for saved in versions])
        for saved, agents in zip(versions, found, strict=True):
            self._agents[saved.workflow_id, saved.version] = agents
        while len(self._agents) > _MAX_CACHED:
            self._agents.popitem(last=False)


def _agents_in(canonical: bytes) -> tuple[str, ...]:
    return called_agents(definition_from_canonical(canonical))


def _of_workflow(saved: Iterable[SavedVersion], name_or_id: str) -> list[SavedVersion]:
    by_name = [version for version in saved if version.name == name_or_id]
    return by_name or [version for version in saved if version.workflow_id == name_or_id]


def _named(text: str, versions: Iterable[SavedVersion]) -> list[SavedVersion]:
    return [version for version in versions if text.casefold() in version.name.casefold()]


def _of(where: RunFilter, chosen: Sequence[SavedVersion] | None, saved: Sequence[SavedVersion]) -> RunFilter:
    """The same, of the chosen versions only."""
    if chosen is None:
        return where
    numbers: defaultdict[str, int] = defaultdict(int)
    for version in saved:
        numbers[version.name] += 1
    for version in chosen:
        numbers[version.name] -= 1
    names = tuple(dict.fromkeys(version.name for version in chosen))
    if not where.statuses and where.with_children and not any(numbers[name] for name in names):
        return msgspec.structs.replace(where, workflows=names)
    # The latest ones have the newest runs: the sooner they are looked at, the fewer of the others are.
    keys = tuple(VersionKey(version.name, version.version) for version in reversed(chosen))
    return msgspec.structs.replace(where, versions=keys)


def _ids_beginning_with(text: str) -> tuple[RunId, RunId | None] | None:
    """The lowest of them and the lowest after them; None: no id begins like this."""
    digits = text.lower().replace("-", "")
    if not _HEX.fullmatch(digits) or not _id(digits).startswith(text.lower()):
        return None
    after = f"{int(digits, 16) + 1:0{len(digits)}x}"
    return _id(digits), None if len(after) > len(digits) else _id(after)


def _id(digits: str) -> RunId:
    rest = iter(digits.ljust(sum(_ID_GROUPS), "0"))
    return RunId("-".join("".join(islice(rest, length)) for length in _ID_GROUPS))


def _within(where: RunFilter, lowest: RunId, below: RunId | None) -> RunFilter:
    return msgspec.structs.replace(
        where,
        lowest=lowest if where.lowest is None else max(where.lowest, lowest),
        below=where.end(below),
    )
