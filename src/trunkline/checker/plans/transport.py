"""The checks for agents of every dialect: whether they answer, in time, completely, and in plain JSON."""

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
            return met("The agent was reached.", exchange)
    tried = list(exchanges.values())[-1:]
    return violated(tried[0].summary() if tried else "No request was sent.", *tried)


def allowed(exchanges: ProbeExchanges) -> RuleResult:
    for exchange in exchanges.values():
        if exchange.status in (401, 403):
            return violated(f"HTTP {exchange.status}", exchange)
    return met("No request was rejected.")


def address(speaks: Callable[[ProbeExchange], bool]) -> Rule:
    """Judged by POST requests only; answers to GET requests do not count."""

    def rule(exchanges: ProbeExchanges) -> RuleResult:
        posts = [exchange for exchange in exchanges.values() if exchange.probe.body is not None]
        for exchange in posts:
            if 300 <= exchange.status < 400:
                target = exchange.answer.headers.get("location", "") if exchange.answer is not None else ""
                return violated(f"HTTP {exchange.status}, a redirect to {target or 'nowhere'}.", exchange)
        misdirected = [
            exchange for exchange in posts if exchange.status in _ELSEWHERE and not _is_apt(exchange, speaks)
        ]
        answered = [exchange for exchange in posts if exchange.answer is not None]
        if misdirected and len(misdirected) == len(answered):
            return violated(f"HTTP {misdirected[0].status} for a POST.", misdirected[0])
        return met("The address accepts POST requests.", *posts[:1])

    return rule


def _is_apt(exchange: ProbeExchange, speaks: Callable[[ProbeExchange], bool]) -> bool:
    # An answer in the format of the protocol may have any status.
    return bool(exchange.object) and speaks(exchange)


def planned_checks(levels: Mapping[str, Level]) -> list[PlannedCheck]:
    return [
        PlannedCheck(
            id="answers-in-time", rule=_failing_with("agent_timeout", "Every request was answered in time.")
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
        return met("Every answer was complete.") if asked else not_applicable("Not checked.")

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
        met("Every JSON answer has Content-Type: application/json.", *answers[:1])
        if answers
        else not_applicable("No answer was JSON.")
    )


def _plain(exchanges: ProbeExchanges) -> RuleResult:
    for exchange in exchanges.values():
        if exchange.answer is not None and exchange.is_json:
            ambiguity = _ambiguity_in(exchange.answer.body)
            if ambiguity is not None:
                return violated(ambiguity, exchange)
    return met("The JSON of every answer is unambiguous.")


def _survives_get(exchanges: ProbeExchanges) -> RuleResult:
    exchange = exchanges.get("get")
    if exchange is None or exchange.answer is None:
        return not_applicable("Not checked, or not answered.")
    judged = met if exchange.status < 500 or exchange.status == 501 else violated
    return judged(f"HTTP {exchange.status}", exchange)


def _ambiguity_in(body: bytes) -> str | None:
    """What JSON parsers handle differently: a byte order mark, or a duplicate key in an object."""
    if body.startswith(_BYTE_ORDER_MARK):
        return "The answer begins with a byte order mark."
    duplicates: list[str] = []

    def note(pairs: list[tuple[str, object]]) -> None:
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                duplicates.append(name)
            seen.add(name)

    # Numbers stay strings: Python does not parse integers with thousands of digits.
    json.loads(body, object_pairs_hook=note, parse_int=str, parse_float=str)
    return f"The answer has an object with the duplicate key {duplicates[0]!r}." if duplicates else None
