"""
How exchanges become findings. Pure.

    Question    one check of the table, as a dialect asks it: what level it has there, and by which rule it is judged
    Ruling      what the rule says: kept, broken, or moot (it cannot be judged, or another check has said it already)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec

from trunkline.agents.check_reports import AgentFinding, Level, Verdict
from trunkline.checker.exchanges import Exchange, Exchanges, Probe
from trunkline.checker.table import CHECKS

Judgement = Literal["kept", "broken", "moot"]


class Ruling(msgspec.Struct, frozen=True):
    judgement: Judgement
    seen: str
    # What proves it.
    exchanges: tuple[Exchange, ...] = ()


Rule = Callable[[Exchanges], Ruling]
# Of one exchange.
Judge = Callable[[Exchange], Ruling]


class Question(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    rule: Rule
    level: Level = "required"
    # Asked only when nothing else has failed: then it tells what no other check does.
    when_clean: bool = False


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What to send to an agent of one dialect, and what to ask of the answers."""

    probes: Sequence[Probe]
    questions: Sequence[Question]
    # Whether an answer is one of this dialect at all.
    speaks: Callable[[Exchange], bool]
    # Of checks that every dialect asks: where they are not required.
    levels: Mapping[str, Level] = {}
    # What the answers ask for at the end, which may be taken for work; None: nothing.
    last: Callable[[Exchanges], Probe | None]


def kept(seen: str, *exchanges: Exchange) -> Ruling:
    return Ruling("kept", seen, exchanges)


def broken(seen: str, *exchanges: Exchange) -> Ruling:
    return Ruling("broken", seen, exchanges)


def moot(seen: str) -> Ruling:
    return Ruling("moot", seen)


def each(judge: Judge, *names: str) -> Rule:
    """Kept when every one of these exchanges keeps it, as far as they can be judged; the first that does not tells."""

    def rule(exchanges: Exchanges) -> Ruling:
        rulings = [judge(exchanges[name]) for name in names if name in exchanges]
        for wanted in ("broken", "kept"):
            for ruling in rulings:
                if ruling.judgement == wanted:
                    return ruling
        return rulings[0] if rulings else moot("It was not asked.")

    return rule


def finding(question: Question, ruling: Ruling) -> AgentFinding:
    """What people read of a ruling; its words are not redacted yet."""
    check = CHECKS[question.id]
    return AgentFinding(
        id=check.id,
        title=check.title,
        group=check.group,
        level=question.level,
        verdict=_verdict(question.level, ruling.judgement),
        expected=check.expected,
        seen=ruling.seen,
        fix=check.fix,
        guide=check.guide,
        evidence=[exchange.evidence for exchange in ruling.exchanges],
    )


def _verdict(level: Level, judgement: Judgement) -> Verdict:
    match judgement:
        case "kept":
            return "passed"
        case "moot":
            return "skipped"
        case "broken":
            return "failed" if level == "required" else "warning"
