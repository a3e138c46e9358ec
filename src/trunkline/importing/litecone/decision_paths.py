"""
On which conditions a step runs: the paths that lead to it, each a set of decisions.

    {}                      always
    {{check: true}}         where `check` holds
    {{a: true}, {b: false}} where `a` holds, and where `b` does not
"""

from __future__ import annotations

from itertools import combinations
from typing import TypeAlias

Decision: TypeAlias = tuple[str, bool]
DecisionPath: TypeAlias = frozenset[Decision]
DecisionPaths: TypeAlias = frozenset[DecisionPath]

ALWAYS: DecisionPaths = frozenset({frozenset[Decision]()})
# Paths beyond this could not be written down, and comparing them would take long.
MAX_PATHS = 30


def narrowed(guard: DecisionPaths, step: str, *, holds: bool) -> DecisionPaths:
    """The paths that also come through this decision."""
    return frozenset(path | {(step, holds)} for path in guard if (step, not holds) not in path)


def either(one: DecisionPaths, other: DecisionPaths) -> DecisionPaths:
    """The paths of both, as few as they can be: where both decisions lead to a step, none is left."""
    paths = one | other
    while len(paths) <= MAX_PATHS and (found := _merged(paths)) is not None:
        paths = found
    return paths


def exclude(one: DecisionPaths, other: DecisionPaths) -> bool:
    """Whether no run can take both paths."""
    if len(one) > MAX_PATHS or len(other) > MAX_PATHS:
        return True
    return all(any((step, not holds) in second for step, holds in first) for first in one for second in other)


def implies(one: DecisionPaths, other: DecisionPaths) -> bool:
    """Whether whatever comes here has come there."""
    return all(any(second <= first for second in other) for first in one)


def _merged(paths: DecisionPaths) -> DecisionPaths | None:
    for one, other in combinations(paths, 2):
        if one <= other or other <= one:
            return paths - {max(one, other, key=len)}
        apart = one ^ other
        if len(apart) == 2 and len({step for step, _ in apart}) == 1:
            return paths - {one, other} | {one & other}
    return None
