"""
litecone's workflows and agents.

A file holds one workflow, one agent, or a list of these; what its REST API answers (a page with `items`, a workflow
under `workflow_data`) is taken as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from trunkline.errors import Invalid
from trunkline.importing.litecone.agents import AgentCheckFunction, answers_in_parts, read_agent
from trunkline.importing.litecone.source_model import read_workflow
from trunkline.importing.litecone.translate import translate_workflow
from trunkline.importing.report import ImportedDefinitions, ImportedWorkflow, ImportReport
from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.workflow import load_workflow
from trunkline.workflow.document.locations import Path

__all__ = ["import_files"]

_LISTS = ("items", "agents", "workflows")
_OF_A_PAGE = frozenset({"pagination", "total", "page", "page_size", "total_pages", "next_cursor"})
_MAX_FINDINGS = 10


def import_files(
    files: Sequence[tuple[str, Json]], check_agent: AgentCheckFunction = lambda _: ()
) -> ImportedDefinitions:
    """
    All that the files hold, without the agents of which the check finds something.

    Agents come first: how a step is read depends on what its agent speaks.
    """
    reports = {name: ImportReport(name) for name, _ in files}
    found = [
        (reports[name], path, entry)
        for name, content in files
        for path, entry in _entries(content, reports[name])
    ]
    agents = [
        agent for place in found if _is_agent(place[2]) and (agent := _agent(*place, check_agent)) is not None
    ]
    in_parts = frozenset(str(agent["name"]) for agent in agents if answers_in_parts(agent))
    workflows = [
        workflow for place in found if _is_workflow(place[2]) for workflow in _workflows(*place, in_parts)
    ]
    doubled = _report_duplicates(agents, workflows, reports)
    return ImportedDefinitions(
        workflows=tuple(
            replace(workflow, complete=False) if workflow.file in doubled else workflow
            for workflow in workflows
        ),
        agents=tuple(agents),
        remarks=tuple(remark for report in reports.values() for remark in report.remarks),
        dropped=sum(report.dropped for report in reports.values()),
        lost=sum(report.counts["lost"] for report in reports.values()),
    )


def _entries(content: Json, report: ImportReport) -> Iterator[tuple[Path, JsonObject]]:
    match content:
        case {"workflow_data": dict(data)}:
            yield ("workflow_data",), _unwrapped(content, data)
        case dict() if _is_workflow(content) or _is_agent(content):
            yield (), content
        case dict():
            lists = [key for key in _LISTS if isinstance(content.get(key), list)]
            for key in lists:
                yield from _listed(content[key], (key,), report)
            _report_unread(content, lists, report)
        case list():
            yield from _listed(content, (), report)
        case _:
            report.lost(
                (),
                "the file holds neither a workflow nor an agent",
                "Pass files that were exported from litecone.",
            )


def _listed(content: Json, path: Path, report: ImportReport) -> Iterator[tuple[Path, JsonObject]]:
    for index, item in enumerate(content if isinstance(content, list) else ()):
        here = (*path, index)
        match item:
            case {"workflow_data": dict(data)}:
                yield (*here, "workflow_data"), _unwrapped(item, data)
            case dict() if _is_workflow(item) or _is_agent(item):
                yield here, item
            case _:
                report.begin(None, ())
                report.lost(
                    here, "this is neither a workflow nor an agent", "Remove it, or correct it in the source."
                )


def _unwrapped(wrapping: JsonObject, data: JsonObject) -> JsonObject:
    """The workflow, with the metadata that the API returns."""
    outside = {key: value for key, value in wrapping.items() if key != "workflow_data"}
    return {**outside, **{key: value for key, value in data.items() if value is not None}}


def _report_unread(content: JsonObject, lists: list[str], report: ImportReport) -> None:
    if not lists:
        report.lost(
            (),
            "the file holds neither a workflow nor an agent",
            "Pass files that were exported from litecone.",
        )
        return
    for key in content:
        if key not in lists and key not in _OF_A_PAGE:
            report.lost(
                (key,),
                f"the field '{key[:80]}' is not known in litecone's format",
                "Check what it means, and add it by hand.",
            )


def _is_workflow(entry: JsonObject) -> bool:
    return "start_step" in entry or "steps" in entry


def _is_agent(entry: JsonObject) -> bool:
    return "url" in entry and not _is_workflow(entry)


def _name(entry: JsonObject) -> str | None:
    name = entry.get("name")
    return name[:255] if isinstance(name, str) else None


def _agent(
    report: ImportReport, path: Path, entry: JsonObject, check: AgentCheckFunction
) -> JsonObject | None:
    report.begin(_name(entry), path)
    return read_agent(entry, report, check)


def _workflows(
    report: ImportReport, path: Path, entry: JsonObject, in_parts: frozenset[str]
) -> Iterator[ImportedWorkflow]:
    report.begin(_name(entry), path)
    before = report.counts["lost"]
    plan = read_workflow(entry, report)
    definitions = [] if plan is None else translate_workflow(plan, report, in_parts)
    for definition in definitions:
        _check(definition, report)
    complete = report.counts["lost"] == before
    for definition in definitions:
        yield ImportedWorkflow(
            name=str(definition["name"]), file=report.file, definition=definition, complete=complete
        )


def _check(definition: JsonObject, report: ImportReport) -> None:
    """Reports what the workflow language rejects, so that a file that cannot be applied is not written silently."""
    try:
        load_workflow(encode(definition), source="imported")
    except Invalid as exc:
        for finding in exc.findings[:_MAX_FINDINGS]:
            report.lost(
                (),
                f"the imported workflow is not valid: {finding.message} ({finding.path})",
                "Correct the written file by hand.",
            )


def _report_duplicates(
    agents: list[JsonObject], workflows: list[ImportedWorkflow], reports: dict[str, ImportReport]
) -> set[str]:
    """The files with workflows of a name that there is already."""
    first = next(iter(reports), "")
    names = [("agent", str(agent["name"]), first) for agent in agents]
    names += [("workflow", workflow.name, workflow.file) for workflow in workflows]
    seen: set[tuple[str, str]] = set()
    doubled: set[str] = set()
    for kind, name, file in names:
        if (kind, name) in seen:
            reports[file].begin(name, ())
            reports[file].lost(
                (), f"there are several {kind}s with the name '{name}'", "Keep only one of them."
            )
            doubled |= {file} if kind == "workflow" else set()
        seen.add((kind, name))
    return doubled
