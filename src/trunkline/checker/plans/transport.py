"""What is asked of every agent, whatever it speaks: whether it answers, in time, whole, and in plain JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from trunkline.agents.check_reports import Level
from trunkline.checker.exchanges import Exchange, Exchanges, Probe
from trunkline.checker.judging import Question, Rule, Ruling, broken, kept, moot
from trunkline.checker.plain_json import oddity_in

_BROKEN_OFF = ("agent_connection_lost", "agent_answer_malformed")
_ELSEWHERE = frozenset({404, 405, 410, 501})


def reachable(exchanges: Exchanges) -> Ruling:
    for exchange in exchanges.values():
        if exchange.failure is None or exchange.failure.sent:
            return kept("It was reached.", exchange)
    tried = list(exchanges.values())[-1:]
    return broken(tried[0].seen() if tried else "Nothing was asked.", *tried)


def allowed(exchanges: Exchanges) -> Ruling:
    for exchange in exchanges.values():
        if exchange.status in (401, 403):
            return broken(f"HTTP {exchange.status}", exchange)
    return kept("Nothing was refused.")


def address(speaks: Callable[[Exchange], bool]) -> Rule:
    """Judged by POSTs: what GETs are answered with is another question."""

    def rule(exchanges: Exchanges) -> Ruling:
        posts = [exchange for exchange in exchanges.values() if exchange.probe.body is not None]
        for exchange in posts:
            if 300 <= exchange.status < 400:
                target = exchange.answer.headers.get("location", "") if exchange.answer is not None else ""
                return broken(f"HTTP {exchange.status}, a redirect to {target or 'nowhere'}.", exchange)
        astray = [
            exchange for exchange in posts if exchange.status in _ELSEWHERE and not _is_apt(exchange, speaks)
        ]
        answered = [exchange for exchange in posts if exchange.answer is not None]
        if astray and len(astray) == len(answered):
            return broken(f"HTTP {astray[0].status} for a POST.", astray[0])
        return kept("It takes POST requests.", *posts[:1])

    return rule


def _is_apt(exchange: Exchange, speaks: Callable[[Exchange], bool]) -> bool:
    # A protocol's own answer may have any status.
    return bool(exchange.object) and speaks(exchange)


def questions(levels: Mapping[str, Level]) -> list[Question]:
    return [
        Question(
            id="answers-in-time", rule=_failing_with("agent_timeout", "Everything was answered in time.")
        ),
        Question(id="answers-whole", rule=_whole(lambda probe: probe.active or probe.body is None)),
        Question(
            id="refusals-whole",
            rule=_whole(lambda probe: not probe.active and probe.body is not None),
            level=levels.get("refusals-whole", "required"),
        ),
        Question(id="answer-size", rule=_failing_with("agent_answer_too_large", "No answer was too large.")),
        Question(id="answer-plain", rule=_not_compressed),
        Question(id="answers-json", rule=_says_json, level="recommended"),
        Question(id="json-plain", rule=_plain, level="recommended"),
        Question(id="survives-get", rule=_survives_get, level="recommended"),
    ]


def _failing_with(code: str, otherwise: str) -> Rule:
    def rule(exchanges: Exchanges) -> Ruling:
        for exchange in exchanges.values():
            if exchange.failure is not None and exchange.failure.code == code:
                return broken(exchange.failure.message, exchange)
        return kept(otherwise)

    return rule


def _whole(concerns: Callable[[Probe], bool]) -> Rule:
    def rule(exchanges: Exchanges) -> Ruling:
        asked = [exchange for exchange in exchanges.values() if concerns(exchange.probe)]
        for exchange in asked:
            if exchange.failure is not None and exchange.failure.code in _BROKEN_OFF:
                return broken(exchange.failure.message, exchange)
        return kept("Every answer came whole.") if asked else moot("It was not asked.")

    return rule


def _not_compressed(exchanges: Exchanges) -> Ruling:
    for exchange in exchanges.values():
        if exchange.answer is not None:
            encoding = exchange.answer.headers.get("content-encoding", "identity").strip().lower()
            if encoding not in ("", "identity"):
                return broken(f"Content-Encoding: {encoding}", exchange)
    return kept("No answer was compressed.")


def _says_json(exchanges: Exchanges) -> Ruling:
    answers = [
        exchange for exchange in exchanges.values() if exchange.is_json and exchange.probe.body is not None
    ]
    for exchange in answers:
        if "json" not in exchange.content_type.lower():
            return broken(f"Content-Type: {exchange.content_type or 'none'}", exchange)
    return (
        kept("Every JSON answer says so.", *answers[:1]) if answers else moot("There was no JSON to look at.")
    )


def _plain(exchanges: Exchanges) -> Ruling:
    for exchange in exchanges.values():
        if exchange.answer is not None and exchange.is_json:
            oddity = oddity_in(exchange.answer.body)
            if oddity is not None:
                return broken(oddity, exchange)
    return kept("Every JSON answer can be read in one way only.")


def _survives_get(exchanges: Exchanges) -> Ruling:
    exchange = exchanges.get("get")
    if exchange is None or exchange.answer is None:
        return moot("It was not asked, or not answered.")
    judged = kept if exchange.status < 500 or exchange.status == 501 else broken
    return judged(f"HTTP {exchange.status}", exchange)
