"""
The order of steps: who waits for whom, and why.

A step waits for what it names in `needs`, for every step that it reads, and, as the target of a `goto`, for
the steps that it catches. Everything here is linear in the number of steps and edges.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

# step -> the steps it waits for
Edges = Mapping[str, Iterable[str]]


def cyclic_groups(edges: Edges) -> list[frozenset[str]]:
    """
    The groups of steps that wait for one another, each with more than one step.

    Steps that can be ordered are taken away from both ends first; what is left is searched for its components
    (Tarjan's algorithm without recursion).
    """
    rest = _without_ordered(edges)
    return [frozenset(group) for group in _components(rest) if len(group) > 1]


def shortest_path(edges: Edges, start: str, target: str, within: frozenset[str]) -> list[str]:
    """The shortest way from a step to one that it waits for, both included."""
    came_from: dict[str, str] = {}
    waiting = deque([start])
    while waiting:
        step = waiting.popleft()
        for need in edges[step]:
            if need not in within or need in came_from:
                continue
            came_from[need] = step
            if need == target:
                return _steps_back(came_from, start, target)
            waiting.append(need)
    return []


def _steps_back(came_from: dict[str, str], start: str, target: str) -> list[str]:
    steps = [target]
    while True:
        steps.append(came_from[steps[-1]])
        if steps[-1] == start:
            return steps[::-1]


def _without_ordered(edges: Edges) -> dict[str, list[str]]:
    """What is left when every step whose needs are all ordered is ordered."""
    waits_for = {step: set(needs) & edges.keys() for step, needs in edges.items()}
    dependents: dict[str, list[str]] = {step: [] for step in edges}
    for step, needs in waits_for.items():
        for need in needs:
            dependents[need].append(step)
    ready = [step for step, needs in waits_for.items() if not needs]
    while ready:
        done = ready.pop()
        del waits_for[done]
        for step in dependents[done]:
            waits_for[step].discard(done)
            if not waits_for[step]:
                ready.append(step)
    return {step: [need for need in edges[step] if need in waits_for] for step in waits_for}


def _components(edges: Mapping[str, list[str]]) -> list[list[str]]:
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    on_stack: dict[str, None] = {}
    groups: list[list[str]] = []
    for root in edges:
        if root in order:
            continue
        order[root] = low[root] = len(order)
        on_stack[root] = None
        walk = [(root, iter(edges[root]))]
        while walk:
            step, needs = walk[-1]
            need = next(needs, None)
            if need is None:
                walk.pop()
                if walk:
                    above = walk[-1][0]
                    low[above] = min(low[above], low[step])
                if low[step] == order[step]:
                    groups.append(_popped_until(on_stack, step))
            elif need not in order:
                order[need] = low[need] = len(order)
                on_stack[need] = None
                walk.append((need, iter(edges[need])))
            elif need in on_stack:
                low[step] = min(low[step], order[need])
    return groups


def _popped_until(stack: dict[str, None], step: str) -> list[str]:
    group: list[str] = []
    while True:
        group.append(stack.popitem()[0])
        if group[-1] == step:
            return group
