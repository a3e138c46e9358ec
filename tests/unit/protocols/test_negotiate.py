"""How a card decides the dialect, and what decides nothing."""

from __future__ import annotations

import pytest

from trunkline.jsontypes import Json, encode
from trunkline.protocols import CardFetch, Negotiated, Unclear, card_urls, negotiate, next_card_url

AGENT = "http://agent:8001/a2a"
CARD: dict[str, Json] = {
    "name": "Hello",
    "url": "http://agent:8001/rpc",
    "protocolVersion": "0.3.0",
    "skills": [],
}


def fetched(agent_url: str, *results: int | str | CardFetch | Json) -> list[CardFetch]:
    """What the bridge gets as it asks what it is told to: a status, a failure's text, or a card's content."""
    fetches: list[CardFetch] = []
    for result in results:
        url = next_card_url(agent_url, fetches)
        assert url is not None
        match result:
            case int():
                fetches.append(CardFetch(url=url, status=result))
            case str():
                fetches.append(CardFetch(url=url, failure=result))
            case _:
                fetches.append(CardFetch(url=url, status=200, body=encode(result), etag='"1"'))
    return fetches


def with_card(card: Json, agent_url: str = AGENT) -> Negotiated | Unclear:
    return negotiate(agent_url, fetched(agent_url, card))


def test_the_card_is_looked_for_under_the_url_then_at_the_root_then_by_its_old_name() -> None:
    assert card_urls("http://agent:8001/a2a/?x=1#y") == [
        "http://agent:8001/a2a/.well-known/agent-card.json",
        "http://agent:8001/.well-known/agent-card.json",
        "http://agent:8001/a2a/.well-known/agent.json",
        "http://agent:8001/.well-known/agent.json",
    ]
    assert card_urls("http://agent:8001/") == [
        "http://agent:8001/.well-known/agent-card.json",
        "http://agent:8001/.well-known/agent.json",
    ]


def test_a_card_of_0_3_means_json_rpc_at_its_endpoint() -> None:
    assert with_card(CARD) == Negotiated(
        protocol="jsonrpc-2.0",
        url="http://agent:8001/rpc",
        evidence=f"The card at {AGENT}/.well-known/agent-card.json offers A2A 0.3.0 over JSON-RPC",
        card_etag='"1"',
    )


def test_a_card_under_its_old_name_counts_too() -> None:
    found = negotiate(AGENT, fetched(AGENT, 404, 404, 404, {"name": "Old", "url": AGENT}))
    assert isinstance(found, Negotiated)
    assert (found.protocol, found.url) == ("jsonrpc-2.0", AGENT)
    assert "0.2 or 0.3" in found.evidence


def test_nobody_asks_on_when_a_card_is_found() -> None:
    assert next_card_url(AGENT, fetched(AGENT, 404, CARD)) is None


@pytest.mark.parametrize("status", [404, 405, 410, 501])
def test_no_card_anywhere_means_simple_a2a(status: int) -> None:
    fetches = fetched(AGENT, status, status, status, status)
    assert next_card_url(AGENT, fetches) is None
    found = negotiate(AGENT, fetches)
    assert isinstance(found, Negotiated)
    assert (found.protocol, found.url, found.card_etag) == ("simple-a2a", AGENT, None)
    assert f"{status} at /.well-known/agent.json" in found.evidence


@pytest.mark.parametrize("page", [{"status": "ok"}, [], {"url": "http://agent:8001/"}])
def test_an_answer_that_is_no_card_is_no_card(page: Json) -> None:
    found = negotiate(AGENT, fetched(AGENT, page, page, page, page))
    assert isinstance(found, Negotiated)
    assert found.protocol == "simple-a2a"


def test_a_page_for_every_path_is_no_card() -> None:
    fetches = [CardFetch(url=url, status=200, body=b"<!doctype html>") for url in card_urls(AGENT)]
    found = negotiate(AGENT, fetches)
    assert isinstance(found, Negotiated)
    assert found.protocol == "simple-a2a"


@pytest.mark.parametrize("status", [500, 503, 401, 403, 302, 429])
def test_other_statuses_decide_nothing(status: int) -> None:
    found = negotiate(AGENT, fetched(AGENT, 404, status, 404, 404))
    assert isinstance(found, Unclear)
    assert f"HTTP {status}" in found.reason


def test_a_failed_connection_decides_nothing_and_ends_the_search() -> None:
    fetches = fetched(AGENT, 404, "Connection refused")
    assert next_card_url(AGENT, fetches) is None
    found = negotiate(AGENT, fetches)
    assert isinstance(found, Unclear)
    assert "Connection refused" in found.reason


def test_a_card_found_later_outweighs_an_error_before_it() -> None:
    assert isinstance(negotiate(AGENT, fetched(AGENT, 503, CARD)), Negotiated)


def test_a_broken_card_decides_nothing() -> None:
    fetches = [CardFetch(url=url, status=200, body=b'{"name": "Hel') for url in card_urls(AGENT)]
    assert isinstance(negotiate(AGENT, fetches), Unclear)


@pytest.mark.parametrize(
    "url",
    [
        "http://other:8001/rpc",
        "http://agent:8002/rpc",
        "https://agent:8001/rpc",
        "http://agent:8001@evil/rpc",
        "//evil/rpc",
        "http://agent:99999/rpc",
        "http://[bad/rpc",
    ],
)
def test_a_card_may_not_send_us_to_another_origin(url: str) -> None:
    found = with_card(CARD | {"url": url})
    assert isinstance(found, Unclear)
    assert "origin" in found.reason
    assert "Register the agent" in found.fix


@pytest.mark.parametrize(
    ("agent_url", "url"),
    [
        ("http://agent/a", "http://AGENT:80/b"),
        ("https://agent:443", "https://agent/rpc"),
        ("http://agent/a", "/rpc"),
        ("http://[::1]:8001/", "http://[::1]:8001/rpc"),
    ],
)
def test_one_origin_may_be_written_in_several_ways(agent_url: str, url: str) -> None:
    assert isinstance(with_card(CARD | {"url": url}, agent_url), Negotiated)


def test_another_transport_may_be_preferred_when_json_rpc_is_offered_too() -> None:
    others: Json = [{"url": "http://agent:8001/j", "transport": "JSONRPC"}]
    found = with_card(CARD | {"preferredTransport": "GRPC", "additionalInterfaces": others})
    assert isinstance(found, Negotiated)
    assert found.url == "http://agent:8001/j"


def test_a_card_without_json_rpc_is_refused_with_what_it_offers() -> None:
    found = with_card(CARD | {"preferredTransport": "GRPC"})
    assert isinstance(found, Unclear)
    assert "GRPC 0.3.0" in found.reason


def test_of_a_card_of_1_0_an_address_for_0_3_is_taken() -> None:
    card: Json = {
        "name": "New",
        "supportedInterfaces": [
            {"url": "http://agent:8001/v1", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
            {"url": "http://agent:8001/v03", "protocolBinding": "JSONRPC", "protocolVersion": "0.3"},
        ],
    }
    found = with_card(card)
    assert isinstance(found, Negotiated)
    assert found.url == "http://agent:8001/v03"


def test_a_card_of_1_0_alone_is_refused_with_the_reason() -> None:
    found = with_card({"name": "New", "supportedInterfaces": [{"url": AGENT, "protocolBinding": "JSONRPC"}]})
    assert isinstance(found, Unclear)
    assert "JSONRPC 1.0" in found.reason


def test_nothing_asked_is_nothing_known() -> None:
    assert isinstance(negotiate(AGENT, []), Unclear)
