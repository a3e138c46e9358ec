"""What is asked of every agent, whatever it speaks: whether it answers, in time, whole, and in plain JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from trunkline.agents.check_reports import Level
from trunkline.checker.check_plan import PlannedCheck, Rule, RuleResult, met, not_applicable, violated
from trunkline.checker.exchanges import ProbeExchange, ProbeExchanges, ProbeRequest

_BROKEN_OFF = ("agent_connection_lost", "agent_answer_malformed")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_ELSEWHERE = frozenset({404, 405, 410, 501})


def reachable(exchanges: ProbeExchanges) -> RuleResult:
    for exchange in exchanges.values():
        if exchange.failure is None or exchange.failure.sent:
            return met("It was reached.", exchange)
    tried = list(exchanges.values())[-1:]
    return violated(tried[0].summary() if tried else "Nothing was asked.", *tried)


def allowed(exchanges: ProbeExchanges) -> RuleResult:
    for exchange in exchanges.values():
        if exchange.status in (401, 403):
            return violated(f"HTTP {exchange.status}", exchange)
    return met("Nothing was refused.")


def address(speaks: Callable[[ProbeExchange], bool]) -> Rule:
    """Judged by POSTs: what GETs are answered with is another question."""

    def rule(exchanges: ProbeExchanges) -> RuleResult:
        posts = [exchange for exchange in exchanges.values() if exchange.probe.body is not None]
        for exchange in posts:
            if 300 <= exchange.status < 400:
                target = exchange.answer.headers.get("location", "") if exchange.answer is not None else ""
                return violated(f"HTTP {exchange.status}, a redirect to {target or 'nowhere'}.", exchange)
        astray = [
            exchange for exchange in posts if exchange.status in _ELSEWHERE and not _is_apt(exchange, speaks)
        ]
        answered = [exchange for exchange in posts if exchange.answer is not None]
        if astray and len(astray) == len(answered):
            return violated(f"HTTP {astray[0].status} for a POST.", astray[0])
        return met("It takes POST requests.", *posts[:1])

    return rule


def _is_apt(exchange: ProbeExchange, speaks: Callable[[ProbeExchange], bool]) -> bool:
    # A protocol's own answer may have any status.
    return bool(exchange.object) and speaks(exchange)


def planned_checks(levels: Mapping[str, Level]) -> list[PlannedCheck]:
    return [
        PlannedCheck(
            id="answers-in-time", rule=_failing_with("agent_timeout", "Everything was answered in time.")
        ),
        PlannedCheck(id="answers-whole", rule=_whole(lambda probe: probe.active or probe.body is None)),
        PlannedCheck(
            id="refusals-whole",
            rule=_whole(lambda probe: not probe.active and probe.body is not None),
            level=levels.get("refusals-whole", "required"),
        ),
        PlannedCheck(
            id="answer-size", rule=_failing_with("agent_answer_too_large", "No answer was too large.")
        ),
        PlannedCheck(id="answer-plain", rule=_not_compressed),
        PlannedCheck(id="answers-json", rule=_says_json, level="recommended"),
        PlannedCheck(id="json-plain", rule=_plain, level="recommended"),
        PlannedCheck(id="survives-get", rule=_survives_get, level="recommended"),
    ]


def _failing_with(code: str, otherwise: str) -> Rule:
    def rule(exchanges: ProbeExchanges) -> RuleResult:
        for exchange in exchanges.values():
            if exchange.failure is not None and exchange.failure.code == code:
                return violated(exchange.failure.message, exchange)
        return met(otherwise)

    return rule


def _whole(concerns: Callable[[ProbeRequest], bool]) -> Rule:
    def rule(exchanges: ProbeExchanges) -> RuleResult:
        asked = [exchange for exchange in exchanges.values() if concerns(exchange.probe)]
        for exchange in asked:
            if exchange.failure is not None and exchange.failure.code in _BROKEN_OFF:
                return violated(exchange.failure.message, exchange)
        return met("Every answer came whole.") if asked else not_applicable("It was not asked.")

    return rule


def _not_compressed(exchanges: ProbeExchanges) -> RuleResult:
    for exchange in exchanges.values():
        if exchange.answer is not None:
            encoding = exchange.answer.headers.get("content-encoding", "identity").strip().lower()
            if encoding not in ("", "identity"):
                return violated(f"Content-Encoding: {encoding}", exchange)
    return met("No answer was compressed.")


def _says_json(exchanges: ProbeExchanges) -> RuleResult:
    answers = [
        exchange for exchange in exchanges.values() if exchange.is_json and exchange.probe.body is not None
    ]
    for exchange in answers:
        if "json" not in exchange.content_type.lower():
            return violated(f"Content-Type: {exchange.content_type or 'none'}", exchange)
    return (
        met("Every JSON answer says so.", *answers[:1])
        if answers
        else not_applicable("There was no JSON to look at.")
    )


def _plain(exchanges: ProbeExchanges) -> RuleResult:
    for exchange in exchanges.values():
        if exchange.answer is not None and exchange.is_json:
            ambiguity = _ambiguity_in(exchange.answer.body)
            if ambiguity is not None:
                return violated(ambiguity, exchange)
    return met("Every JSON answer can be read in one way only.")


def _survives_get(exchanges: ProbeExchanges) -> RuleResult:
    exchange = exchanges.get("get")
    if exchange is None or exchange.answer is None:
        return not_applicable("It was not asked, or not answered.")
    judged = met if exchange.status < 500 or exchange.status == 501 else violated
    return judged(f"HTTP {exchange.status}", exchange)


def _ambiguity_in(body: bytes) -> str | None:
    """What readers of JSON do not agree about: a byte order mark, or a key that an object has twice."""
    if body.startswith(_BYTE_ORDER_MARK):
        return "The answer begins with a byte order mark."
    twice: list[str] = []

    def note(pairs: list[tuple[str, object]]) -> None:
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                twice.append(name)
            seen.add(name)

    # Numbers as they are: one with thousands of digits is no whole number for Python.
    json.loads(body, object_pairs_hook=note, parse_int=str, parse_float=str)
    return f"An object of the answer has the key {twice[0]!r} twice." if twice else None
