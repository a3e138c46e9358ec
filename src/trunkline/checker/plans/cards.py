"""The checks of an agent's card. `protocols.negotiate` decides at which addresses it is looked for."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from trunkline.agents import AgentOptions
from trunkline.agents.cards import AgentCard, AgentInterface, BrokenCard, NotACard, read_card
from trunkline.agents.check_reports import Level
from trunkline.agents.http_urls import origin_of
from trunkline.checker.check_plan import PlannedCheck, Rule, RuleResult, met, not_applicable, violated
from trunkline.checker.exchanges import ProbeExchange, ProbeExchanges
from trunkline.protocols.negotiate import A2A_DIALECTS, dialect_of

CARD = "card-"
_MESSAGE_SEND = {"a2a-0.2", "a2a-0.3"}
_FIELDS = (
    "name",
    "description",
    "version",
    "capabilities",
    "skills",
    "defaultInputModes",
    "defaultOutputModes",
)


class _FoundCard(msgspec.Struct, frozen=True):
    card: AgentCard
    exchange: ProbeExchange


def planned_checks(protocol: str, agent_url: str, options: AgentOptions) -> list[PlannedCheck]:
    of_a2a = protocol in A2A_DIALECTS
    level: Level = "required" if of_a2a else "recommended"
    readable = PlannedCheck(id="card-readable", rule=_readable, level=level)
    if not of_a2a:
        return [readable]
    return [
        PlannedCheck(id="card-present", rule=_present, level=level),
        readable,
        PlannedCheck(id="card-complete", rule=_complete, level="recommended"),
        PlannedCheck(id="card-protocol", rule=_offers(protocol), level="recommended"),
        PlannedCheck(id="card-endpoint", rule=_own_address(protocol, agent_url, options)),
    ]


def _fetches(exchanges: ProbeExchanges) -> list[ProbeExchange]:
    return [exchange for name, exchange in exchanges.items() if name.startswith(CARD)]


def _found(exchanges: ProbeExchanges) -> _FoundCard | None:
    for exchange in _fetches(exchanges):
        if exchange.answer is not None and exchange.status == 200:
            try:
                return _FoundCard(read_card(exchange.answer.body), exchange)
            except (NotACard, BrokenCard):
                continue
    return None


def _present(exchanges: ProbeExchanges) -> RuleResult:
    found = _found(exchanges)
    if found is not None:
        return met("The agent has a card.", found.exchange)
    if _readable(exchanges).judgement == "violated":
        return not_applicable("The card cannot be read: see card-readable.")
    asked = _fetches(exchanges)
    return (
        violated(f"{asked[0].summary()} at the usual address of a card.", asked[0])
        if asked
        else not_applicable("Not checked.")
    )


def _readable(exchanges: ProbeExchanges) -> RuleResult:
    for exchange in _fetches(exchanges):
        if exchange.answer is not None and exchange.status == 200:
            try:
                read_card(exchange.answer.body)
            except BrokenCard as exc:
                return violated(f"{exc}", exchange)
            except NotACard:
                continue
            return met("The card can be read.", exchange)
    return not_applicable("The agent has no card.")


def _complete(exchanges: ProbeExchanges) -> RuleResult:
    found = _found(exchanges)
    if found is None:
        return not_applicable("The agent has no card.")
    missing = [name for name in _FIELDS if name not in found.exchange.object]
    if missing:
        return violated(f"The card lacks: {', '.join(missing)}.", found.exchange)
    return met("The card has all required fields.", found.exchange)


def _matching_interfaces(found: _FoundCard, protocol: str) -> Sequence[AgentInterface]:
    url = found.exchange.evidence.request.url
    # `message/send` is the same in 0.2 and 0.3.
    meant = _MESSAGE_SEND if protocol in _MESSAGE_SEND else {protocol}
    return [item for item in found.card.interfaces if dialect_of(item, url) in meant]


def _offers(protocol: str) -> Rule:
    def rule(exchanges: ProbeExchanges) -> RuleResult:
        found = _found(exchanges)
        if found is None:
            return not_applicable("The agent has no card.")
        if _matching_interfaces(found, protocol):
            return met(f"The card offers {protocol}.", found.exchange)
        offered = ", ".join(
            f"{item.transport} {item.protocol_version or ''}".strip() for item in found.card.interfaces
        )
        return violated(f"The card offers {offered}.", found.exchange)

    return rule


def _own_address(protocol: str, agent_url: str, options: AgentOptions) -> Rule:
    def rule(exchanges: ProbeExchanges) -> RuleResult:
        found = _found(exchanges)
        if found is None:
            return not_applicable("The agent has no card.")
        approved = (origin_of(agent_url), *options.allow_card_origin)
        for item in _matching_interfaces(found, protocol):
            if item.url is not None and "://" in item.url and origin_of(item.url) not in approved:
                return violated(
                    f"The card names {item.url}, but the agent is reached at {agent_url}.", found.exchange
                )
        return met("The card names the agent's own address.", found.exchange)

    return rule
