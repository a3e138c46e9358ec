"""What may be said about an agent, and how a wrong word is answered."""

from __future__ import annotations

from datetime import timedelta

import pytest

from trunkline.agents import AgentOptions, BreakerPolicy, RateLimit
from trunkline.errors import Invalid
from trunkline.jsontypes import Json, JsonObject
from trunkline.protocols import ProtocolAdapterFactory
from trunkline.retry_policy import RetryPolicy
from trunkline.services.agents.specs import AgentSpec, check_spec, parse_spec


def checked(**fields: Json) -> AgentSpec:
    document: JsonObject = {"name": "A", "url": "http://a", **fields}
    spec = parse_spec(document)
    check_spec(spec)
    return spec


def findings(**fields: Json) -> list[tuple[str, str]]:
    with pytest.raises(Invalid) as caught:
        checked(**fields)
    return [(finding.path, finding.message) for finding in caught.value.findings]


def test_the_least_that_must_be_said_is_a_name_and_a_url() -> None:
    assert checked() == AgentSpec(name="A", url="http://a")
    with pytest.raises(Invalid) as caught:
        parse_spec({})
    assert [finding.path for finding in caught.value.findings] == ["name", "url"]


def test_null_means_the_default() -> None:
    assert checked(description=None, protocol=None, timeout_ms=None, retry=None, pool=None) == checked()


def test_what_was_read_can_be_sent_back() -> None:
    read_only: JsonObject = {"id": "1", "dialect": None, "created_at": "x", "updated_at": "x"}
    assert checked(**read_only) == checked()


def test_every_wrong_field_is_named() -> None:
    assert findings(timeout_ms="soon", max_concurrency=True, protocol_config=[]) == [
        ("protocol_config", "Expected `object`, got `array`"),
        ("timeout_ms", "Expected `int`, got `str`"),
        ("max_concurrency", "Expected `int`, got `bool`"),
    ]
    paths = [path for path, _ in findings(name="", url="ftp://a", timeout_ms=0, max_concurrency=10_001)]
    assert paths == ["name", "url", "timeout_ms", "max_concurrency"]


def test_an_agent_of_litecone_is_refused_with_the_command_that_converts_it() -> None:
    found = dict(findings(retry_config={"max_retries": 2}, circuit_breaker_config={}, auth_type="apikey"))
    assert set(found) == {"retry_config", "circuit_breaker_config", "auth_type"}
    assert all("trunkline import --from litecone FILE" in message for message in found.values())
    assert "did you mean" not in found["retry_config"]
    assert "litecone" not in dict(findings(auth_type="api-key"))["auth_type"]


def test_an_unknown_field_is_refused_with_the_closest_known_one() -> None:
    assert findings(timeout_msec=5) == [("timeout_msec", "unknown field; did you mean timeout_ms?")]
    assert findings(colour="red") == [("colour", "unknown field")]


@pytest.mark.parametrize("name", ["A", "ü 漢字", "a" * 255, "a.b-c_d", "agent@host:1", "%2F", "50% off?"])
def test_a_name_can_be_almost_anything(name: str) -> None:
    assert checked(name=name).name == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "a" * 256,
        "a/b",
        " a",
        "a ",
        "a\nb",
        "a\0b",
        "a\x85b",
        ".",
        "..",
        "018f0000-0000-7000-8000-000000000001",
    ],
)
def test_a_name_that_would_be_unclear_in_a_url_is_refused(name: str) -> None:
    assert {path for path, _ in findings(name=name)} == {"name"}


@pytest.mark.parametrize("url", ["http://localhost:8080/agent", "https://a.example/x?y=z", "http://[::1]:1/"])
def test_a_url_that_can_be_called_is_taken(url: str) -> None:
    assert checked(url=url).url == url


@pytest.mark.parametrize(
    "url", ["", "a", "ftp://a", "http://", "http://me:secret@a/", "http://a b", "//a", "file:///x"]
)
def test_a_url_that_cannot_be_called_is_refused(url: str) -> None:
    assert [path for path, _ in findings(url=url)] == ["url"]


@pytest.mark.parametrize("protocol", ["auto", *ProtocolAdapterFactory.supported_protocols()])
def test_a_supported_protocol_is_taken(protocol: str) -> None:
    assert checked(protocol=protocol).protocol == protocol


def test_an_unsupported_protocol_is_refused_with_the_supported_ones() -> None:
    with pytest.raises(Invalid) as caught:
        checked(protocol="soap")
    assert caught.value.message == (
        "Unsupported protocol: soap. Supported protocols: auto, simple-a2a, jsonrpc-2.0, jsonrpc-call, "
        "a2a-0.1, a2a-0.1-paths, a2a-0.2, a2a-0.3, a2a-1.0, a2a-1.0-http"
    )
    assert [finding.path for finding in caught.value.findings] == ["protocol"]


def test_a_protocol_config_is_checked_for_its_protocol() -> None:
    config: JsonObject = {"method": "message/send", "version": "2.0", "input_mode": "json"}
    assert checked(protocol="jsonrpc-2.0", protocol_config=config).protocol_config == config
    (path, message), *rest = findings(protocol="jsonrpc-2.0", protocol_config={"version": "1.0"})
    assert (path, rest) == ("protocol_config.version", [])
    assert "2.0" in message
    assert findings(protocol="jsonrpc-2.0", protocol_config={"method": "a\0b"})


def test_an_unknown_auth_type_is_refused_with_the_known_ones() -> None:
    assert findings(auth_type="magic") == [
        ("auth_type", "must be one of none, bearer, api_key, basic, headers, oauth2, signed, mtls")
    ]


@pytest.mark.parametrize(
    ("auth_type", "config"),
    [
        ("bearer", {"token": "t"}),
        ("api_key", {"name": "X-Key", "value": "v", "in": "header"}),
        ("basic", {"username": "u", "password": "p"}),
        ("headers", {"X-One": "1", "X-Two": "2"}),
    ],
)
def test_each_auth_type_has_its_config(auth_type: str, config: JsonObject) -> None:
    assert checked(auth_type=auth_type, auth_config=config).auth_config == config
    assert findings(auth_type=auth_type)


def test_a_retry_policy_is_read_with_durations_as_people_write_them() -> None:
    spec = checked(
        retry={"max_attempts": 5, "backoff": "fixed", "first_delay": "100ms", "on": ["any", 503, "4xx"]}
    )
    assert spec.retry == RetryPolicy(
        max_attempts=5, backoff="fixed", first_delay=timedelta(milliseconds=100), on=("any", 503, "4xx")
    )
    assert checked(retry={}).retry == RetryPolicy()


@pytest.mark.parametrize(
    ("retry", "path"),
    [
        ("often", "retry"),
        ({"max_attempts": "x"}, "retry.max_attempts"),
        ({"max_attempts": 0}, "retry.max_attempts"),
        ({"max_attempts": 1_001}, "retry.max_attempts"),
        ({"backoff": "random"}, "retry.backoff"),
        ({"first_delay": "soon"}, "retry.first_delay"),
        ({"first_delay": "5m", "max_delay": "1s"}, "retry.max_delay"),
        ({"on": ["sometimes"]}, "retry.on"),
        ({"on": [99]}, "retry.on"),
    ],
)
def test_a_wrong_retry_policy_says_where_it_is_wrong(retry: Json, path: str) -> None:
    assert [where for where, _ in findings(retry=retry)] == [path]


def test_a_description_is_any_text_of_reasonable_length() -> None:
    assert checked(description="two\nlines").description == "two\nlines"
    assert findings(description="x" * 10_001) == [("description", "must have at most 10000 characters")]
    assert findings(description="\0") == [("description", "must not contain the character U+0000")]


def test_additional_log_fields_do_not_replace_the_documented_ones() -> None:
    spec = checked(
        resend="never",
        endpoint_override="https://a.example/rpc/",
        allow_card_origin=["HTTPS://Cards.example:443/", "http://b.example:8080"],
        rate={"per_second": 5, "burst": 10},
        breaker={"failures": 2, "jsonrpc_errors": True},
        repeatable=True,
    )
    assert spec.options == AgentOptions(
        resend="never",
        endpoint_override="https://a.example/rpc/",
        allow_card_origin=("https://cards.example", "http://b.example:8080"),
        rate=RateLimit(per_second=5.0, burst=10),
        breaker=BreakerPolicy(failures=2, jsonrpc_errors=True),
        repeatable=True,
    )
    assert checked(allow_card_origin="http://b.example").options.allow_card_origin == ("http://b.example",)
    assert findings(options={}) == [("options", "unknown field")]


@pytest.mark.parametrize(
    ("breaker", "policy"),
    [(True, BreakerPolicy()), ({}, BreakerPolicy()), (False, None), (None, None)],
)
def test_a_breaker_is_there_when_it_is_asked_for(breaker: Json, policy: BreakerPolicy | None) -> None:
    assert checked(breaker=breaker).options.breaker == policy


@pytest.mark.parametrize(
    ("field", "value", "path"),
    [
        ("resend", "sometimes", "resend"),
        ("endpoint_override", "ftp://a", "endpoint_override"),
        ("endpoint_override", "http://me:secret@a", "endpoint_override"),
        ("endpoint_override", 5, "endpoint_override"),
        ("allow_card_origin", "a.example", "allow_card_origin[0]"),
        ("allow_card_origin", ["https://a", "https://a/path"], "allow_card_origin[1]"),
        ("allow_card_origin", ["https://a?x=y"], "allow_card_origin[0]"),
        ("allow_card_origin", ["https://*.example"], "allow_card_origin[0]"),
        ("allow_card_origin", [5], "allow_card_origin[0]"),
        ("allow_card_origin", {}, "allow_card_origin"),
        ("allow_card_origin", ["https://a"] * 21, "allow_card_origin"),
        ("rate", 5, "rate"),
        ("rate", {}, "rate"),
        ("rate", {"per_second": 0}, "rate.per_second"),
        ("rate", {"per_second": float("inf")}, "rate.per_second"),
        ("rate", {"per_second": "5"}, "rate.per_second"),
        ("rate", {"per_second": 5, "burst": 0}, "rate.burst"),
        ("rate", {"per_second": 5, "per_minute": 5}, "rate"),
        ("breaker", "yes", "breaker"),
        ("breaker", {"failures": 0}, "breaker.failures"),
        ("breaker", {"rate": 1.5}, "breaker.rate"),
        ("breaker", {"rate": float("nan")}, "breaker.rate"),
        ("breaker", {"window": 0}, "breaker.window"),
        ("breaker", {"open_ms": 0}, "breaker.open_ms"),
        ("breaker", {"probes": 0}, "breaker.probes"),
        ("breaker", {"failure": 1}, "breaker"),
    ],
)
def test_a_wrong_option_says_where_it_is_wrong(field: str, value: Json, path: str) -> None:
    assert [where for where, _ in findings(**{field: value})] == [path]


def test_an_origin_with_a_path_is_refused_with_the_origin_that_is_meant() -> None:
    assert findings(allow_card_origin="https://a.example/agents") == [
        ("allow_card_origin[0]", "must be an origin without a path; did you mean https://a.example?")
    ]


ARN = "arn:aws:bedrock-agentcore:eu-central-1:123456789012:runtime/zone-a1B2c3D4e5"


@pytest.mark.parametrize(
    ("transport", "url"), [("aws-agentcore", f"{ARN}?qualifier=blue"), ("stdio", "stdio:zone")]
)
@pytest.mark.parametrize("protocol", ["jsonrpc-2.0", "jsonrpc-call", "simple-a2a", "a2a-0.3"])
def test_a_dialect_that_is_only_a_body_goes_over_every_transport(
    transport: str, url: str, protocol: str
) -> None:
    assert checked(url=url, transport=transport, protocol=protocol).options.transport == transport


def test_the_transport_of_a_url_must_be_named() -> None:
    expected = "cannot be called: it belongs to another transport; set transport to aws-agentcore"
    assert findings(url=ARN, protocol="jsonrpc-2.0") == [("url", expected)]
    assert findings(transport="carrier-pigeon") == [
        ("transport", "must be one of https, aws-agentcore, stdio")
    ]
    assert [path for path, _ in findings(transport="stdio", protocol="jsonrpc-2.0")] == ["url"]


@pytest.mark.parametrize(
    ("fields", "path", "words"),
    [
        ({"protocol": "auto"}, "protocol", "auto is not supported over stdio"),
        ({"protocol": "a2a-1.0"}, "protocol", "headers or paths"),
        ({"protocol": "a2a-1.0-http"}, "protocol", "headers or paths"),
        ({"protocol": "a2a-0.1-paths"}, "protocol", "headers or paths"),
        ({"protocol_config": {"batch": {"max": 2}}}, "protocol_config.batch", "not supported over stdio"),
        ({"endpoint_override": "http://a"}, "endpoint_override", "no card is read"),
        ({"allow_card_origin": "http://a"}, "allow_card_origin", "no card is read"),
        ({"auth_type": "bearer", "auth_config": {"token": "t0ken"}}, "auth_type", "must be none over stdio"),
    ],
)
def test_what_only_http_can_carry_is_refused_elsewhere(fields: JsonObject, path: str, words: str) -> None:
    found = findings(**{"url": "stdio:zone", "transport": "stdio", "protocol": "jsonrpc-2.0", **fields})
    assert [where for where, _ in found] == [path]
    assert words in found[0][1]


def test_a_certificate_is_refused_where_there_is_no_tls() -> None:
    found = findings(
        url=ARN,
        transport="aws-agentcore",
        protocol="jsonrpc-2.0",
        auth_config={"tls": {"authority": "no PEM"}},
    )
    assert [path for path, _ in found] == ["auth_config", "auth_config.tls.authority"]
