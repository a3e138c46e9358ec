"""One of litecone's workflows in our language: a workflow, and those that it begins."""

from __future__ import annotations

from trunkline.importing.identifiers import identifiers
from trunkline.importing.litecone.branch_extraction import extract_branches, unawaited_steps
from trunkline.importing.litecone.source_model import ExtractedBranchStep, LiteconeWorkflow
from trunkline.importing.litecone.step_order import order_steps
from trunkline.importing.litecone.workflow_builder import MAX_LINKS, ImportContext, WorkflowBuilder
from trunkline.importing.report import ImportReport
from trunkline.jsontypes import JsonObject

_MAX_SHOWN = 5


def translate_workflow(
    plan: LiteconeWorkflow, report: ImportReport, in_parts: frozenset[str]
) -> list[JsonObject]:
    """The definitions, each after those that it begins, its own the last; none where that is reported."""
    folded = extract_branches(plan)
    flow = order_steps(folded, (plan.start,), report)
    if flow is None:
        return []
    if not flow.calls:
        report.lost(("start_step",), "no reachable step calls an agent", "Correct the source.")
        return []
    if sum(len(placed.after) for placed in flow.calls.values()) > MAX_LINKS:
        report.lost(
            ("steps",),
            f"the steps would have more than {MAX_LINKS:,} dependencies",
            "Put a step between steps that run in parallel and steps that all wait for them.",
        )
        return []
    title = plan.name.replace("/", "-")
    if title != plan.name:
        report.note(("name",), f"the workflow is renamed to '{title}', because a name must not contain '/'")
    whole = ImportContext(folded, identifiers(folded.steps), report, in_parts, title, unawaited_steps(folded))
    region = WorkflowBuilder(whole, flow, None, ())
    definition: JsonObject = {"name": title}
    if plan.description is not None:
        definition["description"] = plan.description
    limit = region.limit()
    if limit is not None:
        definition["max_parallel"] = limit
    definition["steps"] = region.steps()
    _report_renamed_steps(whole)
    _report_children(whole)
    _report_unreached_steps(whole)
    return [*whole.children, definition]


def _report_renamed_steps(whole: ImportContext) -> None:
    own = [
        name for name in whole.names.items() if not isinstance(whole.plan.steps[name[0]], ExtractedBranchStep)
    ]
    changed = [(old, new) for old, new in own if old != new]
    if changed:
        shown = ", ".join(f"'{old[:80]}' becomes {new}" for old, new in changed[:_MAX_SHOWN])
        more = f", and {len(changed) - _MAX_SHOWN} more" if len(changed) > _MAX_SHOWN else ""
        whole.report.note(
            ("steps",), f"steps are renamed, because step names must be identifiers: {shown}{more}"
        )


def _report_children(whole: ImportContext) -> None:
    for child in whole.children:
        whole.report.note(
            ("steps",), f"'{child['name']}' becomes a separate workflow, which the imported one runs"
        )


def _report_unreached_steps(whole: ImportContext) -> None:
    for name in whole.plan.steps:
        if name not in whole.reached:
            whole.report.note(("steps", name), "the step is left out, because no path leads to it")
