"""
The dialect in which an agent is checked: the requested one, otherwise what its card says (`protocols.negotiate`).

An agent without a card speaks JSON-RPC if it answers a call of an unknown method in that format.
"""

from __future__ import annotations

import msgspec

from trunkline.agents import AUTO
from trunkline.checker.check_plan import RuleResult, not_applicable, violated
from trunkline.checker.exchanges import ProbeRequest
from trunkline.checker.plans import cards, jsonrpc_envelope
from trunkline.checker.session import CARD_HEADERS, CheckedAgent, CheckSession
from trunkline.jsontypes import JsonObject
from trunkline.protocols import CardFetch, NegotiatedDialect, UnclearDialect, negotiate, next_card_url
from trunkline.protocols.negotiate import WITHOUT_CARD


class ChosenDialect(msgspec.Struct, frozen=True, kw_only=True):
    """The dialect that is checked, and why it was chosen."""

    protocol: str
    url: str
    config: JsonObject
    chosen: str


async def choose_dialect(session: CheckSession, subject: CheckedAgent) -> ChosenDialect | RuleResult:
    """The dialect, or why it cannot be determined."""
    fetches = await _fetch_cards(session, subject.url)
    url = subject.options.endpoint_override or subject.url
    if subject.protocol != AUTO:
        return ChosenDialect(
            protocol=subject.protocol, url=url, config=subject.protocol_config, chosen="It was requested."
        )
    if not session.reached:
        return not_applicable("The agent could not be reached.")
    match negotiate(subject.url, fetches, subject.options):
        case UnclearDialect(reason=reason):
            return violated(reason, *session.exchanges.values())
        case NegotiatedDialect(protocol=protocol, evidence=evidence) if protocol == WITHOUT_CARD:
            return await _guess(session, subject, url, evidence)
        case NegotiatedDialect() as found:
            config = subject.protocol_config if found.tenant is None else {"tenant": found.tenant}
            return ChosenDialect(
                protocol=found.protocol,
                url=found.url,
                config={**config, **subject.protocol_config},
                chosen=found.evidence,
            )


async def _guess(session: CheckSession, subject: CheckedAgent, url: str, evidence: str) -> ChosenDialect:
    """Guess the dialect of an agent without a card from its answer to an unknown JSON-RPC method."""
    body = b'{"jsonrpc": "2.0", "id": "check", "method": "trunkline/no-such-method", "params": {}}'
    asked = await session.send(ProbeRequest(name="guess", body=body), url)
    config = subject.protocol_config
    if jsonrpc_envelope.is_rpc(asked):
        because = f"{evidence}, and the agent answers JSON-RPC."
        return ChosenDialect(protocol="jsonrpc-2.0", url=url, config=config, chosen=because)
    return ChosenDialect(protocol=WITHOUT_CARD, url=url, config=config, chosen=f"{evidence}.")


async def _fetch_cards(session: CheckSession, agent_url: str) -> list[CardFetch]:
    fetches: list[CardFetch] = []
    while (url := next_card_url(agent_url, fetches)) is not None and session.may_continue:
        probe = ProbeRequest(name=f"{cards.CARD}{len(fetches) + 1}", body=None, headers=CARD_HEADERS)
        asked = await session.send(probe, url)
        answer, failure = asked.answer, asked.failure
        fetches.append(
            CardFetch(url=url, failure=None if failure is None else failure.message)
            if answer is None
            else CardFetch(url=url, status=answer.status, body=answer.body)
        )
        if next_card_url(agent_url, fetches) is None and answer is not None and answer.status == 200:
            session.card_digest = fetches[-1].digest
    return fetches
