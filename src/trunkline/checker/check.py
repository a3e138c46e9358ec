"""
One check of one agent: sends what the dialect's plan has, and makes a report of what comes back.

    async with HttpTransport(policy) as transport:
        report = await Checker(transport, clock).check(Subject(url="http://localhost:8080/agent"))

Without `active` nothing is sent that a correct agent takes for work. Whatever the agent does, the result is a report:
each request has a time limit, each answer a size limit (the transport's), all of them together have one too, and an
agent that hangs is left alone soon. Requests are sent one after the other, for some agents can do no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from secrets import token_hex
from time import perf_counter

import msgspec

from trunkline.agents.check_reports import AgentCheckReport, AgentFinding, CheckSample, grade_of
from trunkline.agents.transport_urls import transport_of
from trunkline.agents.urls import check_url
from trunkline.checker.attested import attestations
from trunkline.checker.choosing import Spoken, choose
from trunkline.checker.exchanges import Exchange
from trunkline.checker.inquiry import Inquiry, OnProgress
from trunkline.checker.judging import Plan, Question, Ruling, broken, finding, kept, moot
from trunkline.checker.plans import cards, envelope, simple, transport
from trunkline.checker.plans.rest import rest_plan
from trunkline.checker.plans.rpc_dialects import RPC_PROTOCOLS, rpc_plan
from trunkline.checker.plans.simple import simple_plan
from trunkline.checker.subject import Limits, Subject
from trunkline.checker.table import CHECKS
from trunkline.clock import Clock, rfc3339
from trunkline.errors import Invalid
from trunkline.protocols import ProtocolAdapterFactory, validate_protocol_config
from trunkline.transports.base import Transport

# Those that have checks.
PROTOCOLS = ("simple-a2a", *RPC_PROTOCOLS, "a2a-1.0-http")
_MOST_SEEN_CHARACTERS = 500
# What is looked at first, in this order: when one of them is broken there is no sense in the rest.
_GATES = ("reachable", "protocol-clear", "allowed", "address", "accepts-json", "speaks-protocol")


class Checker:
    """Checks agents; keeps nothing of them."""

    def __init__(self, transport: Transport, clock: Clock, limits: Limits | None = None) -> None:
        self._transport = transport
        self._clock = clock
        self._limits = limits or Limits()

    async def check(
        self, subject: Subject, *, active: bool = False, on_progress: OnProgress | None = None
    ) -> AgentCheckReport:
        """
        A report, whatever the agent does.

        Raises `Invalid` when the subject cannot be checked at all: an address that is none, or not of HTTP, or a
        protocol that is not known.
        """
        _check_subject(subject)
        started_at, started = self._clock.now(), perf_counter()
        inquiry = Inquiry(self._transport, self._limits, subject, on_progress)
        spoken, findings = await _inquire(inquiry, subject, active=active)
        return AgentCheckReport(
            url=inquiry.redaction.url(spoken.url),
            protocol=spoken.protocol,
            chosen=inquiry.redaction.text(spoken.chosen),
            active=active,
            started_at=rfc3339(started_at),
            duration_ms=round((perf_counter() - started) * 1000, 3),
            grade=grade_of((found.verdict for found in findings), heard=not _is_shut(findings)),
            passed=not any(found.verdict == "failed" for found in findings),
            findings=findings,
            attestations=attestations(subject.agent),
            agent=subject.agent,
            card_digest=inquiry.card_digest,
        )


def _check_subject(subject: Subject) -> None:
    if transport_of(subject.url) != "https":
        raise Invalid(
            f"{subject.url} cannot be checked: only agents that are called over http or https can.",
            fix="Check the agent where it is served over HTTP.",
        )
    reason = check_url(subject.url)
    if reason is not None:
        # Without the address, which may hold a password.
        raise Invalid(f"The agent's url cannot be checked: {reason}.", fix="Correct the address.")
    findings = validate_protocol_config(subject.protocol, subject.protocol_config)
    if findings:
        words = "; ".join(f"{found.path}: {found.message}" for found in findings)
        raise Invalid(f"The protocol cannot be set so: {words}.", findings=findings)


async def _inquire(inquiry: Inquiry, subject: Subject, *, active: bool) -> tuple[Spoken, list[AgentFinding]]:
    chosen = await choose(inquiry, subject)
    if isinstance(chosen, Ruling):
        spoken = Spoken(protocol=subject.protocol, url=subject.url, config={}, chosen=chosen.seen)
        allowed = transport.allowed(inquiry.exchanges)
        clear = moot("Nobody is let in who could look.") if allowed.judgement == "broken" else chosen
        gates = {
            "reachable": transport.reachable(inquiry.exchanges),
            "protocol-clear": clear,
            "allowed": allowed,
        }
        return spoken, _Findings(inquiry, active=active).made(gates, [])
    plan = plan_for(chosen, token_hex(4), subject.sample)
    gates = await _send(inquiry, chosen, plan, active=active)
    findings = _Findings(inquiry, active=active)
    beside = cards.questions(chosen.protocol, chosen.url, subject.options)
    return chosen, findings.made(gates, [*transport.questions(plan.levels), *beside, *plan.questions])


def plan_for(spoken: Spoken, nonce: str, sample: CheckSample) -> Plan:
    adapter = ProtocolAdapterFactory.create_adapter(spoken.protocol, spoken.config)
    found = rpc_plan(spoken.protocol, adapter, spoken.config, nonce, sample)
    if found is not None:
        return found
    if spoken.protocol == "a2a-1.0-http":
        return rest_plan(adapter, nonce, sample)
    if spoken.protocol == "simple-a2a":
        return simple_plan(adapter, nonce, sample)
    raise Invalid(
        f"There are no checks for the protocol {spoken.protocol}.",
        fix=f"Name one that has some: {', '.join(PROTOCOLS)}.",
    )


async def _send(inquiry: Inquiry, spoken: Spoken, plan: Plan, *, active: bool) -> dict[str, Ruling]:
    """Sends the plan's requests as long as that makes sense; what the gates say."""
    reads = {"simple-a2a": simple.reads_json}.get(spoken.protocol, envelope.reads_json)
    asked: list[Exchange] = []

    def gates(*, all_sent: bool) -> dict[str, Ruling]:
        everything = inquiry.exchanges
        answers = {exchange.probe.name: exchange for exchange in asked}
        rulings = {"reachable": transport.reachable(everything), "protocol-clear": kept(spoken.chosen)}
        if asked:
            rulings |= {
                "allowed": transport.allowed(answers),
                "address": transport.address(plan.speaks)(answers),
                "accepts-json": reads(answers),
            }
        if all_sent and _shut(rulings) is None:
            rulings["speaks-protocol"] = _speaks(spoken, plan, asked)
        return rulings

    probes = [probe for probe in plan.probes if active or not probe.active]
    passive = [probe for probe in probes if not probe.active]
    inquiry.expect(len(probes))
    for probe in passive:
        if _shut(gates(all_sent=False)) is not None or not inquiry.goes_on:
            break
        asked.append(await inquiry.send(probe, spoken.url))
    found = gates(all_sent=True)
    for probe in probes[len(passive) :]:
        if _shut(found) is not None or not inquiry.goes_on:
            break
        asked.append(await inquiry.send(probe, spoken.url))
    last = plan.last(inquiry.exchanges)
    if last is not None and inquiry.goes_on:
        await inquiry.send(last, spoken.url)
    return found


def _speaks(spoken: Spoken, plan: Plan, asked: Sequence[Exchange]) -> Ruling:
    answered = [exchange for exchange in asked if exchange.answer is not None]
    if not answered:
        return moot("Nothing was answered.")
    posts = [exchange for exchange in answered if exchange.probe.body is not None]
    spoke = next((exchange for exchange in posts if plan.speaks(exchange)), None)
    if spoke is not None:
        return kept(f"It speaks {spoken.protocol}.", spoke)
    first = answered[0]
    return broken(f"No answer is one of {spoken.protocol}: {first.unread or first.seen()}.", first)


def _shut(gates: dict[str, Ruling]) -> str | None:
    return next((name for name in _GATES if name in gates and gates[name].judgement == "broken"), None)


def _is_shut(findings: Sequence[AgentFinding]) -> bool:
    return any(found.id in _GATES and found.verdict == "failed" for found in findings)


class _Findings:
    """Makes findings of rulings, with nothing in them that must not be told."""

    def __init__(self, inquiry: Inquiry, *, active: bool) -> None:
        self._inquiry = inquiry
        self._active = active

    def made(self, gates: dict[str, Ruling], questions: Sequence[Question]) -> list[AgentFinding]:
        shut = _shut(gates)
        findings = [
            self._finding(Question(id=name, rule=transport.reachable), gates[name])
            for name in _GATES
            if name in gates
        ]
        for question in questions:
            if question.when_clean and any(found.verdict == "failed" for found in findings):
                ruling = moot("Other checks have failed already.")
            else:
                ruling = self._ruling(question, shut)
            findings.append(self._finding(question, ruling))
        return findings

    def _ruling(self, question: Question, shut: str | None) -> Ruling:
        ruling = question.rule(self._inquiry.exchanges)
        # What was seen before the gate fell shut counts, where it is about any answer and not about this dialect.
        if shut is not None and not (
            CHECKS[question.id].group == "Transport" and ruling.judgement == "broken"
        ):
            return moot(f"Not asked, since {shut} failed.")
        if ruling.judgement == "moot" and CHECKS[question.id].active and not self._active:
            return moot("It is asked with --active only.")
        return ruling

    def _finding(self, question: Question, ruling: Ruling) -> AgentFinding:
        made = finding(question, ruling)
        return msgspec.structs.replace(
            made, seen=self._inquiry.redaction.text(made.seen)[:_MOST_SEEN_CHARACTERS]
        )
