"""
One check of one agent: sends the requests of the dialect's plan, and makes a report of the answers.

    async with HttpTransport(policy) as transport:
        report = await Checker(transport, clock).check(CheckedAgent(url="http://localhost:8080/agent"))

Without `active`, nothing is sent that a correct agent treats as work. Whatever the agent does, the result is a report:
each request and the whole check have a time limit, each answer has a size limit (the transport's), and a check gives up
on an agent that hangs. Requests are sent one after the other, because some agents cannot handle more.
"""

from __future__ import annotations

from collections.abc import Sequence
from secrets import token_hex
from time import perf_counter

import msgspec

from trunkline.agents.check_reports import (
    GATES,
    NO_EVIDENCE,
    VERDICTS,
    AgentCheckReport,
    AgentFinding,
    CheckedInputMode,
    CheckSample,
    grade_of,
)
from trunkline.agents.http_urls import check_url
from trunkline.agents.transport_urls import transport_of
from trunkline.checker.check_definitions import CHECKS
from trunkline.checker.check_plan import (
    CheckPlan,
    PlannedCheck,
    RuleResult,
    met,
    not_applicable,
    to_finding,
    violated,
)
from trunkline.checker.checklist import attestations
from trunkline.checker.dialect_choice import ChosenDialect, choose_dialect
from trunkline.checker.exchanges import ProbeExchange, ProbeExchanges
from trunkline.checker.plans import cards, jsonrpc_envelope, simple_a2a, transport
from trunkline.checker.plans.a2a_http import a2a_http_plan
from trunkline.checker.plans.rpc_dialects import RPC_PROTOCOLS, rpc_plan
from trunkline.checker.plans.simple_a2a import simple_plan
from trunkline.checker.session import CheckedAgent, CheckLimits, CheckSession, OnProgress
from trunkline.clock import Clock, rfc3339
from trunkline.errors import Invalid
from trunkline.protocols import ProtocolAdapterFactory, validate_protocol_config
from trunkline.transports.base import Transport

# The dialects that have checks.
PROTOCOLS = ("simple-a2a", *RPC_PROTOCOLS, "a2a-1.0-http")
_MAX_SEEN_CHARACTERS = 500


class Checker:
    """Checks agents; keeps no state about them."""

    def __init__(self, transport: Transport, clock: Clock, limits: CheckLimits | None = None) -> None:
        self._transport = transport
        self._clock = clock
        self._limits = limits or CheckLimits()

    async def check(
        self, subject: CheckedAgent, *, active: bool = False, on_progress: OnProgress | None = None
    ) -> AgentCheckReport:
        """
        Return a report, whatever the agent does.

        Raises `Invalid` when the subject cannot be checked: the address is invalid or not HTTP, or the protocol is
        unknown.
        """
        _validate_agent(subject)
        started_at, started = self._clock.now(), perf_counter()
        session = CheckSession(self._transport, self._limits, subject, on_progress)
        dialect, found, input_modes = await _run_check(session, subject, active=active)
        findings = sorted(found, key=lambda finding: VERDICTS.index(finding.verdict))
        has_failed = any(finding.verdict == "failed" for finding in findings)
        is_unanswered = not has_failed and _answered_nothing(session.exchanges)
        return AgentCheckReport(
            url=session.redaction.url(dialect.url),
            protocol=dialect.protocol,
            chosen=session.redaction.text(dialect.chosen),
            active=active,
            started_at=rfc3339(started_at),
            duration_ms=round((perf_counter() - started) * 1000, 3),
            grade=NO_EVIDENCE
            if is_unanswered
            else grade_of(
                (finding.verdict for finding in findings), gates_passed=not _has_failed_gate(findings)
            ),
            passed=not has_failed and not is_unanswered,
            findings=findings,
            attestations=attestations(subject.agent),
            agent=subject.agent,
            card_digest=session.card_digest,
            input_modes=input_modes,
        )


def _validate_agent(subject: CheckedAgent) -> None:
    if transport_of(subject.url) != "https":
        raise Invalid(
            f"{subject.url} cannot be checked: checks support only http and https.",
            fix="Check the agent at an http or https address.",
        )
    reason = check_url(subject.url)
    if reason is not None:
        # Without the address, which may contain a password.
        raise Invalid(f"The agent's URL cannot be checked: {reason}.", fix="Correct the agent's URL.")
    findings = validate_protocol_config(subject.protocol, subject.protocol_config)
    if findings:
        words = "; ".join(f"{found.path}: {found.message}" for found in findings)
        raise Invalid(
            f"The protocol options are invalid: {words}.",
            findings=findings,
            fix="Correct the options: --config key=value, or protocol_config of the registered agent.",
        )


async def _run_check(
    session: CheckSession, subject: CheckedAgent, *, active: bool
) -> tuple[ChosenDialect, list[AgentFinding], list[CheckedInputMode]]:
    chosen = await choose_dialect(session, subject)
    if isinstance(chosen, RuleResult):
        dialect = ChosenDialect(protocol=subject.protocol, url=subject.url, config={}, chosen=chosen.seen)
        allowed = transport.allowed(session.exchanges)
        clear = (
            not_applicable("The agent rejected the credentials.")
            if allowed.judgement == "violated"
            else chosen
        )
        gates = {
            "reachable": transport.reachable(session.exchanges),
            "protocol-clear": clear,
            "allowed": allowed,
        }
        return dialect, _FindingBuilder(session, active=active).build(gates, []), []
    plan = plan_for(chosen, token_hex(4), subject.sample)
    gates = await _send(session, chosen, plan, active=active)
    findings = _FindingBuilder(session, active=active)
    card_checks = cards.planned_checks(chosen.protocol, chosen.url, subject.options)
    made = findings.build(gates, [*transport.planned_checks(plan.levels), *card_checks, *plan.checks])
    return chosen, made, [] if plan.input_modes is None else plan.input_modes(session.exchanges)


def plan_for(dialect: ChosenDialect, nonce: str, sample: CheckSample) -> CheckPlan:
    adapter = ProtocolAdapterFactory.create_adapter(dialect.protocol, dialect.config)
    found = rpc_plan(dialect.protocol, adapter, dialect.config, nonce, sample)
    if found is not None:
        return found
    if dialect.protocol == "a2a-1.0-http":
        return a2a_http_plan(adapter, nonce, sample)
    if dialect.protocol == "simple-a2a":
        return simple_plan(adapter, nonce, sample)
    raise Invalid(
        f"Protocol {dialect.protocol} has no checks.",
        fix=f"Use one of: {', '.join(PROTOCOLS)}.",
    )


async def _send(
    session: CheckSession, dialect: ChosenDialect, plan: CheckPlan, *, active: bool
) -> dict[str, RuleResult]:
    """Send the plan's requests as long as that makes sense, and return the results of the gates."""
    reads = {"simple-a2a": simple_a2a.reads_json}.get(dialect.protocol, jsonrpc_envelope.reads_json)
    asked: list[ProbeExchange] = []

    def gates(*, all_sent: bool) -> dict[str, RuleResult]:
        everything = session.exchanges
        answers = {exchange.probe.name: exchange for exchange in asked}
        results = {"reachable": transport.reachable(everything), "protocol-clear": met(dialect.chosen)}
        if asked:
            results |= {
                "allowed": transport.allowed(answers),
                "address": transport.address(plan.speaks)(answers),
                "accepts-json": reads(answers),
            }
        if all_sent and _failed_gate(results) is None:
            results["speaks-protocol"] = _speaks(dialect, plan, asked, active=active)
        return results

    probes = [probe for probe in plan.probes if active or not probe.active]
    passive = [probe for probe in probes if not probe.active]
    session.expect(len(probes))
    for probe in passive:
        if _failed_gate(gates(all_sent=False)) is not None or not session.may_continue:
            break
        asked.append(await session.send(probe, dialect.url))
    found = gates(all_sent=True)
    for probe in probes[len(passive) :]:
        if _failed_gate(found) is not None or not session.may_continue:
            break
        asked.append(await session.send(probe, dialect.url))
    if len(asked) > len(passive):
        # Only the answers to messages show what an agent speaks that answers no invalid request.
        found = gates(all_sent=True)
    last = plan.follow_up(session.exchanges)
    if last is not None and session.may_continue:
        await session.send(last, dialect.url)
    return found


def _speaks(
    dialect: ChosenDialect, plan: CheckPlan, asked: Sequence[ProbeExchange], *, active: bool
) -> RuleResult:
    posts = [
        exchange for exchange in asked if exchange.answer is not None and exchange.probe.body is not None
    ]
    # A GET is not a request of the protocol, so its response proves nothing.
    if not posts:
        advice = "" if active else " Run with --active."
        return not_applicable(f"Not enough evidence: the agent answered no request.{advice}")
    spoke = next((exchange for exchange in posts if plan.speaks(exchange)), None)
    if spoke is not None:
        return met(f"The agent speaks {dialect.protocol}.", spoke)
    first = posts[0]
    return violated(
        f"No answer has the format of {dialect.protocol}: {first.unread or first.summary()}.", first
    )


def _answered_nothing(exchanges: ProbeExchanges) -> bool:
    return not any(
        exchange.answer is not None and exchange.probe.body is not None for exchange in exchanges.values()
    )


def _failed_gate(gates: dict[str, RuleResult]) -> str | None:
    return next((name for name in GATES if name in gates and gates[name].judgement == "violated"), None)


def _has_failed_gate(findings: Sequence[AgentFinding]) -> bool:
    return any(found.id in GATES and found.verdict == "failed" for found in findings)


class _FindingBuilder:
    """Makes findings of results, with all secrets redacted."""

    def __init__(self, session: CheckSession, *, active: bool) -> None:
        self._inquiry = session
        self._active = active

    def build(self, gates: dict[str, RuleResult], questions: Sequence[PlannedCheck]) -> list[AgentFinding]:
        shut = _failed_gate(gates)
        findings = [
            self._finding(PlannedCheck(id=name, rule=transport.reachable), gates[name])
            for name in GATES
            if name in gates
        ]
        findings.extend(self._finding(question, self._result(question, shut)) for question in questions)
        return findings

    def _result(self, question: PlannedCheck, shut: str | None) -> RuleResult:
        result = question.rule(self._inquiry.exchanges)
        # Results from before the failed gate count if they apply to answers of any dialect.
        if shut is not None and not (
            CHECKS[question.id].group == "Transport" and result.judgement == "violated"
        ):
            return not_applicable(f"Not checked, because {shut} failed.")
        if result.judgement == "not_applicable" and CHECKS[question.id].active and not self._active:
            return not_applicable("Checked only with --active.")
        return result

    def _finding(self, question: PlannedCheck, result: RuleResult) -> AgentFinding:
        made = to_finding(question, result)
        return msgspec.structs.replace(
            made, seen=self._inquiry.redaction.text(made.seen)[:_MAX_SEEN_CHARACTERS]
        )
