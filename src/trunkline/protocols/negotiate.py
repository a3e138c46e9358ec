"""
Which dialect an agent speaks whose protocol is `auto`, decided from the cards it publishes.

    GET <agent's url>/.well-known/agent-card.json, then the same at the host's root, then agent.json at both
    a card                               {"url", "protocolVersion", …}  ->  jsonrpc-2.0 at the card's endpoint
    404, 405, 410, 501, no card in 200   on every path                  ->  simple-a2a at the agent's url
    a timeout, a refusal, other 5xx, …   decides nothing                ->  Unclear

Pure: the bridge fetches what `next_card_url` names and hands over what it got. A card may only name an
endpoint of the agent's own origin: any other could send our credentials elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from urllib.parse import SplitResult, urljoin, urlsplit, urlunsplit

import msgspec

from trunkline.agents.cards import JSONRPC, AgentCard, BrokenCard, Interface, NotACard, read_card

CARD_PATHS = ("/.well-known/agent-card.json", "/.well-known/agent.json")

# 501 beside the others: it is what a server says that has no GET at all, and it proves as much as a 405.
_ABSENT = frozenset({404, 405, 410, 501})
_DEFAULT_PORTS = {"http": 80, "https": 443}


class CardFetch(msgspec.Struct, frozen=True, kw_only=True):
    """What came back when one card address was asked: a status, or the reason why there is none."""

    url: str
    status: int | None = None
    body: bytes = b""
    etag: str | None = None
    failure: str | None = None


class Negotiated(msgspec.Struct, frozen=True, kw_only=True):
    protocol: str
    # Where to send the tasks.
    url: str
    evidence: str
    card_etag: str | None = None


class Unclear(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing is decided; `reason` and `fix` are for the operator (code `agent_protocol_unclear`)."""

    reason: str
    fix: str = ""


def card_urls(agent_url: str) -> list[str]:
    """Every address at which the agent's card may be, in the order in which to try them."""
    parts = urlsplit(agent_url)
    under = parts.path.rstrip("/")
    paths = [prefix + path for path in CARD_PATHS for prefix in dict.fromkeys((under, ""))]
    return [urlunsplit((parts.scheme, parts.netloc, path, "", "")) for path in paths]


def next_card_url(agent_url: str, fetches: Sequence[CardFetch]) -> str | None:
    """The next address to ask; None when a card is found, or when there is no sense in asking on."""
    if fetches and (_found(fetches[-1]) is not None or fetches[-1].status is None):
        return None
    asked = {fetch.url for fetch in fetches}
    return next((url for url in card_urls(agent_url) if url not in asked), None)


def negotiate(agent_url: str, fetches: Sequence[CardFetch]) -> Negotiated | Unclear:
    """What the fetches prove."""
    for fetch in fetches:
        card = _found(fetch)
        if card is not None:
            return _by_card(agent_url, card, fetch)
    open_questions = [question for fetch in fetches if (question := _undecided(fetch)) is not None]
    if open_questions:
        return Unclear(reason=f"Whether the agent has a card is not known: {'; '.join(open_questions)}")
    if not fetches:
        return Unclear(reason="No card address was asked")
    asked = ", ".join(f"{fetch.status} at {urlsplit(fetch.url).path}" for fetch in fetches)
    return Negotiated(protocol="simple-a2a", url=agent_url, evidence=f"The agent has no card ({asked})")


def _found(fetch: CardFetch) -> AgentCard | None:
    if fetch.status != 200:
        return None
    try:
        return read_card(fetch.body)
    except (NotACard, BrokenCard):
        return None


def _undecided(fetch: CardFetch) -> str | None:
    """Why a fetch without a card proves nothing; None when it proves that there is none."""
    path = urlsplit(fetch.url).path
    if fetch.status is None:
        return f"{fetch.failure or 'no answer'} at {path}"
    if fetch.status in _ABSENT:
        return None
    if fetch.status != 200:
        return f"HTTP {fetch.status} at {path}"
    try:
        read_card(fetch.body)
    except BrokenCard as exc:
        return f"{exc} at {path}"
    except NotACard:
        return None
    return None


def _by_card(agent_url: str, card: AgentCard, fetch: CardFetch) -> Negotiated | Unclear:
    spoken = _interface(card.interfaces)
    if spoken is None:
        offered = ", ".join(
            f"{item.transport} {item.protocol_version or ''}".strip() for item in card.interfaces
        )
        return Unclear(
            reason=f"The card at {fetch.url} offers {offered}, none of which Trunkline speaks",
            fix="Let the agent offer A2A 0.3 over JSON-RPC, or pin the protocol that it speaks.",
        )
    endpoint = _endpoint(agent_url, spoken)
    if _origin(endpoint) is None or _origin(endpoint) != _origin(agent_url):
        return Unclear(
            reason=f"The card at {fetch.url} names the endpoint {endpoint}, which is not of the same origin "
            f"as the agent's url {agent_url}; the agent's credentials are not sent there",
            fix="Register the agent at the endpoint's address, pin its protocol, or correct the card.",
        )
    version = spoken.protocol_version or "0.2 or 0.3"
    return Negotiated(
        protocol="jsonrpc-2.0",
        url=endpoint,
        evidence=f"The card at {fetch.url} offers A2A {version} over JSON-RPC",
        card_etag=fetch.etag,
    )


def _interface(interfaces: Iterable[Interface]) -> Interface | None:
    """The first address that speaks A2A 0.2 or 0.3 over JSON-RPC."""
    for item in interfaces:
        if item.transport == JSONRPC and (item.protocol_version or "0").startswith("0"):
            return item
    return None


def _endpoint(agent_url: str, spoken: Interface) -> str:
    if spoken.url is None:
        return agent_url
    try:
        return urljoin(agent_url, spoken.url)
    except ValueError:
        return spoken.url


def _origin(url: str) -> tuple[str, str, int] | None:
    """Scheme, host and port; None when the address has none that we could call."""
    try:
        parts: SplitResult = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    scheme = parts.scheme.lower()
    if scheme not in _DEFAULT_PORTS or not parts.hostname:
        return None
    return scheme, parts.hostname.rstrip("."), port or _DEFAULT_PORTS[scheme]
