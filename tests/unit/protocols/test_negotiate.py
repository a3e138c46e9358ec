"""How a card decides the dialect, and what decides nothing."""

from __future__ import annotations

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.agents import NO_OPTIONS, AgentOptions
from trunkline.agents.http_urls import origin_of
from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.protocols import (
    CardFetch,
    NegotiatedDialect,
    UnclearDialect,
    card_urls,
    describe_fetch,
    negotiate,
    negotiate_pinned,
    next_card_url,
)

AGENT = "http://agent:8001/a2a"
CARD_URL = f"{AGENT}/.well-known/agent-card.json"
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


def with_card(
    card: Json, agent_url: str = AGENT, options: AgentOptions = NO_OPTIONS
) -> NegotiatedDialect | UnclearDialect:
    return negotiate(agent_url, fetched(agent_url, card), options)


def decided(card: Json, agent_url: str = AGENT, options: AgentOptions = NO_OPTIONS) -> NegotiatedDialect:
    found = with_card(card, agent_url, options)
    assert isinstance(found, NegotiatedDialect), found
    return found


def interface(path: str, version: str = "1.0", binding: str = "JSONRPC", **fields: Json) -> JsonObject:
    url = f"http://agent:8001{path}"
    return {"url": url, "protocolBinding": binding, "protocolVersion": version, **fields}


def modern(*interfaces: Json) -> JsonObject:
    return {"name": "New", "supportedInterfaces": list(interfaces)}


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


def test_a_card_whose_address_has_a_query_is_asked_for_with_it() -> None:
    address = "http://agent:8001/.well-known/agent-card.json?assistant_id=7"
    assert card_urls(address) == [
        address,
        "http://agent:8001/.well-known/agent-card.json",
        "http://agent:8001/.well-known/agent.json",
    ]
    card = encode(CARD | {"url": "http://agent:8001/a2a/7"})
    found = negotiate(address, [CardFetch(url=address, status=200, body=card)])
    assert isinstance(found, NegotiatedDialect)
    assert found.url == "http://agent:8001/a2a/7"


@pytest.mark.parametrize("path", ["/.well-known/agent-card.json", "/.well-known/agent.json"])
def test_an_agent_that_is_registered_by_the_address_of_its_card_is_found(path: str) -> None:
    assert card_urls(AGENT + path) == card_urls(AGENT)
    assert decided({"name": "A", "protocolVersion": "0.3"}, AGENT + path).url == AGENT
    without = negotiate(AGENT + path, fetched(AGENT + path, 404, 404, 404, 404))
    assert isinstance(without, NegotiatedDialect)
    assert without.url == AGENT


def test_a_card_of_0_3_means_a2a_0_3_at_its_endpoint() -> None:
    found = decided(CARD)
    assert (found.protocol, found.url) == ("a2a-0.3", "http://agent:8001/rpc")
    assert found.evidence == f"The card at {CARD_URL} offers A2A 0.3.0 over JSON-RPC"
    assert (found.card_url, found.card_etag) == (CARD_URL, '"1"')
    assert found.card_digest == sha256(encode(CARD)).hexdigest()
    assert (found.streams, found.pushes, found.tenant) == (False, False, None)


def test_what_the_card_says_the_agent_can_do_is_kept() -> None:
    capabilities: Json = {"streaming": True, "pushNotifications": True}
    found = decided(CARD | {"capabilities": capabilities})
    assert (found.streams, found.pushes) == (True, True)
    hostile: list[Json] = [{"streaming": "yes", "pushNotifications": 1}, [], "streaming", None]
    for capabilities in hostile:
        found = decided(CARD | {"capabilities": capabilities})
        assert (found.streams, found.pushes) == (False, False)


@pytest.mark.parametrize(
    ("version", "protocol"),
    [
        ("0.1", "a2a-0.1"),
        ("0.2.5", "a2a-0.2"),
        ("0.2", "a2a-0.2"),
        ("0.3", "a2a-0.3"),
        ("0.3.0", "a2a-0.3"),
        ("1.0", "a2a-1.0"),
        ("1.0.0", "a2a-1.0"),
        ("1", "a2a-1.0"),
        ("v1.0", "a2a-1.0"),
    ],
)
def test_the_version_of_a_card_is_its_dialect(version: str, protocol: str) -> None:
    assert decided(CARD | {"protocolVersion": version}).protocol == protocol


def test_a_card_without_a_version_is_of_0_2_under_its_old_name_and_of_0_3_under_the_new_one() -> None:
    old: Json = {"name": "Old", "url": AGENT}
    found = negotiate(AGENT, fetched(AGENT, 404, 404, 404, old))
    assert isinstance(found, NegotiatedDialect)
    assert (found.protocol, found.url) == ("a2a-0.2", AGENT)
    assert "0.2 or 0.3" in found.evidence
    assert decided(old).protocol == "a2a-0.3"


def test_no_further_card_is_requested_when_one_is_found() -> None:
    assert next_card_url(AGENT, fetched(AGENT, 404, CARD)) is None


@pytest.mark.parametrize("status", [404, 405, 410, 501])
def test_no_card_anywhere_means_simple_a2a(status: int) -> None:
    fetches = fetched(AGENT, status, status, status, status)
    assert next_card_url(AGENT, fetches) is None
    found = negotiate(AGENT, fetches)
    assert isinstance(found, NegotiatedDialect)
    assert (found.protocol, found.url, found.card_etag) == ("simple-a2a", AGENT, None)
    assert f"{status} at /.well-known/agent.json" in found.evidence


@pytest.mark.parametrize("page", [{"status": "ok"}, [], {"url": "http://agent:8001/"}])
def test_an_answer_that_is_no_card_is_no_card(page: Json) -> None:
    found = negotiate(AGENT, fetched(AGENT, page, page, page, page))
    assert isinstance(found, NegotiatedDialect)
    assert found.protocol == "simple-a2a"


def test_a_page_for_every_path_is_no_card() -> None:
    fetches = [CardFetch(url=url, status=200, body=b"<!doctype html>") for url in card_urls(AGENT)]
    found = negotiate(AGENT, fetches)
    assert isinstance(found, NegotiatedDialect)
    assert found.protocol == "simple-a2a"


@pytest.mark.parametrize("status", [500, 503, 401, 403, 302, 429])
def test_other_statuses_decide_nothing(status: int) -> None:
    found = negotiate(AGENT, fetched(AGENT, 404, status, 404, 404))
    assert isinstance(found, UnclearDialect)
    assert f"HTTP {status}" in found.reason


def test_a_failed_connection_decides_nothing_and_ends_the_search() -> None:
    fetches = fetched(AGENT, 404, "Connection refused")
    assert next_card_url(AGENT, fetches) is None
    found = negotiate(AGENT, fetches)
    assert isinstance(found, UnclearDialect)
    assert "Connection refused" in found.reason


def test_a_card_found_later_outweighs_an_error_before_it() -> None:
    assert isinstance(negotiate(AGENT, fetched(AGENT, 503, CARD)), NegotiatedDialect)


def test_a_broken_card_decides_nothing() -> None:
    fetches = [CardFetch(url=url, status=200, body=b'{"name": "Hel') for url in card_urls(AGENT)]
    assert isinstance(negotiate(AGENT, fetches), UnclearDialect)


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
    assert isinstance(found, UnclearDialect)
    assert "origin" in found.reason or "cannot be called" in found.reason
    assert "endpoint_override" in found.fix


def test_both_ways_to_approve_another_origin_are_named() -> None:
    found = with_card(CARD | {"url": "https://cards.example/rpc"})
    assert isinstance(found, UnclearDialect)
    assert "The agent's credentials are not sent there" in found.reason
    assert "allow_card_origin to https://cards.example." in found.fix
    assert f"such as {AGENT}, set the agent's endpoint_override to it." in found.fix


@pytest.mark.parametrize("host", ["localhost:9999", "127.0.0.1", "0.0.0.0", "[::1]:80"])
def test_an_agent_that_does_not_know_its_own_address_is_recognised(host: str) -> None:
    found = with_card(CARD | {"url": f"http://{host}/rpc"})
    assert isinstance(found, UnclearDialect)
    assert "agents often advertise localhost" in found.reason
    elsewhere = with_card(CARD | {"url": "http://other/rpc"})
    assert isinstance(elsewhere, UnclearDialect)
    assert "localhost" not in elsewhere.reason


def test_an_approved_origin_is_followed_and_no_other() -> None:
    options = AgentOptions(allow_card_origin=("https://cards.example", "http://b:81"))
    assert decided(CARD | {"url": "https://CARDS.example:443/rpc"}, AGENT, options).url == (
        "https://CARDS.example:443/rpc"
    )
    for url in ("http://cards.example/rpc", "https://cards.example:444/", "https://x.cards.example/"):
        assert isinstance(with_card(CARD | {"url": url}, AGENT, options), UnclearDialect)


@pytest.mark.parametrize("url", ["http://localhost:9999/", "http://agent:8001/rpc", "not a url", None])
def test_an_override_is_where_to_send_whatever_the_card_says(url: str | None) -> None:
    options = AgentOptions(endpoint_override="https://elsewhere.example/a/")
    found = decided(CARD | {"url": url}, AGENT, options)
    assert (found.protocol, found.url) == ("a2a-0.3", "https://elsewhere.example/a/")
    assert {offer.url for offer in found.others} == {"https://elsewhere.example/a/"}


def test_an_override_is_where_to_send_without_a_card_too() -> None:
    options = AgentOptions(endpoint_override="http://elsewhere.example/a")
    found = negotiate(AGENT, fetched(AGENT, 404, 404, 404, 404), options)
    assert isinstance(found, NegotiatedDialect)
    assert (found.protocol, found.url) == ("simple-a2a", "http://elsewhere.example/a")


def test_an_address_of_the_agents_own_origin_is_taken_before_one_that_is_not_approved() -> None:
    elsewhere: Json = {"url": "http://other/1", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    found = decided(modern(elsewhere, interface("/v03", "0.3")))
    assert (found.protocol, found.url) == ("a2a-0.3", "http://agent:8001/v03")


@pytest.mark.parametrize(
    ("agent_url", "url", "first", "second"),
    [
        ("http://agent/a", "http://agent/a/", "http://agent/a", "http://agent/a/"),
        ("http://agent/a/", "http://agent/a", "http://agent/a/", "http://agent/a"),
        ("http://agent", "http://agent:80/", "http://agent", "http://agent:80/"),
    ],
)
def test_of_two_addresses_that_differ_by_a_slash_the_operators_is_tried_first(
    agent_url: str, url: str, first: str, second: str
) -> None:
    found = decided(CARD | {"url": url}, agent_url)
    assert (found.url, found.others[0].url) == (first, second)


def test_after_proof_the_agents_own_url_is_tried_in_place_of_a_path_that_the_card_has_wrong() -> None:
    found = decided(CARD | {"url": "http://agent:8001/"}, "http://agent:8001/prefix/a2a")
    assert (found.url, found.others[0].url) == ("http://agent:8001/", "http://agent:8001/prefix/a2a")
    assert found.others[0].protocol == "a2a-0.3"


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
    assert isinstance(with_card(CARD | {"url": url}, agent_url), NegotiatedDialect)


def test_another_transport_may_be_preferred_when_json_rpc_is_offered_too() -> None:
    others: Json = [{"url": "http://agent:8001/j", "transport": "JSONRPC"}]
    found = with_card(CARD | {"preferredTransport": "GRPC", "additionalInterfaces": others})
    assert isinstance(found, NegotiatedDialect)
    assert found.url == "http://agent:8001/j"


@pytest.mark.parametrize("value", [True, False])
def test_a_card_of_python_a2a_means_0_1_with_an_address_for_each_method_whatever_else_it_says(
    value: bool,
) -> None:
    capabilities: Json = {"google_a2a_compatible": value, "parts_array_format": value, "streaming": True}
    found = decided(CARD | {"capabilities": capabilities})
    assert (found.protocol, found.url) == ("a2a-0.1-paths", "http://agent:8001/rpc")
    assert found.evidence.endswith(
        "offers A2A 0.1 over JSON-RPC with a separate URL for each method, as in python-a2a"
    )
    assert ("a2a-0.3", "http://agent:8001/rpc") in {(offer.protocol, offer.url) for offer in found.others}


def test_a_card_without_json_rpc_is_refused_with_what_it_offers() -> None:
    found = with_card(CARD | {"preferredTransport": "GRPC"})
    assert isinstance(found, UnclearDialect)
    assert "GRPC 0.3.0" in found.reason


def test_of_all_that_a_card_offers_the_newest_over_json_rpc_is_taken_then_1_0_over_http() -> None:
    offered = {
        "a2a-0.1": interface("/01", "0.1"),
        "a2a-1.0-http": interface("/http", binding="HTTP+JSON"),
        "a2a-0.2": interface("/02", "0.2.5"),
        "a2a-0.3": interface("/03", "0.3"),
        "a2a-1.0": interface("/10"),
    }
    for best in ("a2a-1.0", "a2a-0.3", "a2a-0.2", "a2a-1.0-http", "a2a-0.1"):
        found = decided(modern(*offered.values()))
        assert (found.protocol, found.url) == (best, offered.pop(best)["url"])
        assert {offer.protocol for offer in found.others} >= set(offered)


def test_of_two_addresses_for_the_same_dialect_the_cards_first_is_taken() -> None:
    found = decided(modern(interface("/b", tenant="t-1"), interface("/a")))
    assert (found.url, found.tenant) == ("http://agent:8001/b", "t-1")
    assert (found.others[0].url, found.others[0].tenant) == ("http://agent:8001/a", None)


def test_a_card_of_both_forms_is_read_as_both() -> None:
    found = decided(CARD | modern(interface("/v1")))
    assert (found.protocol, found.url) == ("a2a-1.0", "http://agent:8001/v1")
    assert ("a2a-0.3", "http://agent:8001/rpc") in {(offer.protocol, offer.url) for offer in found.others}


@pytest.mark.parametrize(
    ("binding", "version"), [("GRPC", "1.0"), ("HTTP+JSON", "0.3"), ("JSONRPC", "2.0"), ("SOAP", "1.0")]
)
def test_an_unsupported_offer_is_refused_with_the_supported_ones(binding: str, version: str) -> None:
    found = with_card(modern(interface("/", version, binding)))
    assert isinstance(found, UnclearDialect)
    assert f"{binding} {version}" in found.reason
    assert "A2A over JSON-RPC, or A2A 1.0 over HTTP+JSON" in found.fix


def test_a_card_that_is_wrong_about_its_version_is_found_out_by_trying() -> None:
    found = decided(modern(interface("/rpc")))
    assert [(offer.protocol, offer.url) for offer in found.others] == [
        ("a2a-1.0", AGENT),
        ("a2a-1.0", "http://agent:8001/rpc/"),
        ("a2a-0.3", "http://agent:8001/rpc"),
        ("a2a-0.1", "http://agent:8001/rpc"),
    ]


def test_what_an_agent_without_a_card_may_speak_instead() -> None:
    found = negotiate(AGENT, fetched(AGENT, 404, 404, 404, 404))
    assert isinstance(found, NegotiatedDialect)
    assert [(offer.protocol, offer.url) for offer in found.others] == [
        ("jsonrpc-2.0", AGENT),
        ("a2a-1.0", AGENT),
    ]


URLS = st.sampled_from(
    [
        "http://agent:8001/rpc",
        "/rpc",
        "rpc",
        "",
        "?x=1",
        "//evil/rpc",
        "\\\\evil\\rpc",
        "/\\evil",
        "http://agent:8001@evil/",
        "http://agent:8001:80/",
        "http://agent%2eevil/",
        "http://agent:8001\t.evil/",
        "http:evil",
        "http:///evil",
        "HTTP://AGENT:8001/",
        "https://agent:8001/",
        "http://agent:8001.evil/",
        "http://evil#@agent:8001/",
        "http://evil?@agent:8001/",
        "http://[::ffff:1.2.3.4]:8001/",
        "http://0x7f000001:8001/",
        "gopher://agent:8001/",
        "javascript:alert(1)",
    ]
)
INTERFACES = st.fixed_dictionaries(
    {
        "url": URLS,
        "protocolBinding": st.sampled_from(["JSONRPC", "HTTP+JSON", "GRPC"]),
        "protocolVersion": st.sampled_from(["0.1", "0.2", "0.3", "1.0", "2.0"]),
    }
)


@given(URLS, st.lists(INTERFACES, max_size=4))
def test_whatever_a_card_names_nothing_is_ever_sent_to_another_origin(
    url: str, interfaces: list[Json]
) -> None:
    named: JsonObject = {"url": url, "supportedInterfaces": interfaces}
    found = with_card(CARD | named)
    if isinstance(found, NegotiatedDialect):
        ways = [found.url, *(offer.url for offer in found.others)]
        assert {origin_of(way) for way in ways} == {"http://agent:8001"}


# --- what is pinned


def test_of_a_pinned_dialect_the_card_says_only_what_the_agent_can_do() -> None:
    card = modern(interface("/v1", tenant="t"), interface("/v03", "0.3"))
    card["capabilities"] = {"streaming": True}
    found = negotiate_pinned("a2a-1.0", AGENT, fetched(AGENT, card))
    assert isinstance(found, NegotiatedDialect)
    assert (found.protocol, found.url, found.tenant) == ("a2a-1.0", AGENT, "t")
    assert (found.streams, found.pushes, found.card_url, found.others) == (True, False, CARD_URL, ())


def test_a_pinned_dialect_needs_no_card() -> None:
    found = negotiate_pinned("a2a-0.3", AGENT, fetched(AGENT, 404, 404, 404, 404))
    assert isinstance(found, NegotiatedDialect)
    assert (found.streams, found.card_url) == (False, None)
    assert found.evidence.startswith("Pinned by the operator. The agent has no card (404 at")
    assert isinstance(negotiate_pinned("a2a-0.3", AGENT, fetched(AGENT, 503, 404, 404, 404)), UnclearDialect)


def test_a_pinned_dialect_is_used_at_the_operators_url() -> None:
    options = AgentOptions(endpoint_override="http://elsewhere/a")
    found = negotiate_pinned("a2a-1.0", AGENT, fetched(AGENT, modern(interface("/v1"))), options)
    assert isinstance(found, NegotiatedDialect)
    assert found.url == "http://elsewhere/a"


# --- what came of a fetch, in words


def test_every_end_of_a_fetch_has_its_words() -> None:
    card, absent, failed = fetched(AGENT, CARD)[0], fetched(AGENT, 404)[0], fetched(AGENT, "refused")[0]
    page = CardFetch(url=AGENT, status=200, body=b"<html>")
    assert [describe_fetch(fetch) for fetch in (card, absent, failed, page)] == [
        "HTTP 200, a card",
        "HTTP 404",
        "refused",
        "HTTP 200, no card: The body is not JSON",
    ]


def test_nothing_asked_is_nothing_known() -> None:
    assert isinstance(negotiate(AGENT, []), UnclearDialect)
