"""
The inbox: the steps that wait for a person, oldest first.

An item is an agent's question (`input`), a login that an agent needs (`auth`), a call whose outcome only a person can
find out (`outcome`), or a human task (`person`). It is answered where the step is: an unknown outcome by a resolution,
everything else by a reply.
"""

from __future__ import annotations

import asyncio
import re

import msgspec

from trunkline.clock import Clock, Instant
from trunkline.errors import NotFound
from trunkline.ids import RunId, question_id
from trunkline.jsontypes import JsonObject
from trunkline.machine.state import StepState, WaitingFor
from trunkline.services.people.rights import PeopleGroups
from trunkline.services.workflows import Workflows
from trunkline.stores.base import RunRecord, Store, WaitingStep, WaitKind, WaitPosition
from trunkline.stores.port.human_tasks import HumanTaskKey, ListedTaskFilter
from trunkline.workflow import CompiledStep, parse_item_name

_COUNT = re.compile("[0-9]{1,9}")
_READ_AT_ONCE = 200


class InboxEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that waits for a person."""

    id: str
    run_id: RunId
    workflow_name: str
    workflow_version: int
    step: str
    agent: str
    protocol: str | None
    attempt: int
    replies: int
    since: Instant
    waiting_for: WaitingFor
    # Of a human task: the JSON Schema of its answers.
    form: JsonObject | None = None

    @property
    def place(self) -> WaitPosition:
        return WaitPosition(self.since, self.run_id, self.step)

    @property
    def place_by_due(self) -> WaitPosition:
        """Among those that are overdue."""
        task = self.waiting_for.human_task
        return WaitPosition((task.due if task is not None else None) or self.since, self.run_id, self.step)


def parse_item_id(item: str) -> HumanTaskKey | None:
    """None: it is no id of an item."""
    run_id, _, rest = item.partition(".")
    place, _, replies = rest.rpartition(".")
    step, _, attempts = place.rpartition(".")
    if not step or not all(_COUNT.fullmatch(count) for count in (attempts, replies)):
        return None
    return HumanTaskKey(RunId(run_id), step, int(attempts), int(replies))


class InboxFilter(msgspec.Struct, frozen=True, kw_only=True):
    kind: WaitKind | None = None
    # A name or an id.
    workflow: str | None = None
    # A person, with the groups that the person is in; or a group.
    assignee: str | None = None
    # Without assignees, and claimed by nobody.
    unassigned: bool = False
    overdue: bool = False


ANY_ITEM = InboxFilter()


class Inbox:
    def __init__(self, store: Store, workflows: Workflows, clock: Clock, groups: PeopleGroups) -> None:
        self._store = store
        self._workflows = workflows
        self._clock = clock
        self._groups = groups

    async def list(
        self,
        *,
        limit: int,
        after: WaitPosition | None = None,
        where: InboxFilter = ANY_ITEM,
    ) -> list[InboxEntry]:
        """Oldest first; those that are overdue, in the order in which they became it."""
        if where.unassigned:
            found = await self._unassigned(where, limit, after)
        elif where.assignee is None and not where.overdue:
            found = await self._waiting(where, limit, after)
        else:
            listed = ListedTaskFilter(
                people=None if where.assignee is None else self._groups.names_of(where.assignee),
                overdue_at=self._clock.now() if where.overdue else None,
                kind=where.kind,
                workflow=where.workflow,
            )
            found = await self._store.human_tasks.page(listed, limit=limit, after=after)
        return [await self._listed(step) for step in found]

    async def _waiting(self, where: InboxFilter, limit: int, after: WaitPosition | None) -> list[WaitingStep]:
        return await self._store.runs.waiting_steps(
            limit=limit, after=after, kind=where.kind, workflow=where.workflow
        )

    async def _unassigned(
        self, where: InboxFilter, limit: int, after: WaitPosition | None
    ) -> list[WaitingStep]:
        """Reads past those that have assignees, a few at a time, so that other requests get their turn."""
        found: list[WaitingStep] = []
        now = self._clock.now()
        while len(found) < limit:
            read = await self._waiting(where, _READ_AT_ONCE, after)
            found += [step for step in read if _is_unassigned(step, now if where.overdue else None)]
            if len(read) < _READ_AT_ONCE:
                break
            after = read[-1].place
            await asyncio.sleep(0)
        return found[:limit]

    async def _listed(self, step: WaitingStep) -> InboxEntry:
        plan = await self._plan(step.workflow_id, step.workflow_version, step.block, step.place.step)
        return InboxEntry(
            id=question_id(step.place.run_id, step.place.step, step.attempts, step.replies),
            run_id=step.place.run_id,
            workflow_name=step.workflow_name,
            workflow_version=step.workflow_version,
            step=step.place.step,
            agent=plan.agent,
            protocol=step.protocol,
            attempt=step.attempts,
            replies=step.replies,
            since=step.place.since,
            waiting_for=step.waiting_for,
            form=form_of(plan, step.waiting_for),
        )

    async def get(self, item: str) -> InboxEntry:
        """
        By its id; or by the run's id, a dot and the step's name: what that waits for at present, or what is asked first
        inside it.

        Raises `NotFound` also for what was answered meanwhile, or waits no more.
        """
        run_id, _, rest = item.partition(".")
        found = await self._store.runs.get(RunId(run_id))
        if found is not None:
            record, steps = found
            for step in [*steps, *await self._items(record.id, rest)]:
                if rest == step.name or item == question_id(run_id, step.name, step.attempts, step.replies):
                    return await self._entry(record, step)
        raise NotFound(
            f"There is no item {item} in the inbox. It was answered or is no longer waiting.",
            fix="List the waiting steps: trunkline inbox list.",
        )

    async def _items(self, run_id: RunId, rest: str) -> list[StepState]:
        """The one item of a step that is meant, if one is."""
        place = parse_item_name(rest.partition("]")[0] + "]")
        if place is None:
            return []
        return await self._store.runs.items(run_id, place[0], limit=1, after=place[1] - 1)

    async def _entry(self, record: RunRecord, step: StepState) -> InboxEntry:
        waiting = step.waiting_for
        if waiting is not None and waiting.inside:
            return await self.get(waiting.inside[0].item)
        if waiting is None or not waiting.is_for_a_person:
            raise NotFound(
                f"The step {step.name} of run {record.id} is {step.status} and is not waiting for a person.",
                fix=f"See its state: trunkline runs show {record.id}.",
            )
        plan = await self._plan(record.workflow_id, record.workflow_version, record.block, step.name)
        return InboxEntry(
            id=question_id(record.id, step.name, step.attempts, step.replies),
            run_id=record.id,
            workflow_name=record.workflow_name,
            workflow_version=record.workflow_version,
            step=step.name,
            agent=step.agent or plan.agent,
            protocol=step.protocol,
            attempt=step.attempts,
            replies=step.replies,
            since=waiting.since or step.started_at or record.created_at,
            waiting_for=waiting,
            form=form_of(plan, waiting),
        )

    async def _plan(self, workflow_id: str, version: int, block: str | None, step: str) -> CompiledStep:
        return (await self._workflows.compiled(workflow_id, version)).block(block).plan(step)


def _is_unassigned(step: WaitingStep, overdue_at: Instant | None) -> bool:
    """With a time: and overdue then."""
    task = step.waiting_for.human_task
    if task is None:
        return overdue_at is None
    is_overdue = overdue_at is None or (task.due is not None and task.due < overdue_at)
    return not task.listed_for and is_overdue


def form_of(plan: CompiledStep, waiting: WaitingFor) -> JsonObject | None:
    """The JSON Schema of the answers that a step waits for."""
    return plan.definition.ask.form if waiting.kind == "person" and plan.definition.ask is not None else None
