"""A workflow's graph as text: for a terminal, or as Mermaid for a page. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Node(NamedTuple):
    """One step, with the steps that must be final before it starts."""

    name: str
    agent: str
    needs: tuple[str, ...] = ()
    when: str | None = None
    catches: tuple[str, ...] = ()
    # How many of what it joins: "any 1 of 3".
    join: str | None = None
    # What it is called once for each of.
    each: str | None = None
    # Instead of an agent: the workflow that it is a run of, "child" or "child v2".
    workflow: str | None = None
    # Instead of both: the step's action, "sleep".
    action: str | None = None

    @property
    def work(self) -> str:
        if self.workflow is not None:
            return f"workflow {self.workflow}"
        return self.agent if self.action is None else self.action


def levels(nodes: Sequence[Node]) -> dict[str, int]:
    """The place of each step on the longest way to it; steps of one level can run side by side."""
    by_name = {node.name: node for node in nodes}
    found: dict[str, int] = {}
    # A workflow may have thousands of steps in a row: no recursion.
    stack = [node.name for node in nodes]
    while stack:
        name = stack[-1]
        missing = [need for need in by_name[name].needs if need in by_name and need not in found]
        if missing:
            stack += missing
            continue
        stack.pop()
        found.setdefault(
            name, 1 + max((found[need] for need in by_name[name].needs if need in found), default=0)
        )
    return found


def as_text(nodes: Sequence[Node]) -> str:
    """
    The steps level by level, what can run side by side bracketed.

        ┌ research  Researcher
        └ figures   Statistician
          │
        ─ write     Writer        after research, figures
    """
    by_level = _grouped(nodes, levels(nodes))
    name_width = max((len(node.name) for node in nodes), default=0)
    work_width = max((len(node.work) for node in nodes), default=0)
    blocks: list[str] = []
    for group in by_level:
        lines = [
            f"{mark} {node.name:<{name_width}}  {node.work:<{work_width}}  {_conditions(node)}".rstrip()
            for mark, node in zip(_brackets(len(group)), group, strict=True)
        ]
        blocks.append("\n".join(lines))
    return "\n  │\n".join(blocks)


def as_mermaid(nodes: Sequence[Node]) -> str:
    lines = ["flowchart TD"]
    for node in nodes:
        each = f"for each {node.each}" if node.each else None
        more = [part for part in (node.join, each, f"when {node.when}" if node.when else None) if part]
        label = "<br/>".join([node.name, node.work, *more])
        # A workflow has the shape of a subroutine, and an action has round ends.
        left, right = ("[", "]") if node.workflow is None else ("[[", "]]")
        if node.action is not None:
            left, right = "([", "])"
        lines.append(f'    {node.name}{left}"{_escaped(label)}"{right}')
    for node in nodes:
        lines += [
            f"    {need} -. on error .-> {node.name}"
            if need in node.catches
            else f"    {need} --> {node.name}"
            for need in node.needs
        ]
    return "\n".join(lines)


def _grouped(nodes: Sequence[Node], level_of: Mapping[str, int]) -> list[list[Node]]:
    groups: dict[int, list[Node]] = {}
    for node in nodes:
        groups.setdefault(level_of[node.name], []).append(node)
    return [groups[level] for level in sorted(groups)]


def _brackets(count: int) -> list[str]:
    if count == 1:
        return ["─"]
    return ["┌", *["├"] * (count - 2), "└"]


def _conditions(node: Node) -> str:
    after = [need for need in node.needs if need not in node.catches]
    parts = [
        f"after {f'{node.join}: ' if node.join else ''}{', '.join(after)}" if after else "",
        f"for each {node.each}" if node.each else "",
        f"when {node.when}" if node.when else "",
        f"if {', '.join(node.catches)} failed" if node.catches else "",
    ]
    return "  ".join(part for part in parts if part)


def _escaped(label: str) -> str:
    # Mermaid reads a quote as the end of the label; its own escape is #quot;.
    return label.replace("<br/>", "\0").replace('"', "#quot;").replace("<", "&lt;").replace("\0", "<br/>")
