"""
The inbox: the steps that wait for a person, oldest first.

An item is an agent's question (`input`), a login that an agent needs (`auth`), a call whose outcome only a person can
find out (`outcome`), or a human task (`person`). It is answered where the step is: an unknown outcome by a resolution,
everything else by a reply.
"""

from __future__ import annotations

import msgspec

from trunkline.clock import Instant
from trunkline.errors import NotFound
from trunkline.ids import RunId, question_id
from trunkline.jsontypes import JsonObject
from trunkline.machine.state import StepState, WaitingFor
from trunkline.services.workflows import Workflows
from trunkline.stores.base import RunRecord, Store, WaitingStep, WaitKind, WaitPosition
from trunkline.workflow import CompiledStep, parse_item_name


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
    since: Instant
    waiting_for: WaitingFor
    # Of a human task: the JSON Schema of its answers.
    form: JsonObject | None = None

    @property
    def place(self) -> WaitPosition:
        return WaitPosition(self.since, self.run_id, self.step)


class Inbox:
    def __init__(self, store: Store, workflows: Workflows) -> None:
        self._store = store
        self._workflows = workflows

    async def list(
        self,
        *,
        limit: int,
        after: WaitPosition | None = None,
        kind: WaitKind | None = None,
        workflow: str | None = None,
    ) -> list[InboxEntry]:
        """Oldest first."""
        found = await self._store.runs.waiting_steps(limit=limit, after=after, kind=kind, workflow=workflow)
        return [await self._listed(step) for step in found]

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
            since=waiting.since or step.started_at or record.created_at,
            waiting_for=waiting,
            form=form_of(plan, waiting),
        )

    async def _plan(self, workflow_id: str, version: int, block: str | None, step: str) -> CompiledStep:
        return (await self._workflows.compiled(workflow_id, version)).block(block).plan(step)


def form_of(plan: CompiledStep, waiting: WaitingFor) -> JsonObject | None:
    """The JSON Schema of the answers that a step waits for."""
    return plan.definition.ask.form if waiting.kind == "person" and plan.definition.ask is not None else None
