"""
On which conditions a step runs: the ways that lead to it, each a set of decisions.

    {}                      always
    {{check: true}}         where `check` holds
    {{a: true}, {b: false}} where `a` holds, and where `b` does not
"""

from __future__ import annotations

from itertools import combinations
from typing import TypeAlias

Decision: TypeAlias = tuple[str, bool]
Way: TypeAlias = frozenset[Decision]
Guard: TypeAlias = frozenset[Way]

ALWAYS: Guard = frozenset({frozenset[Decision]()})
# Ways beyond this could not be written down, and comparing them would take long.
MOST_WAYS = 30


def narrowed(guard: Guard, step: str, *, holds: bool) -> Guard:
    """The ways that also come through this decision."""
    return frozenset(way | {(step, holds)} for way in guard if (step, not holds) not in way)


def either(one: Guard, other: Guard) -> Guard:
    """The ways of both, as few as they can be: where both decisions lead to a step, none is left."""
    ways = one | other
    while len(ways) <= MOST_WAYS and (found := _merged(ways)) is not None:
        ways = found
    return ways


def exclude(one: Guard, other: Guard) -> bool:
    """Whether no run can come both ways."""
    if len(one) > MOST_WAYS or len(other) > MOST_WAYS:
        return True
    return all(any((step, not holds) in second for step, holds in first) for first in one for second in other)


def implies(one: Guard, other: Guard) -> bool:
    """Whether whatever comes here has come there."""
    return all(any(second <= first for second in other) for first in one)


def _merged(ways: Guard) -> Guard | None:
    for one, other in combinations(ways, 2):
        if one <= other or other <= one:
            return ways - {max(one, other, key=len)}
        apart = one ^ other
        if len(apart) == 2 and len({step for step, _ in apart}) == 1:
            return ways - {one, other} | {one & other}
    return None
