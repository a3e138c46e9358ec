"""
Labels of runs: those that a run begins with, and changes of them.

They belong to the run and not to its state machine, so a change goes past the input queue, also after the run's end.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from trunkline.errors import Finding, Invalid, NotFound
from trunkline.ids import RunId
from trunkline.jsontypes import Json, decode
from trunkline.messages import CallerMessage
from trunkline.services.operations.audit_log import audit_entry
from trunkline.services.runs.watchers import RunWatchers
from trunkline.stores.base import RunsChanged, Store
from trunkline.workflow import CompiledWorkflow, check_label_count, label_problem

_NONE: Mapping[str, str] = MappingProxyType({})


def initial_labels(
    workflow: CompiledWorkflow,
    run_id: RunId,
    run_input: bytes,
    correlation_id: str,
    *,
    message: CallerMessage | None = None,
) -> dict[str, str]:
    """What the workflow definition says of this run; raises `Invalid` if it has no usable value."""
    if not workflow.has_labels:
        return {}
    run: Json = {
        "id": run_id,
        "correlation_id": correlation_id,
        "message": None if message is None else message.shown(),
    }
    readable = {"run": run, "input": decode(run_input)}
    return workflow.evaluate_labels(readable.__getitem__)


def first_labels(
    workflow: CompiledWorkflow | None,
    run_id: RunId,
    run_input: bytes,
    correlation_id: str,
    *,
    message: CallerMessage | None = None,
    before: Mapping[str, str] = _NONE,
    given: Mapping[str, str] = _NONE,
) -> dict[str, str]:
    """
    The labels that a run begins with, the later ones on top: `before`, those of the workflow, and `given`.

    Without a workflow, none are computed. Raises `Invalid`, also if there are too many.
    """
    computed = (
        {}
        if workflow is None
        else initial_labels(workflow, run_id, run_input, correlation_id, message=message)
    )
    labels = {**before, **computed, **given}
    check_label_count(labels)
    return labels


class RunLabels:
    """Changes the labels of runs."""

    def __init__(self, store: Store, watchers: RunWatchers) -> None:
        self._store = store
        self._watchers = watchers

    async def change(self, run_id: RunId, changes: Mapping[str, str | None]) -> None:
        """Sets labels, and removes those whose new value is None. Raises `Invalid` and `NotFound`."""
        check_label_changes(changes)
        async with self._store.transaction() as tx:
            before = (await tx.runs.labels([run_id])).get(run_id)
            if before is None:
                raise NotFound(f"There is no run {run_id}.", fix="List the runs: trunkline runs list.")
            labels = changed_labels(before, changes)
            if labels == before:
                return
            await tx.runs.set_labels({run_id: labels})
            await tx.audit.put([audit_entry("run", "label", run_id, labels={**changes})])
            await tx.notify(RunsChanged([run_id]))
        self._watchers.notify([run_id])


def changed_labels(before: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    """Raises `Invalid` if there are too many then."""
    merged = {**before, **changes}
    labels = {key: value for key, value in merged.items() if value is not None}
    check_label_count(labels)
    return labels


def check_label_changes(changes: Mapping[str, str | None]) -> None:
    """Raises `Invalid`."""
    findings = [
        Finding(path=f"labels.{key}", message=problem)
        for key, value in changes.items()
        if (problem := label_problem(key, "-" if value is None else value)) is not None
    ]
    if findings:
        raise Invalid("; ".join(finding.message for finding in findings[:3]), findings=findings)
