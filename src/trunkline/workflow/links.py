"""Connects the steps of a definition, and reports what cannot be connected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from trunkline.workflow.definition import Goto, WorkflowDefinition
from trunkline.workflow.expressions import Sites
from trunkline.workflow.graph import tangles, way
from trunkline.workflow.report import Report, closest

# Of a tangle of many steps a few examples are enough to find the mistake.
_MOST_EXAMPLES = 10
# A circle longer than this is shown by its beginning.
_MOST_SHOWN = 12


@dataclass(slots=True)
class Links:
    """How one step hangs together with the others; the keys are an ordered set."""

    written: dict[str, None] = field(default_factory=dict[str, None])
    read: dict[str, None] = field(default_factory=dict[str, None])
    catches: dict[str, None] = field(default_factory=dict[str, None])
    dependents: dict[str, None] = field(default_factory=dict[str, None])

    @property
    def needs(self) -> tuple[str, ...]:
        return tuple(self.written | self.read | self.catches)


def connect(definition: WorkflowDefinition, sites: Mapping[str, Sites], report: Report) -> dict[str, Links]:
    """The links of every step; `sites` says what each of them reads, and where."""
    links = {name: Links() for name in definition.steps}
    for name in definition.steps:
        _link_needs(definition, name, links, report)
        _link_reads(name, sites[name], links, report)
        _link_goto(definition, name, links, report)
    _report_circles(links, sites, report)
    for name, link in links.items():
        for need in link.needs:
            links[need].dependents[name] = None
    return links


def _link_needs(definition: WorkflowDefinition, name: str, links: dict[str, Links], report: Report) -> None:
    for index, need in enumerate(definition.steps[name].needs):
        path = ("steps", name, "needs", index)
        if need == name:
            report.error(path, "a step cannot need itself; remove it")
        elif need not in links:
            report.error(path, _no_step(need, links))
        else:
            links[name].written[need] = None


def _link_reads(name: str, sites: Sites, links: dict[str, Links], report: Report) -> None:
    for read, site in sites.items():
        step = read.removeprefix("steps.")
        if step == read:
            continue
        if step == name:
            report.error(site.path, "a step cannot read itself: it has no output yet", excerpt=site.excerpt)
        else:
            links[name].read[step] = None


def _link_goto(definition: WorkflowDefinition, name: str, links: dict[str, Links], report: Report) -> None:
    on_error = definition.steps[name].on_error
    if not isinstance(on_error, Goto):
        return
    path = ("steps", name, "on_error", "goto")
    if on_error.step == name:
        report.error(path, "a step cannot go to itself; use 'retry' to call its agent again")
    elif on_error.step not in links:
        report.error(path, _no_step(on_error.step, links))
    else:
        links[on_error.step].catches[name] = None


def _report_circles(links: dict[str, Links], sites: Mapping[str, Sites], report: Report) -> None:
    written = {name: link.written for name, link in links.items()}
    circles = tangles(written)
    for circle in circles:
        _report_circle(circle, written, links, report)
    in_circle = frozenset[str]().union(*circles)
    edges = {name: link.needs for name, link in links.items()}
    for group in tangles(edges):
        # What is written explains the circle already; the rest would repeat it.
        if not group & in_circle:
            _report_backward(group, edges, links, sites, report)


def _report_circle(
    circle: frozenset[str], written: Mapping[str, dict[str, None]], links: dict[str, Links], report: Report
) -> None:
    first = next(name for name in links if name in circle)
    steps = way(written, first, first, circle)
    index = list(written[first]).index(steps[1])
    message = f"the steps wait for one another in a circle: {_arrows(steps)}; remove one of these needs"
    report.error(("steps", first, "needs", index), message)


def _report_backward(
    group: frozenset[str],
    edges: Mapping[str, tuple[str, ...]],
    links: dict[str, Links],
    sites: Mapping[str, Sites],
    report: Report,
) -> None:
    examples = 0
    for name in (name for name in links if name in group):
        for step in (step for step in links[name].read if step in group):
            site = sites[name][f"steps.{step}"]
            why = _arrows(way(edges, step, name, group))
            message = (
                f"'{name}' reads the step '{step}', which is not upstream of it: {step} waits for it ({why})"
            )
            report.error(site.path, message, excerpt=site.excerpt)
            examples += 1
        for source in (source for source in links[name].catches if source in group):
            why = _arrows(way(edges, source, name, group))
            message = f"'{source}' cannot go to '{name}', which is upstream of it ({why}); go to a later step"
            report.error(("steps", source, "on_error", "goto"), message)
            examples += 1
        if examples >= _MOST_EXAMPLES:
            return


def _arrows(steps: list[str]) -> str:
    if len(steps) > _MOST_SHOWN:
        steps = [*steps[: _MOST_SHOWN - 2], "…", steps[-1]]
    return " -> ".join(steps)


def _no_step(name: str, links: Mapping[str, Links]) -> str:
    return f"there is no step '{name[:64]}'{closest(name, links) or '; the steps are the keys under steps'}"
