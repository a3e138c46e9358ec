from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.certificates import made

from trunkline.agents.authentication.auth_config import (
    NO_CREDENTIALS,
    credentials,
    secret_variable,
    sends_elsewhere,
    validate_auth_config,
)
from trunkline.agents.authentication.credentials import OAuthClient, TlsConfig
from trunkline.errors import Invalid
from trunkline.jsontypes import JsonObject

ROOT, KEY = made("root")
CLIENT: JsonObject = {
    "token_url": "https://login.example/token",
    "client_id": "me",
    "client_secret": "s3cr3t",
}


def test_a_bearer_token_becomes_a_header() -> None:
    found = credentials("Writer", "bearer", {"token": "t0k3n"})
    assert found.headers == {"Authorization": "Bearer t0k3n"}
    assert found.shown == {"authorization": "Bearer $TRUNKLINE_SECRET_WRITER"}
    assert found.secrets == ("t0k3n",)


def test_an_api_key_goes_into_its_header() -> None:
    found = credentials("Writer", "api_key", {"name": "X-API-Key", "value": "k3y"})
    assert found.headers == {"X-API-Key": "k3y"}
    assert found.add_to("http://host/a") == "http://host/a"


def test_an_api_key_goes_into_the_query_where_it_is_wanted() -> None:
    found = credentials("Writer", "api_key", {"name": "key", "value": "a/b&c", "in": "query"})
    assert found.headers == {}
    assert found.add_to("http://host/a") == "http://host/a?key=a%2Fb%26c"
    assert found.add_to("http://host/a?x=1") == "http://host/a?x=1&key=a%2Fb%26c"
    assert found.shown == {"key": "$TRUNKLINE_SECRET_WRITER"}


def test_an_api_key_goes_into_a_cookie_where_it_is_wanted() -> None:
    found = credentials("Writer", "api_key", {"name": "session", "value": "k3y=", "in": "cookie"})
    assert found.headers == {"Cookie": "session=k3y="}
    assert found.shown == {"cookie": "session=$TRUNKLINE_SECRET_WRITER"}
    assert found.secrets == ("k3y=",)


def test_an_oauth2_client_is_stored_for_fetching_its_token() -> None:
    found = credentials(
        "Writer", "oauth2", {**CLIENT, "scope": "read write", "token_tls": {"authority": ROOT}}
    )
    assert found.oauth == OAuthClient(
        token_url="https://login.example/token",
        client_id="me",
        client_secret="s3cr3t",
        scope="read write",
        tls=TlsConfig(authority=ROOT),
    )
    assert (found.headers, found.tls) == ({}, None)
    assert found.shown == {"authorization": "Bearer $TRUNKLINE_SECRET_WRITER"}
    assert "s3cr3t" in found.secrets


def test_a_certificate_and_its_key_become_tls() -> None:
    certificate, key = made("ours")
    found = credentials("W", "mtls", {"certificate": certificate, "key": key, "authority": ROOT})
    assert found.tls == TlsConfig(authority=ROOT, certificate=certificate, key=key)
    assert found.headers == {}


@pytest.mark.parametrize(
    ("auth_type", "config"),
    [
        ("none", {}),
        ("bearer", {"token": "t0k3n"}),
        ("headers", {"X-A": "1", "tls-of-ours": "a"}),
        ("oauth2", {"token_url": "https://login.example/token", "client_id": "me", "client_secret": "s"}),
    ],
)
def test_every_other_kind_can_be_combined_with_tls(auth_type: str, config: JsonObject) -> None:
    plain = credentials("W", auth_type, config)
    found = credentials("W", auth_type, {**config, "tls": {"authority": ROOT}})
    assert found == replace(plain, tls=TlsConfig(authority=ROOT))


def test_nothing_secret_is_in_the_text_of_credentials() -> None:
    certificate, key = made("ours")
    tls: JsonObject = {"certificate": certificate, "key": key}
    found = credentials("W", "oauth2", {**CLIENT, "tls": tls, "token_tls": tls})
    for text in (repr(found), repr(found.oauth), repr(found.tls)):
        assert "s3cr3t" not in text
        assert "PRIVATE" not in text


def test_a_client_secret_stays_with_the_host_it_was_given_for() -> None:
    elsewhere: JsonObject = {**CLIENT, "token_url": "https://other.example/token"}
    assert sends_elsewhere(CLIENT, elsewhere)
    assert not sends_elsewhere(CLIENT, {**elsewhere, "client_secret": "another"})
    assert not sends_elsewhere(CLIENT, {**CLIENT, "token_url": "https://login.example/v2/token"})


def test_basic_is_encoded_and_may_have_an_empty_password() -> None:
    assert credentials("W", "basic", {"username": "ä", "password": "b:c"}).headers == {
        "Authorization": "Basic w6Q6Yjpj"
    }
    assert validate_auth_config("basic", {"username": "a", "password": ""}) == []


def test_each_of_several_headers_has_its_own_variable() -> None:
    found = credentials("my agent", "headers", {"X-Tenant": "acme", "X-Key": "Token abcdefgh"})
    assert found.headers == {"X-Tenant": "acme", "X-Key": "Token abcdefgh"}
    assert found.shown == {
        "x-tenant": "$TRUNKLINE_SECRET_MY_AGENT_X_TENANT",
        "x-key": "$TRUNKLINE_SECRET_MY_AGENT_X_KEY",
    }
    assert "abcdefgh" in found.secrets


def test_none_needs_nothing() -> None:
    assert credentials("a", "none", None) == NO_CREDENTIALS


def test_a_variable_is_a_name_that_a_shell_knows() -> None:
    assert secret_variable("Müller & Söhne/1") == "TRUNKLINE_SECRET_M_LLER_S_HNE_1"
    assert secret_variable("专家") == "TRUNKLINE_SECRET"


@pytest.mark.parametrize(
    ("auth_type", "config", "path"),
    [
        ("digest", {}, "auth_type"),
        ("none", {"token": "x"}, "auth_config.token"),
        ("bearer", None, "auth_config.token"),
        ("bearer", {"token": ""}, "auth_config.token"),
        ("bearer", {"token": 7}, "auth_config.token"),
        ("bearer", {"token": "a\r\nX-Evil: 1"}, "auth_config.token"),
        ("bearer", {"token": "copied\n"}, "auth_config.token"),
        ("bearer", {"token": "ключ"}, "auth_config.token"),
        ("bearer", {"token": "x", "tokn": "y"}, "auth_config.tokn"),
        ("api_key", {"name": "X-Key"}, "auth_config.value"),
        ("api_key", {"value": "v"}, "auth_config.name"),
        ("api_key", {"name": "X Key", "value": "v"}, "auth_config.name"),
        ("api_key", {"name": "Host", "value": "v"}, "auth_config.name"),
        ("api_key", {"name": "k", "value": "v", "in": "body"}, "auth_config.in"),
        ("basic", {"username": "a:b", "password": "c"}, "auth_config.username"),
        ("basic", {"username": "a", "password": "c\n"}, "auth_config.password"),
        ("basic", {"username": "a"}, "auth_config.password"),
        ("headers", {}, "auth_config"),
        ("headers", {"A": "1", "a": "2"}, "auth_config"),
        ("headers", {"X-A\r\n": "1"}, "auth_config.X-A\r\n"),
        ("headers", {"Content-Length": "0"}, "auth_config.Content-Length"),
        ("headers", {"Transfer-Encoding": "chunked"}, "auth_config.Transfer-Encoding"),
        ("headers", {"Content-Type": "text/plain"}, "auth_config.Content-Type"),
        ("headers", {"X-A": "1\r\n\r\nPOST / HTTP/1.1"}, "auth_config.X-A"),
        ("headers", {"tls": {"authority": "no"}}, "auth_config.tls.authority"),
        ("api_key", {"name": "a b", "value": "v", "in": "cookie"}, "auth_config.name"),
        ("api_key", {"name": "a", "value": "v; evil=1", "in": "cookie"}, "auth_config.value"),
        ("oauth2", {}, "auth_config.token_url"),
        ("oauth2", {**CLIENT, "token_url": "ftp://login.example"}, "auth_config.token_url"),
        ("oauth2", {**CLIENT, "token_url": "https://me:pw@login.example/"}, "auth_config.token_url"),
        ("oauth2", {**CLIENT, "client_id": ""}, "auth_config.client_id"),
        ("oauth2", {**CLIENT, "client_secret": None}, "auth_config.client_secret"),
        ("oauth2", {**CLIENT, "client_auth": "jwt"}, "auth_config.client_auth"),
        ("oauth2", {**CLIENT, "scope": ["a"]}, "auth_config.scope"),
        ("oauth2", {**CLIENT, "audience": "a\nb"}, "auth_config.audience"),
        ("oauth2", {**CLIENT, "token_tls": "yes"}, "auth_config.token_tls"),
        ("oauth2", {**CLIENT, "token_tls": {}}, "auth_config.token_tls"),
        ("bearer", {"token": "t0k3n", "tls": "yes"}, "auth_config.tls"),
        ("bearer", {"token": "t0k3n", "tls": {"ca": ROOT}}, "auth_config.tls.ca"),
        ("none", {"tls": {"certificate": ROOT}}, "auth_config.tls.key"),
        ("mtls", None, "auth_config.certificate"),
        ("mtls", {"certificate": ROOT}, "auth_config.key"),
        ("mtls", {"certificate": ROOT, "key": ROOT}, "auth_config.key"),
        ("mtls", {"certificate": "-----BEGIN", "key": KEY}, "auth_config.certificate"),
        ("mtls", {"certificate": ROOT, "key": made("another")[1]}, "auth_config.key"),
        ("mtls", {"certificate": ROOT, "key": KEY, "authority": KEY}, "auth_config.authority"),
        ("mtls", {"certificate": ROOT, "key": KEY, "authority": "ключ"}, "auth_config.authority"),
        ("mtls", {"certificate": ROOT, "key": KEY, "token": "t"}, "auth_config.token"),
        ("mtls", {"certificate": ROOT, "key": made("ours", "a password")[1]}, "auth_config.key"),
    ],
)
def test_what_cannot_be_used_is_refused_where_it_stands(
    auth_type: str, config: JsonObject | None, path: str
) -> None:
    findings = validate_auth_config(auth_type, config)
    assert path in [finding.path for finding in findings]
    with pytest.raises(Invalid):
        credentials("a", auth_type, config)


def test_a_refusal_never_repeats_a_secret() -> None:
    for auth_type in ("none", "bearer", "api_key", "basic", "headers", "oauth2", "mtls"):
        secret = "s3cr3t\n"
        config: JsonObject = {
            **dict.fromkeys(("token", "value", "password", "token_url", "client_secret", "key"), secret),
            "tls": {"authority": secret, "certificate": secret, "key": secret},
        }
        assert validate_auth_config(auth_type, config)
        assert all("s3cr3t" not in finding.message for finding in validate_auth_config(auth_type, config))
