from __future__ import annotations

import pytest

from trunkline.agents.auth import NO_CREDENTIALS, credentials, secret_variable, validate_auth_config
from trunkline.errors import Invalid
from trunkline.jsontypes import JsonObject


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
    for auth_type in ("bearer", "api_key", "basic", "headers"):
        secret = "s3cr3t\n"
        config: JsonObject = {"token": secret, "value": secret, "password": secret}
        assert all("s3cr3t" not in finding.message for finding in validate_auth_config(auth_type, config))
