"""
Which dialect an agent speaks whose protocol is `auto`, decided from the cards it publishes.

    GET <agent's url>/.well-known/agent-card.json, then the same at the host's root, then agent.json at both
    a card                               what it offers that Trunkline likes best, at the card's endpoint:
                                         A2A 1.0, 0.3, 0.2 over JSON-RPC, then 1.0 over HTTP+JSON;
                                         of a card of python-a2a what that speaks in fact
    404, 405, 410, 501, no card in 200   on every path                  ->  simple-a2a at the agent's url
    a timeout, a refusal, other 5xx, …   decides nothing                ->  UnclearDialect

Of several addresses for the same dialect the card's first counts. A card may only name endpoints of the agent's own
origin, or of one that the operator has approved: any other could send our credentials elsewhere.

Pure: the bridge fetches what `next_card_url` names and hands over what it got.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from urllib.parse import urljoin, urlsplit, urlunsplit

import msgspec

from trunkline.agents import NO_OPTIONS, AgentOptions
from trunkline.agents.cards import (
    HTTP_JSON,
    JSONRPC,
    JSONRPC_PATHS,
    AgentCard,
    AgentInterface,
    BrokenCard,
    CardDetails,
    NotACard,
    read_card,
)
from trunkline.agents.http_urls import check_url, origin_of, parse_url
from trunkline.protocols.factory import ProtocolAdapterFactory

CARD_PATHS = ("/.well-known/agent-card.json", "/.well-known/agent.json")
# What a card can offer, the best first. An agent with a path for each method says more of itself than it takes.
A2A_DIALECTS = ("a2a-0.1-paths", "a2a-1.0", "a2a-0.3", "a2a-0.2", "a2a-1.0-http", "a2a-0.1")
WITHOUT_CARD = "simple-a2a"

# 501 as well: servers without any GET support answer it, and it proves as much as a 405.
_ABSENT = frozenset({404, 405, 410, 501})
# What else may be spoken at an address that has no card, or at one that takes JSON-RPC but not what its card says.
# `message/send` of 0.2 and 0.3 is one and the same.
_GUESSES_WITHOUT_CARD = ("jsonrpc-2.0", "a2a-1.0")
_GUESSES_OVER_JSONRPC = ("a2a-1.0", "a2a-0.3", "a2a-0.1")
_TRANSPORT_NAMES = {
    JSONRPC: "JSON-RPC",
    JSONRPC_PATHS: "JSON-RPC with a separate URL for each method, as in python-a2a",
}
# A card may name the address of one operation instead of the endpoint. With JSON-RPC, the method says which it is.
_OPERATIONS = ("/message:send", "/message:stream", "/message/send", "/message/stream")
_LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "0.0.0.0", "::1", "::"})  # noqa: S104 - to recognise it


class CardFetch(msgspec.Struct, frozen=True, kw_only=True):
    """What came back when one card address was asked: a status, or the reason why there is none."""

    url: str
    status: int | None = None
    body: bytes = b""
    etag: str | None = None
    failure: str | None = None

    @property
    def digest(self) -> str:
        return sha256(self.body).hexdigest()


class ProtocolOffer(msgspec.Struct, frozen=True, kw_only=True):
    """One way to speak to an agent."""

    protocol: str
    # Where to send the tasks.
    url: str
    tenant: str | None = None
    # Why one could think so, as the end of a sentence.
    because: str
    # Whether the message has to be sent as a stream there, whatever the card says about streams.
    streams: bool = False


class NegotiatedDialect(msgspec.Struct, frozen=True, kw_only=True):
    protocol: str
    # Where to send the tasks.
    url: str
    evidence: str
    card_url: str | None = None
    card_etag: str | None = None
    card_digest: str | None = None
    streams: bool = False
    pushes: bool = False
    tenant: str | None = None
    skills: tuple[str, ...] = ()
    details: CardDetails | None = None
    # What to try next, in this order, each after proof that the agent did not take the work in the one before.
    others: tuple[ProtocolOffer, ...] = ()


class UnclearDialect(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing is decided; `reason` and `fix` are for the operator (code `agent_protocol_unclear`)."""

    reason: str
    fix: str = ""


def card_urls(agent_url: str) -> list[str]:
    """Every address at which the agent's card may be, in the order in which to try them."""
    base_url = _without_card_path(agent_url)
    parts = urlsplit(base_url)
    under = parts.path.rstrip("/")
    paths = [prefix + path for path in CARD_PATHS for prefix in dict.fromkeys((under, ""))]
    # A card's own address may have a query that the card is not given without: `?assistant_id=…`.
    given = [agent_url] if base_url != agent_url and "?" in agent_url else []
    usual = [urlunsplit((parts.scheme, parts.netloc, path, "", "")) for path in paths]
    return list(dict.fromkeys([*given, *usual]))


def _without_card_path(agent_url: str) -> str:
    """The agent's URL, even if the URL of its card was registered."""
    for path in CARD_PATHS:
        if urlsplit(agent_url).path.endswith(path):
            return agent_url.replace(path, "", 1)
    return agent_url


def next_card_url(agent_url: str, fetches: Sequence[CardFetch]) -> str | None:
    """The next URL to request; None when a card is found, or when more requests would be useless."""
    if fetches and (_card_in(fetches[-1]) is not None or fetches[-1].status is None):
        return None
    asked = {fetch.url for fetch in fetches}
    return next((url for url in card_urls(agent_url) if url not in asked), None)


def negotiate(
    agent_url: str, fetches: Sequence[CardFetch], options: AgentOptions = NO_OPTIONS
) -> NegotiatedDialect | UnclearDialect:
    """What the fetches prove."""
    agent_url = _without_card_path(agent_url)
    for fetch in fetches:
        card = _card_in(fetch)
        if card is not None:
            return _negotiate_by_card(agent_url, card, fetch, options)
    open_question = _undecided_result(fetches)
    if open_question is not None:
        return open_question
    url = options.endpoint_override or agent_url
    absent = f"The agent has no card ({_describe_absence(fetches)})"
    guesses = (
        ProtocolOffer(protocol=name, url=url, because="it has no card") for name in _GUESSES_WITHOUT_CARD
    )
    return NegotiatedDialect(protocol=WITHOUT_CARD, url=url, evidence=absent, others=_supported(guesses))


def negotiate_pinned(
    protocol: str, agent_url: str, fetches: Sequence[CardFetch], options: AgentOptions = NO_OPTIONS
) -> NegotiatedDialect | UnclearDialect:
    """
    What the fetches say about an agent whose dialect of A2A the operator has pinned.

    The agent's url is the endpoint then; the card says only what the agent can do.
    """
    pinned = NegotiatedDialect(
        protocol=protocol, url=options.endpoint_override or agent_url, evidence="Pinned by the operator."
    )
    for fetch in fetches:
        card = _card_in(fetch)
        if card is not None:
            spoken = [item for item in card.interfaces if dialect_of(item, fetch.url) == protocol]
            known = msgspec.structs.replace(pinned, tenant=spoken[0].tenant if spoken else None)
            return _with_card(known, card, fetch)
    open_question = _undecided_result(fetches)
    if open_question is not None:
        return open_question
    evidence = f"{pinned.evidence} The agent has no card ({_describe_absence(fetches)})"
    return msgspec.structs.replace(pinned, evidence=evidence)


def describe_fetch(fetch: CardFetch) -> str:
    """What came of a fetch, in words."""
    if fetch.status is None:
        return fetch.failure or "no answer"
    if fetch.status != 200:
        return f"HTTP {fetch.status}"
    try:
        read_card(fetch.body)
    except (NotACard, BrokenCard) as exc:
        return f"HTTP 200, no card: {exc}"
    return "HTTP 200, a card"


def _undecided_result(fetches: Sequence[CardFetch]) -> UnclearDialect | None:
    undecided = [question for fetch in fetches if (question := _why_undecided(fetch)) is not None]
    if undecided:
        return UnclearDialect(
            reason=f"Could not determine whether the agent has a card: {'; '.join(undecided)}"
        )
    return None if fetches else UnclearDialect(reason="No card URL was requested")


def _describe_absence(fetches: Sequence[CardFetch]) -> str:
    return ", ".join(f"{fetch.status} at {urlsplit(fetch.url).path}" for fetch in fetches)


def _card_in(fetch: CardFetch) -> AgentCard | None:
    if fetch.status != 200:
        return None
    try:
        return read_card(fetch.body)
    except (NotACard, BrokenCard):
        return None


def _why_undecided(fetch: CardFetch) -> str | None:
    """Why a fetch without a card proves nothing; None when it proves that there is none."""
    path = urlsplit(fetch.url).path
    if fetch.status is None:
        return f"{(fetch.failure or 'no answer').removesuffix('.')} at {path}"
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


def _negotiate_by_card(
    agent_url: str, card: AgentCard, fetch: CardFetch, options: AgentOptions
) -> NegotiatedDialect | UnclearDialect:
    offers = _offers(agent_url, card, fetch, options)
    if not offers:
        return _unsupported_card(card, fetch)
    usable = [offer for offer in offers if _is_approved(offer.url, agent_url, options)]
    if not usable:
        return _unapproved_endpoint(agent_url, offers[0].url, fetch)
    best, *others = _distinct([*usable, *_guesses(usable, agent_url, options)])
    return _with_card(
        NegotiatedDialect(
            protocol=best.protocol,
            url=best.url,
            tenant=best.tenant,
            evidence=f"The card at {fetch.url} {best.because}",
            others=tuple(others),
        ),
        card,
        fetch,
    )


def _with_card(found: NegotiatedDialect, card: AgentCard, fetch: CardFetch) -> NegotiatedDialect:
    return msgspec.structs.replace(
        found,
        card_url=fetch.url,
        card_etag=fetch.etag,
        card_digest=fetch.digest,
        streams=card.streams,
        pushes=card.pushes,
        skills=card.skills,
        details=card.details,
    )


def _offers(
    agent_url: str, card: AgentCard, fetch: CardFetch, options: AgentOptions
) -> tuple[ProtocolOffer, ...]:
    """What the card offers that Trunkline speaks, the best first."""
    offers: list[ProtocolOffer] = []
    for item in card.interfaces:
        protocol = dialect_of(item, fetch.url)
        if protocol is not None:
            over = _TRANSPORT_NAMES.get(item.transport, item.transport)
            offers += [
                ProtocolOffer(
                    protocol=protocol,
                    url=url,
                    tenant=item.tenant,
                    because=f"offers A2A {item.protocol_version or '0.2 or 0.3'} over {over}",
                )
                for url in _endpoints(agent_url, item, options)
            ]
    return _supported(sorted(offers, key=lambda offer: A2A_DIALECTS.index(offer.protocol)))


def _guesses(
    usable: Sequence[ProtocolOffer], agent_url: str, options: AgentOptions
) -> Iterable[ProtocolOffer]:
    """Where else, and how else: a card may be wrong about its path, its last slash, or its version."""
    if options.endpoint_override is None:
        for offer in usable:
            yield msgspec.structs.replace(offer, url=agent_url)
        yield from _siblings(usable[0])
        yield msgspec.structs.replace(usable[0], url=_with_other_slash(usable[0].url))
    endpoint = next((offer for offer in usable if offer.protocol in _GUESSES_OVER_JSONRPC), None)
    if endpoint is not None:
        spoken = {offer.protocol for offer in usable}
        guesses = (name for name in _GUESSES_OVER_JSONRPC if name not in spoken)
        because = "accepts JSON-RPC, but not in the form that its card declares"
        yield from _supported(
            ProtocolOffer(protocol=name, url=endpoint.url, because=because) for name in guesses
        )


def _siblings(offer: ProtocolOffer) -> Iterable[ProtocolOffer]:
    """Where else a message may be taken if the card names the address of one operation."""
    endpoint, mark, query = offer.url.partition("?")
    operation = next((name for name in _OPERATIONS if endpoint.rstrip("/").endswith(name)), None)
    if operation is None:
        return
    because = f"its card names the address of one operation ({operation})"
    base = endpoint.rstrip("/").removesuffix(operation)
    yield msgspec.structs.replace(offer, url=f"{base}{mark}{query}", because=because)
    if operation.endswith("stream"):
        yield msgspec.structs.replace(offer, because=because, streams=True)


def _supported(offers: Iterable[ProtocolOffer]) -> tuple[ProtocolOffer, ...]:
    supported = ProtocolAdapterFactory.supported_protocols()
    return tuple(offer for offer in offers if offer.protocol in supported)


def _distinct(offers: Iterable[ProtocolOffer]) -> list[ProtocolOffer]:
    distinct: dict[tuple[str, str, str | None, bool], ProtocolOffer] = {}
    for offer in offers:
        distinct.setdefault((offer.protocol, offer.url, offer.tenant, offer.streams), offer)
    return list(distinct.values())


def dialect_of(item: AgentInterface, card_url: str) -> str | None:
    """The name of what is spoken there; None: nothing that Trunkline knows."""
    version = None if item.protocol_version is None else item.protocol_version.lower().removeprefix("v")
    if item.transport == HTTP_JSON:
        return "a2a-1.0-http" if version is not None and version.split(".")[0] == "1" else None
    if item.transport == JSONRPC_PATHS:
        return "a2a-0.1-paths"
    if item.transport != JSONRPC:
        return None
    if version is None:
        return "a2a-0.2" if card_url.endswith(CARD_PATHS[1]) else "a2a-0.3"
    match version.split(".")[:2]:
        case ["1", *_]:
            return "a2a-1.0"
        case ["0", "1"]:
            return "a2a-0.1"
        case ["0", "2"]:
            return "a2a-0.2"
        case ["0", *_]:
            return "a2a-0.3"
        case _:
            return None


def _endpoints(agent_url: str, item: AgentInterface, options: AgentOptions) -> list[str]:
    """
    Where to send what this interface takes.

    An address that differs from the agent's own by its last slash alone may be written wrongly in either: the one
    that the operator has given comes first.
    """
    if options.endpoint_override is not None:
        return [options.endpoint_override]
    if item.url is None:
        return [agent_url]
    try:
        endpoint = urljoin(agent_url, item.url)
        same = _without_slash(endpoint) == _without_slash(agent_url)
    except ValueError:
        return [item.url]
    return list(dict.fromkeys((agent_url, endpoint))) if same else [endpoint]


def _with_other_slash(url: str) -> str:
    endpoint, mark, query = url.partition("?")
    return (endpoint.removesuffix("/") if endpoint.endswith("/") else f"{endpoint}/") + mark + query


def _without_slash(url: str) -> tuple[str, str, int, str]:
    parts = parse_url(url)
    return parts.scheme, parts.host, parts.port, parts.target.rstrip("/")


def _is_approved(url: str, agent_url: str, options: AgentOptions) -> bool:
    if url == options.endpoint_override:
        return True
    origin = origin_of(url)
    return origin is not None and origin in (origin_of(agent_url), *options.allow_card_origin)


def _unsupported_card(card: AgentCard, fetch: CardFetch) -> UnclearDialect:
    offered = ", ".join(
        dict.fromkeys(f"{item.transport} {item.protocol_version or ''}".strip() for item in card.interfaces)
    )
    return UnclearDialect(
        reason=f"The card at {fetch.url} offers {offered}, none of which Trunkline supports",
        fix="Change the agent to offer A2A over JSON-RPC, or A2A 1.0 over HTTP+JSON. "
        "Or pin the protocol that it supports.",
    )


def _unapproved_endpoint(agent_url: str, endpoint: str, fetch: CardFetch) -> UnclearDialect:
    named = f"The card at {fetch.url} names the endpoint {endpoint}"
    reason = check_url(endpoint)
    if reason is not None:
        return UnclearDialect(
            reason=f"{named}, which cannot be called: {reason}",
            fix="Correct the card, or set the agent's endpoint_override to the address to send to.",
        )
    local = (
        ": agents often advertise localhost when their public URL is not configured"
        if parse_url(endpoint).host in _LOCAL_HOSTS and parse_url(agent_url).host not in _LOCAL_HOSTS
        else ""
    )
    return UnclearDialect(
        reason=f"{named}, which is not of the same origin as the agent's url {agent_url}{local}. "
        "The agent's credentials are not sent there",
        fix=f"If that address is right, set the agent's allow_card_origin to {origin_of(endpoint)}. If another address "
        f"is right, such as {agent_url}, set the agent's endpoint_override to it. Otherwise correct the card.",
    )
