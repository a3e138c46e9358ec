"""Connects the steps of a definition, and reports what cannot be connected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice

from trunkline.workflow.definition import Goto, WorkflowDefinition
from trunkline.workflow.expressions import ReadSites
from trunkline.workflow.step_graph.cycles import cyclic_groups, shortest_path
from trunkline.workflow.validation_report import ValidationReport

# Of a tangle of many steps a few examples are enough to find the mistake.
_MAX_EXAMPLES = 10
# A cycle longer than this is shown by its beginning.
_MAX_SHOWN = 12


@dataclass(slots=True)
class StepLinks:
    """How one step hangs together with the others."""

    # With the place in the list. The other dicts are ordered sets.
    written: dict[str, int] = field(default_factory=dict[str, int])
    read: dict[str, None] = field(default_factory=dict[str, None])
    catches: dict[str, None] = field(default_factory=dict[str, None])
    dependents: dict[str, None] = field(default_factory=dict[str, None])

    @property
    def needs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.written, *self.read, *self.catches)))


def link_steps(
    definition: WorkflowDefinition, sites: Mapping[str, ReadSites], report: ValidationReport
) -> dict[str, StepLinks]:
    """The links of every step; `sites` says what each of them reads, and where."""
    links = {name: StepLinks() for name in definition.steps}
    for name in definition.steps:
        _link_needs(definition, name, links, report)
        _link_reads(name, sites[name], links, report)
        _link_goto(definition, name, links, report)
    _report_cycles(links, sites, report)
    for name, link in links.items():
        for need in link.needs:
            links[need].dependents[name] = None
    return links


def _link_needs(
    definition: WorkflowDefinition, name: str, links: dict[str, StepLinks], report: ValidationReport
) -> None:
    for index, need in enumerate(definition.steps[name].needs):
        path = ("steps", name, "needs", index)
        if need == name:
            report.error(path, "a step cannot need itself; remove it from 'needs'")
        elif need not in links:
            report.error(path, _no_step(need, links, report))
        else:
            links[name].written.setdefault(need, index)


def _link_reads(name: str, sites: ReadSites, links: dict[str, StepLinks], report: ValidationReport) -> None:
    for read, site in sites.items():
        step = read.removeprefix("steps.")
        if step not in links or step == read:
            # Not of a step, or of one outside the block.
            continue
        if step == name:
            report.error(site.path, "a step cannot read its own output", excerpt=site.excerpt)
        else:
            links[name].read[step] = None


def _link_goto(
    definition: WorkflowDefinition, name: str, links: dict[str, StepLinks], report: ValidationReport
) -> None:
    on_error = definition.steps[name].on_error
    if not isinstance(on_error, Goto):
        return
    path = ("steps", name, "on_error", "goto")
    if on_error.step == name:
        report.error(path, "a step cannot continue at itself; use 'retry' to call its agent again")
    elif on_error.step not in links:
        report.error(path, _no_step(on_error.step, links, report))
    else:
        links[on_error.step].catches[name] = None


def _report_cycles(
    links: dict[str, StepLinks], sites: Mapping[str, ReadSites], report: ValidationReport
) -> None:
    cycles = cyclic_groups({name: link.written for name, link in links.items()})
    for cycle in cycles:
        _report_cycle(cycle, {name: link.written for name, link in links.items()}, links, sites, report)
    explained = frozenset[str]().union(*cycles)
    for group in cyclic_groups({name: link.needs for name, link in links.items()}):
        # What is written explains the cycle already; the rest would repeat it.
        if not group & explained:
            _report_cyclic_group(group, links, sites, report)


def _report_cyclic_group(
    group: frozenset[str],
    links: dict[str, StepLinks],
    sites: Mapping[str, ReadSites],
    report: ValidationReport,
) -> None:
    """Names what makes the cycle where that is clear, and shows the cycle where its parts are alike."""
    before = len(report.errors)
    _report_reads(group, {name: tuple(link.written) for name, link in links.items()}, links, sites, report)
    _report_gotos(group, links, report)
    if len(report.errors) == before:
        edges = {name: (*link.written, *link.catches) for name, link in links.items()}
        _report_reads(group, edges, links, sites, report)
    if len(report.errors) == before:
        _report_cycle(group, {name: link.needs for name, link in links.items()}, links, sites, report)


def _report_reads(
    group: frozenset[str],
    edges: Mapping[str, tuple[str, ...]],
    links: dict[str, StepLinks],
    sites: Mapping[str, ReadSites],
    report: ValidationReport,
) -> None:
    """Finds the steps that read one that waits for them, by the edges that are beyond doubt."""
    reads = ((name, step) for name in links if name in group for step in links[name].read if step in group)
    for name, step in islice(reads, _MAX_EXAMPLES):
        steps = shortest_path(edges, step, name, group)
        if steps and step not in edges[name]:
            site = sites[name][f"steps.{step}"]
            message = f"'{name}' reads the step '{step}', but {step} runs after it"
            report.error(site.path, f"{message} ({_format_path(steps)})", excerpt=site.excerpt)


def _report_gotos(group: frozenset[str], links: dict[str, StepLinks], report: ValidationReport) -> None:
    edges = {name: (*link.written, *link.read) for name, link in links.items()}
    gotos = ((name, step) for step in links if step in group for name in links[step].catches if name in group)
    for name, step in islice(gotos, _MAX_EXAMPLES):
        steps = shortest_path(edges, name, step, group)
        if steps:
            message = (
                f"'{name}' cannot continue at '{step}', because {step} runs before it ({_format_path(steps)})"
            )
            report.error(("steps", name, "on_error", "goto"), f"{message}; use a later step")


def _report_cycle(
    cycle: frozenset[str],
    edges: Mapping[str, Iterable[str]],
    links: dict[str, StepLinks],
    sites: Mapping[str, ReadSites],
    report: ValidationReport,
) -> None:
    first = next(name for name in links if name in cycle)
    steps = shortest_path(edges, first, first, cycle)
    message = (
        f"the steps depend on each other in a cycle: {_format_path(steps)}; remove one of the dependencies"
    )
    second, link = steps[1], links[first]
    if second in link.written:
        report.error(("steps", first, "needs", link.written[second]), message)
    elif second in link.read:
        site = sites[first][f"steps.{second}"]
        report.error(site.path, message, excerpt=site.excerpt)
    else:
        report.error(("steps", second, "on_error", "goto"), message)


def _format_path(steps: list[str]) -> str:
    if len(steps) > _MAX_SHOWN:
        steps = [*steps[: _MAX_SHOWN - 2], "…", steps[-1]]
    return " -> ".join(steps)


def _no_step(name: str, links: Mapping[str, StepLinks], report: ValidationReport) -> str:
    hint = report.hint(name, links) or "; the steps are the keys under 'steps'"
    return f"unknown step '{name[:64]}'{hint}"
