"""
Child runs: inserted in the transaction that decides their step, and reported to the parent's input queue in the
transaction that ends them. So neither a crash nor a second decision starts one twice, or loses its end.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import structlog

from trunkline.errors import Finding, Invalid, NotFound
from trunkline.ids import RunId, number_of
from trunkline.jsontypes import decode
from trunkline.machine.child_waits import news_for_parent
from trunkline.machine.effects import SendRunInput, StartChildRun
from trunkline.machine.inputs import ChildEnded, ChildRefused, EndStatus, RunRequested
from trunkline.machine.state import ParentStep, RunState, RunStatus
from trunkline.machine.turn import Turn
from trunkline.messages import NO_OUTPUT, StepError, fix_for
from trunkline.services.runs.intake import START
from trunkline.services.runs.labels import initial_labels
from trunkline.services.workflows import Workflows
from trunkline.stores.base import InputsQueued, NewRun, QueuedInput, Transaction, WorkflowVersion
from trunkline.telemetry import log_events
from trunkline.telemetry.metrics import Metrics
from trunkline.workflow import CompiledWorkflow

log = structlog.stdlib.get_logger()

_MAX_FINDINGS_SHOWN = 3
_ENDS: dict[RunStatus, EndStatus] = {
    "COMPLETED": "COMPLETED",
    "FAILED": "FAILED",
    "CANCELLED": "CANCELLED",
}

# What a step wants to begin: the version, ready to run, or why it cannot.
_Found = tuple[WorkflowVersion, CompiledWorkflow] | StepError


class ChildRuns:
    def __init__(self, workflows: Workflows, metrics: Metrics) -> None:
        self._workflows = workflows
        self._metrics = metrics
        self._begun: list[NewRun] = []

    async def write(self, tx: Transaction, turns: Sequence[Turn]) -> bool:
        """Writes what these turns mean for other runs; False: nothing."""
        self._begun = []
        items: list[QueuedInput] = []
        found: dict[tuple[str, int | None], _Found] = {}
        for turn in turns:
            for effect in turn.effects:
                if isinstance(effect, StartChildRun):
                    items.append(await self._start(turn, effect, found))
                elif isinstance(effect, SendRunInput):
                    items.append(QueuedInput(effect.run_id, effect.key, effect.item))
            if turn.state.parent is not None:
                items += _news(turn, turn.state.parent)
        if self._begun:
            await tx.runs.insert(self._begun)
        if items:
            await tx.input_queue.put(items)
            await tx.notify(InputsQueued(wakes=number_of(items[0].run_id)))
        return bool(items)

    async def _start(
        self, turn: Turn, effect: StartChildRun, found: dict[tuple[str, int | None], _Found]
    ) -> QueuedInput:
        """`found`: what the effects before it have asked for."""
        if effect.block is not None:
            return self._begin_block(turn, effect)
        key = effect.workflow, effect.version
        if key not in found:
            found[key] = await self._find(*key)
        return self._begin(turn, effect, found[key])

    async def _find(self, name: str, version: int | None) -> _Found:
        try:
            saved = await self._workflows.get(name, version)
            return saved, await self._workflows.compiled(saved.workflow_id, saved.version)
        except (Invalid, NotFound) as exc:
            return StepError(code="workflow_unknown", message=exc.message, fix=fix_for("workflow_unknown"))

    def _begin(self, turn: Turn, effect: StartChildRun, found: _Found) -> QueuedInput:
        """The first input for the child, or the refusal for its parent."""
        parent = turn.state
        if not isinstance(found, StepError):
            _, workflow = found
            found = _unfit(workflow, parent, effect) or found
        if isinstance(found, StepError):
            refused = ChildRefused(effect.step, effect.run_id, found)
            return QueuedInput(parent.id, _key(effect.run_id), refused)
        saved, workflow = found
        self._begun.append(
            NewRun(
                id=effect.run_id,
                workflow_id=saved.workflow_id,
                workflow_name=saved.name,
                workflow_version=saved.version,
                input=effect.input,
                correlation_id=parent.correlation_id,
                created_at=turn.now,
                trace=parent.trace,
                parent=ParentStep(parent.id, effect.step),
                depth=parent.depth + 1,
                routing_version=parent.routing_version,
                started_by=parent.started_by,
                labels=_labels(workflow, parent, effect),
            )
        )
        return QueuedInput(effect.run_id, START, RunRequested(), is_once=True)

    def _begin_block(self, turn: Turn, effect: StartChildRun) -> QueuedInput:
        """Of the version that the parent runs: nothing can be missing or unfit."""
        parent = turn.state
        key = parent.workflow_key
        assert key is not None, "a stored run has a version"  # noqa: S101 - an invariant
        self._begun.append(
            NewRun(
                id=effect.run_id,
                workflow_id=key.workflow_id,
                workflow_name=parent.workflow.definition.name,
                workflow_version=key.version,
                input=effect.input,
                correlation_id=parent.correlation_id,
                created_at=turn.now,
                trace=parent.trace,
                parent=ParentStep(parent.id, effect.step),
                # It is nested as deep as the definition says.
                depth=parent.depth,
                routing_version=parent.routing_version,
                started_by=parent.started_by,
                message=parent.message,
                block=effect.block,
            )
        )
        return QueuedInput(effect.run_id, START, RunRequested(), is_once=True)

    def committed(self) -> None:
        for run in self._begun:
            if run.block is not None:
                # A part of a run that is counted.
                continue
            self._metrics.runs_started.inc()
            log.info(
                log_events.RUN_STARTED,
                run_id=run.id,
                workflow=run.workflow_name,
                correlation_id=run.correlation_id,
                parent=None if run.parent is None else run.parent.run_id,
            )
        self._begun = []

    def rolled_back(self) -> None:
        self._begun = []


def _key(child: RunId) -> str:
    return f"child/{child}"


def _labels(workflow: CompiledWorkflow, parent: RunState, effect: StartChildRun) -> dict[str, str]:
    return initial_labels(workflow, effect.run_id, effect.input, parent.correlation_id)


def _unfit(workflow: CompiledWorkflow, parent: RunState, effect: StartChildRun) -> StepError | None:
    try:
        findings = workflow.check_input(decode(effect.input))
    except RecursionError:
        # An exception here would end the transaction of every other run, again after each restart.
        findings = [Finding(path="input", message="is nested too deeply to be checked")]
    if not findings:
        try:
            _labels(workflow, parent, effect)
        except Invalid as exc:
            return StepError(code="child_input_invalid", message=exc.message)
        return None
    more = len(findings) - _MAX_FINDINGS_SHOWN
    problems = "; ".join(f"{finding.path}: {finding.message}" for finding in findings[:_MAX_FINDINGS_SHOWN])
    return StepError(
        code="child_input_invalid",
        message=f"The step's input does not match the schema of workflow {workflow.definition.name}: {problems}"
        f"{f' (and {more} more)' if more > 0 else ''}.",
    )


def _news(turn: Turn, parent: ParentStep) -> list[QueuedInput]:
    """What the parent of the run has to know."""
    if turn.state.is_final:
        return [_end(turn, parent)]
    news = news_for_parent(turn, parent)
    if news is None:
        return []
    # Each transition has other events.
    key = f"{_key(turn.state.id)}/{turn.state.seq}"
    return [QueuedInput(parent.run_id, key, news, is_once=True)]


def _end(turn: Turn, parent: ParentStep) -> QueuedInput:
    child = turn.state
    ended = ChildEnded(
        parent.step,
        child.id,
        _ENDS[child.status],
        NO_OUTPUT if child.output is None else msgspec.Raw(child.output),
        child.error,
        turn.round_end,
    )
    return QueuedInput(parent.run_id, _key(child.id), ended)
