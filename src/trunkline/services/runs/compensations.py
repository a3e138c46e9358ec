"""Undoing the work of a run by hand, and what a person decides when a compensation has failed."""

from __future__ import annotations

from trunkline.errors import Conflict
from trunkline.ids import RunId
from trunkline.machine.inputs import CompensateRequested, CompensationDecided, CompensationDecision
from trunkline.services.operations.audit_log import audit_entry
from trunkline.services.runs.intake import Intake
from trunkline.services.runs.queries import RunQueries
from trunkline.services.workflows import Workflows
from trunkline.stores.base import QueuedInput, RunRecord


class RunCompensations:
    def __init__(self, queries: RunQueries, workflows: Workflows, intake: Intake) -> None:
        self._queries = queries
        self._workflows = workflows
        self._intake = intake

    async def start(self, run_id: RunId) -> None:
        """Undoes the work of a run that has failed or was cancelled. Raises `Conflict` if that is not possible."""
        record, _ = await self._queries.find(run_id)
        workflow = await self._workflows.compiled_for(record)
        _check_compensable(record, has_compensations=workflow.has_compensations)
        item = QueuedInput(run_id, "compensate", CompensateRequested())
        await self._intake.put(item, audit_entry("run", "compensate", run_id))

    async def decide(self, run_id: RunId, step: str, decision: CompensationDecision) -> None:
        """How the run goes on after a compensation has failed. Raises `Conflict` if none waits for that."""
        _, state = await self._queries.find_step(run_id, step)
        waiting = state.waiting_for
        if waiting is None or not state.waits_for_decision:
            raise Conflict(
                f"The step {step} of run {run_id} is {state.status} and is not a compensation that has failed.",
                fix=f"See its state: trunkline runs show {run_id}. For a call with an unknown outcome, use succeeded,"
                " failed or call_again.",
            )
        # It may fail again, and then waits another time.
        key = f"compensation/{step}/{waiting.since}"
        item = QueuedInput(run_id, key, CompensationDecided(step, decision))
        await self._intake.put(item, audit_entry("run", "resolve", run_id, step=step, outcome=decision))


def _check_compensable(record: RunRecord, *, has_compensations: bool) -> None:
    see = f"See its state: trunkline runs show {record.id}."
    if record.block is not None and record.parent is not None:
        raise Conflict(
            f"Run {record.id} is a block of another run and cannot be compensated alone.",
            fix=f"Compensate the run that it is a part of: trunkline runs compensate {record.parent.run_id}.",
        )
    if record.compensation is not None:
        raise Conflict(f"The work of run {record.id} is being undone, or was undone.", fix=see)
    if record.status not in {"FAILED", "CANCELLED"}:
        raise Conflict(
            f"Run {record.id} is {record.status}. Only a run that has failed or was cancelled can be compensated.",
            fix=see,
        )
    if not has_compensations:
        raise Conflict(
            f"No step of workflow {record.workflow_name} (version {record.workflow_version}) has 'compensate', so run"
            f" {record.id} cannot be compensated.",
            fix="Undo its work by hand.",
        )
