"""
A cache of run states between two transitions of the same run.

A kept state is valid only at the version it was read at; the claim names the run's present version, and the commit
compares it once more.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Sequence

from trunkline.errors import Invalid, NotFound
from trunkline.ids import RunId
from trunkline.machine.evolve import restore
from trunkline.machine.state import RunState, StepState, WorkflowKey
from trunkline.messages import StepError
from trunkline.services.workflows import Workflows
from trunkline.stores.base import RunRecord, Transaction, WokenRun
from trunkline.workflow import CompiledWorkflow, WorkflowDefinition

# A few thousand runs under way at a time; a run beyond is read from the store again.
_MAX_CACHED = 2_000
# Of their payloads. A run with more than all of it is read again each time.
MAX_CACHED_BYTES = 64 * 1024 * 1024


class RunStateCache:
    def __init__(
        self, workflows: Workflows, most_kept: int = _MAX_CACHED, max_bytes: int = MAX_CACHED_BYTES
    ) -> None:
        self._workflows = workflows
        self._most_kept = most_kept
        self._max_bytes = max_bytes
        self._kept: OrderedDict[RunId, RunState] = OrderedDict()
        self._kept_bytes = 0

    async def load(self, tx: Transaction, woken: Sequence[WokenRun]) -> dict[RunId, RunState]:
        """The present state of each; a run that has been deleted meanwhile is missing."""
        states: dict[RunId, RunState] = {}
        missing: list[RunId] = []
        for run in woken:
            # Taken out: the driver changes it, and puts it back once the change is durable.
            state = self._take(run.run_id)
            if state is not None and state.version == run.version:
                states[run.run_id] = state
            else:
                missing.append(run.run_id)
        if missing:
            for record, steps in await tx.runs.load(missing):
                states[record.id] = await self._build(record, steps)
        return states

    async def load_with(self, tx: Transaction, run_id: RunId, outputs_of: Collection[str] | None) -> RunState:
        """Read again, with the large outputs of these steps; None: of all steps."""
        ((record, steps),) = await tx.runs.load([run_id], outputs_of)
        return await self._build(record, steps)

    async def _build(self, record: RunRecord, steps: list[StepState]) -> RunState:
        failure: StepError | None = None
        try:
            workflow = await self._workflows.compiled_for(record)
        except (Invalid, NotFound) as exc:
            # Saved by a version of the program that was less strict, perhaps: this run ends, all others go on.
            workflow, steps, failure = _nothing(record.workflow_name), [], _unusable(exc)
        state = RunState(
            id=record.id,
            workflow=workflow,
            correlation_id=record.correlation_id,
            input=record.input,
            created_at=record.created_at,
            status=record.status,
            version=record.version,
            seq=record.seq,
            output=record.output,
            error=record.error,
            paused=record.paused,
            cancel_requested_at=record.cancel_requested_at,
            started_at=record.started_at,
            finished_at=record.finished_at,
            contexts=record.contexts,
            trace=record.trace,
            parent=record.parent,
            block=record.block,
            depth=record.depth,
            routing_version=record.routing_version,
            started_by=record.started_by,
            trigger=record.trigger,
            workflow_key=WorkflowKey(record.workflow_id, record.workflow_version),
            message=record.message,
            compensation=record.compensation,
            failure=failure,
        )
        restore(state, steps)
        return state

    def keep(self, state: RunState) -> None:
        if state.is_final:
            return
        self._take(state.id)
        if state.size_bytes > self._max_bytes:
            return
        self._kept[state.id] = state
        self._kept_bytes += state.size_bytes
        while len(self._kept) > self._most_kept or self._kept_bytes > self._max_bytes:
            _, dropped = self._kept.popitem(last=False)
            self._kept_bytes -= dropped.size_bytes

    def _take(self, run_id: RunId) -> RunState | None:
        state = self._kept.pop(run_id, None)
        if state is not None:
            self._kept_bytes -= state.size_bytes
        return state


def _nothing(name: str) -> CompiledWorkflow:
    return CompiledWorkflow(WorkflowDefinition(name=name, steps={}), {}, None, None)


def _unusable(exc: Invalid | NotFound) -> StepError:
    return StepError(
        code="internal_error",
        message=f"The run's workflow can no longer be used: {exc}",
        fix="Correct the workflow, save it, and start a new run.",
    )
