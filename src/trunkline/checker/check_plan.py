"""
What a check plan consists of, and how exchanges become findings. Deterministic, no I/O.

    CheckPlan      the requests to send to an agent of one dialect, and the checks of its answers
    PlannedCheck   one check of the table, with its level in this dialect and the rule that decides it
    RuleResult     met, violated, or not applicable (it cannot be decided, or another check reports it already)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec

from trunkline.agents.check_reports import AgentFinding, CheckedInputMode, Level, Verdict
from trunkline.checker.check_definitions import CHECKS
from trunkline.checker.exchanges import ProbeExchange, ProbeExchanges, ProbeRequest

Judgement = Literal["met", "violated", "not_applicable"]


class RuleResult(msgspec.Struct, frozen=True):
    judgement: Judgement
    seen: str
    # The exchanges that prove it.
    exchanges: tuple[ProbeExchange, ...] = ()


Rule = Callable[[ProbeExchanges], RuleResult]
# Of one exchange.
ExchangeRule = Callable[[ProbeExchange], RuleResult]


class PlannedCheck(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    rule: Rule
    level: Level = "required"


class CheckPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What to send to an agent of one dialect, and what to check in the answers."""

    probes: Sequence[ProbeRequest]
    checks: Sequence[PlannedCheck]
    # Whether an answer has the format of this dialect.
    speaks: Callable[[ProbeExchange], bool]
    # The levels of checks that apply to every dialect but are not required in this one.
    levels: Mapping[str, Level] = {}
    # A last request that depends on the answers and may be treated as work; None: no request.
    follow_up: Callable[[ProbeExchanges], ProbeRequest | None]
    # In which modes the answers show that the agent reads its input; None: the dialect has only one form.
    input_modes: Callable[[ProbeExchanges], list[CheckedInputMode]] | None = None


def met(seen: str, *exchanges: ProbeExchange) -> RuleResult:
    return RuleResult("met", seen, exchanges)


def violated(seen: str, *exchanges: ProbeExchange) -> RuleResult:
    return RuleResult("violated", seen, exchanges)


def not_applicable(seen: str) -> RuleResult:
    return RuleResult("not_applicable", seen)


def for_each_exchange(judge: ExchangeRule, *names: str) -> Rule:
    """Met if every exchange that can be judged meets it; otherwise the first violation is the result."""

    def rule(exchanges: ProbeExchanges) -> RuleResult:
        results = [judge(exchanges[name]) for name in names if name in exchanges]
        for wanted in ("violated", "met"):
            for result in results:
                if result.judgement == wanted:
                    return result
        return results[0] if results else not_applicable("Not checked.")

    return rule


def to_finding(question: PlannedCheck, result: RuleResult) -> AgentFinding:
    """The finding for a result; its texts are not redacted yet."""
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
