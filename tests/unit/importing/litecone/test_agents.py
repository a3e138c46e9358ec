"""litecone's agents as `agents apply` takes them, without their secrets."""

from __future__ import annotations

import msgspec
import pytest

from trunkline.cli.commands.deployment.import_definitions import findings_of_agent
from trunkline.importing.litecone import import_files
from trunkline.jsontypes import JsonObject
from trunkline.services.agents.specs import parse_spec

SECRET = "s3cr3t-of-the-test"


def test_what_an_agent_has_is_carried_over() -> None:
    source: JsonObject = {
        "id": "1", "name": "Research", "url": "http://research:8081", "description": "Finds things.",
        "auth_type": "none", "auth_config": None, "timeout_ms": 30_000, "status": "active", "created_by": None,
        "retry_config": {"max_retries": 3, "initial_delay_ms": 500, "max_delay_ms": 30_000, "backoff_multiplier": 2.0},
        "circuit_breaker_config": {"enabled": True, "failure_threshold": 4, "failure_rate_threshold": 0.25,
                                   "timeout_seconds": 60, "half_open_max_calls": 3},
    }  # fmt: skip
    found = import_files([("agents.json", {"agents": [source]})])
    assert found.agents == (
        {
            "name": "Research", "url": "http://research:8081", "description": "Finds things.", "timeout_ms": 30_000,
            "retry": {"max_attempts": 4, "first_delay": "500ms", "max_delay": "30000ms"},
            "breaker": {"failures": 4, "rate": 0.25, "open_ms": 60_000, "probes": 3},
        },
    )  # fmt: skip
    assert found.lost == 0
    assert parse_spec(found.agents[0]).timeout_ms == 30_000


@pytest.mark.parametrize(
    ("auth", "config"),
    [
        (
            {"auth_type": "bearer", "auth_config": {"token": SECRET}},
            {"token": {"env": "TRUNKLINE_SECRET_MY_AGENT"}},
        ),
        (
            {"auth_config": {"type": "bearer", "token": SECRET}},
            {"token": {"env": "TRUNKLINE_SECRET_MY_AGENT"}},
        ),
        (
            {"auth_type": "apikey", "auth_config": {"key": SECRET, "header_name": "X-Key"}},
            {"name": "X-Key", "value": {"env": "TRUNKLINE_SECRET_MY_AGENT"}, "in": "header"},
        ),
        (
            {"auth_type": "apikey", "auth_config": {"api_key": SECRET}},
            {"name": "X-API-Key", "value": {"env": "TRUNKLINE_SECRET_MY_AGENT"}, "in": "header"},
        ),
    ],
)
def test_a_secret_is_named_and_never_repeated(auth: JsonObject, config: JsonObject) -> None:
    found = import_files([("a.json", {"name": "my agent", "url": "http://a", **auth})])
    assert found.agents[0]["auth_config"] == config
    assert found.lost == 0
    assert [remark.fix for remark in found.remarks] == [
        "Set the environment variable TRUNKLINE_SECRET_MY_AGENT before you apply the agents."
    ]
    assert SECRET not in str(msgspec.to_builtins(found))


@pytest.mark.parametrize(
    "agent",
    [
        {"auth_type": "bearer", "auth_config": SECRET},
        {"auth_type": "bearer", "auth_config": [SECRET]},
        {"auth_type": "bearer", "auth_config": {"token": "x", "other": SECRET}},
        {"auth_type": SECRET},
        {"auth_type": "none", "auth_config": {"token": SECRET}},
        {"auth_type": "apikey", "auth_config": {"key": "x", "header_name": {"a": SECRET}}},
        {"auth_type": "apikey", "auth_config": {"key": "x", "header_name": 7, "type": [SECRET]}},
        {"url": f"http://user:{SECRET}@host/path"},
        {"url": f"http://host/path?token={SECRET}"},
        {"url": f"http://{SECRET}@host?a=b&x={SECRET}#?{SECRET}"},
        {"url": f"user:{SECRET}@host/path"},
    ],
)
def test_a_secret_in_the_wrong_place_is_not_repeated_either(agent: JsonObject) -> None:
    found = import_files([("a.json", {"name": "A", "url": "http://a", **agent})], findings_of_agent)
    assert found.lost
    assert SECRET not in str(msgspec.to_builtins(found))


def test_an_address_keeps_all_but_its_secrets() -> None:
    source: JsonObject = {"name": "A", "url": f"http://me:{SECRET}@a:81/b/c?token={SECRET}"}
    found = import_files([("a.json", source)], findings_of_agent)
    assert found.agents == ({"name": "A", "url": "http://a:81/b/c"},)
    assert [(remark.path, "left out" in remark.message) for remark in found.remarks] == [("url", True)] * 2


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        ({"url": "javascript:alert(1)"}, "url: cannot be called"),
        ({"name": "A\nB"}, "name: must not contain control characters"),
        ({"name": "A/B"}, "name: must not contain '/'"),
        ({"protocol": "smoke-signals"}, "Unsupported protocol"),
        ({"timeout_ms": 10**9}, "timeout_ms: must be from 1 to"),
        ({"auth_type": "apikey", "auth_config": {"key": SECRET, "header_name": "X Key"}}, "auth_config"),
    ],
)
def test_an_agent_that_could_not_be_registered_is_reported_and_left_out(
    agent: JsonObject, message: str
) -> None:
    other: JsonObject = {"name": "Other", "url": "http://other"}
    source: JsonObject = {"name": "A", "url": "http://a", **agent}
    found = import_files([("a.json", [source, other])], findings_of_agent)
    assert found.agents == (other,)
    (loss,) = (remark for remark in found.remarks if remark.kind == "lost")
    assert message in loss.message
    assert loss.fix
    assert SECRET not in str(msgspec.to_builtins(found))


@pytest.mark.parametrize(
    "auth",
    [
        {"auth_type": "bearer", "auth_config": {"token": SECRET}},
        {"auth_type": "apikey", "auth_config": {"key": SECRET}},
        {},
    ],
)
def test_an_agent_whose_secret_is_yet_to_be_given_can_be_registered(auth: JsonObject) -> None:
    found = import_files([("a.json", {"name": "A", "url": "http://a", **auth})], findings_of_agent)
    assert (len(found.agents), found.lost) == (1, 0)


@pytest.mark.parametrize(
    ("agent", "path"),
    [
        ({"retry_config": {"backoff_multiplier": 1.5}}, "retry_config.backoff_multiplier"),
        (
            {"circuit_breaker_config": {"window_size_seconds": 60}},
            "circuit_breaker_config.window_size_seconds",
        ),
        ({"timeout_ms": "soon"}, "timeout_ms"),
        ({"status": "inactive"}, "status"),
        ({"capabilities": ["x"]}, "capabilities"),
        ({"name": None}, ""),
    ],
)
def test_what_is_not_converted_is_reported(agent: JsonObject, path: str) -> None:
    found = import_files([("a.json", {"name": "A", "url": "http://a", **agent})])
    assert [remark.path for remark in found.remarks if remark.kind == "lost"] == [path]


def test_a_breaker_that_is_off_stays_off() -> None:
    found = import_files(
        [("a.json", {"name": "A", "url": "http://a", "circuit_breaker_config": {"enabled": False}})]
    )
    assert found.agents == ({"name": "A", "url": "http://a"},)
    assert found.lost == 0
