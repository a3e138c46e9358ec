"""
What a check plan consists of, and how exchanges become findings. Deterministic, no I/O.

    CheckPlan      the requests to send to an agent of one dialect, and the checks to make of its answers
    PlannedCheck   one check of the table, with its level in this dialect and the rule that decides it
    RuleResult     met, violated, or not applicable (it cannot be decided, or another check reports it already)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec

from trunkline.agents.check_reports import AgentFinding, Level, Verdict
from trunkline.checker.check_definitions import CHECKS
from trunkline.checker.exchanges import ProbeExchange, ProbeExchanges, ProbeRequest

Judgement = Literal["met", "violated", "not_applicable"]


class RuleResult(msgspec.Struct, frozen=True):
    judgement: Judgement
    seen: str
    # What proves it.
    exchanges: tuple[ProbeExchange, ...] = ()


Rule = Callable[[ProbeExchanges], RuleResult]
# Of one exchange.
ExchangeRule = Callable[[ProbeExchange], RuleResult]


class PlannedCheck(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    rule: Rule
    level: Level = "required"
    # Asked only when nothing else has failed: then it tells what no other check does.
    when_clean: bool = False


class CheckPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What to send to an agent of one dialect, and what to ask of the answers."""

    probes: Sequence[ProbeRequest]
    checks: Sequence[PlannedCheck]
    # Whether an answer is one of this dialect at all.
    speaks: Callable[[ProbeExchange], bool]
    # Of checks that every dialect asks: where they are not required.
    levels: Mapping[str, Level] = {}
    # What the answers ask for at the end, which may be taken for work; None: nothing.
    follow_up: Callable[[ProbeExchanges], ProbeRequest | None]


def met(seen: str, *exchanges: ProbeExchange) -> RuleResult:
    return RuleResult("met", seen, exchanges)


def violated(seen: str, *exchanges: ProbeExchange) -> RuleResult:
    return RuleResult("violated", seen, exchanges)


def not_applicable(seen: str) -> RuleResult:
    return RuleResult("not_applicable", seen)


def for_each_exchange(judge: ExchangeRule, *names: str) -> Rule:
    """Kept when every one of these exchanges keeps it, as far as they can be judged; the first that does not tells."""

    def rule(exchanges: ProbeExchanges) -> RuleResult:
        results = [judge(exchanges[name]) for name in names if name in exchanges]
        for wanted in ("violated", "met"):
            for result in results:
                if result.judgement == wanted:
                    return result
        return results[0] if results else not_applicable("It was not asked.")

    return rule


def to_finding(question: PlannedCheck, result: RuleResult) -> AgentFinding:
    """What people read of a result; its words are not redacted yet."""
    check = CHECKS[question.id]
    return AgentFinding(
        id=check.id,
        title=check.title,
        group=check.group,
        level=question.level,
        verdict=_verdict(question.level, result.judgement),
        expected=check.expected,
        seen=result.seen,
        fix=check.fix,
        guide=check.guide,
        evidence=[exchange.evidence for exchange in result.exchanges],
    )


def _verdict(level: Level, judgement: Judgement) -> Verdict:
    match judgement:
        case "met":
            return "passed"
        case "not_applicable":
            return "skipped"
        case "violated":
            return "failed" if level == "required" else "warning"
