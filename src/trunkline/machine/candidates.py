"""
Which of several agents a step calls, by what is known of them. A function of its arguments alone.

The facts come with an input (`CandidatesFound`), so a decision that is made again comes out the same. An agent whose
breaker is open is never called. One that has no free slot is called if no other is free, and one all of whose last
calls have failed if there is nothing better.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec

from trunkline.clock import Instant, rfc3339
from trunkline.workflow import Select

CandidateStatus = Literal["chosen", "available", "busy", "unhealthy", "breaker_open"]

# An agent without a single success in so many calls is unhealthy.
MIN_FAILURES = 3
# How far back its calls count for that.
HEALTH_MINUTES = 2

_RANKS: dict[CandidateStatus, int] = {
    "chosen": 0,
    "available": 0,
    "busy": 1,
    "unhealthy": 2,
    "breaker_open": 3,
}


def is_unhealthy(calls: int, failures: int) -> bool:
    """`calls`: those that have ended within `HEALTH_MINUTES`."""
    return calls >= MIN_FAILURES and failures == calls


class Candidate(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An agent that a step may call, and what is known of it."""

    agent: str
    # Of one call, in whichever unit; None: it is not known.
    cost: float | None = None
    # Calls that it has not answered, those that wait for it among them; and how many it takes at once.
    busy: int = 0
    slots: int = 1
    # Its rate limit allows no call at present.
    is_limited: bool = False
    # Of the last minutes: how many calls have ended, how many of them failed, and how long they took on average.
    calls: int = 0
    failures: int = 0
    average_ms: int | None = None
    # Its breaker is open; `retry_at`: until then.
    breaker_open: bool = False
    retry_at: Instant | None = None
    repeatable: bool = False

    @property
    def status(self) -> CandidateStatus:
        if self.breaker_open:
            return "breaker_open"
        if is_unhealthy(self.calls, self.failures):
            return "unhealthy"
        return "busy" if self.busy >= self.slots or self.is_limited else "available"


class ConsideredAgent(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of a candidate, as it is shown."""

    agent: str
    status: CandidateStatus
    # What counted, in words.
    reason: str


class Choice(NamedTuple):
    # None: none of them may be called now.
    chosen: Candidate | None
    considered: tuple[ConsideredAgent, ...]


def rank(candidates: Sequence[Candidate], select: Select) -> list[Candidate]:
    """The best first; of those that are equal, the one that was first before."""
    return sorted(candidates, key=lambda each: _key(each, select))


def _key(each: Candidate, select: Select) -> tuple[float, ...]:
    status = each.status
    if status == "busy":
        return _RANKS[status], each.busy / max(each.slots, 1)
    return _RANKS[status], *_selected(each, select)


def _selected(each: Candidate, select: Select) -> tuple[float, ...]:
    match select:
        case "first" | "round_robin":
            # The order in which they come says it.
            return ()
        case "least_busy":
            return (each.busy,)
        case "cheapest":
            return each.cost is None, each.cost or 0.0, each.busy
        case "fastest":
            # An agent without recent calls gets one, to be measured.
            is_new = each.average_ms is None
            return not (is_new and not each.busy), is_new, each.average_ms or 0, each.busy


def choose(candidates: Sequence[Candidate], select: Select) -> Choice:
    ranked = rank(candidates, select)
    chosen = ranked[0] if ranked and ranked[0].status != "breaker_open" else None
    return Choice(chosen, tuple(_considered(each, select, is_chosen=each is chosen) for each in ranked))


def _considered(each: Candidate, select: Select, *, is_chosen: bool) -> ConsideredAgent:
    status = each.status
    return ConsideredAgent(each.agent, "chosen" if is_chosen else status, _reason(each, status, select))


def _reason(each: Candidate, status: CandidateStatus, select: Select) -> str:
    match status:
        case "breaker_open":
            until = "" if each.retry_at is None else f" until {rfc3339(each.retry_at)}"
            return f"circuit breaker open{until}"
        case "unhealthy":
            return f"all of its last {each.calls} calls failed"
        case "busy" if each.is_limited:
            return "rate limit reached"
        case "busy":
            return f"{each.busy} of {each.slots} calls in progress or queued"
        case _:
            return _measure(each, select)


def _measure(each: Candidate, select: Select) -> str:
    match select:
        case "cheapest":
            return "no cost set" if each.cost is None else f"cost {each.cost:g}"
        case "fastest":
            return "no recent calls" if each.average_ms is None else f"{each.average_ms} ms on average"
        case "least_busy":
            return f"{each.busy} of {each.slots} calls in progress or queued"
        case "first" | "round_robin":
            return "available"
