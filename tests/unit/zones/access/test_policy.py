from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.agents.call_limits.token_bucket import TokenBucket
from trunkline.agents.model import RateLimit
from trunkline.clock import Instant
from trunkline.jsontypes import JsonObject
from trunkline.zones.access.policy import (
    ANYBODY,
    OPEN_POLICY,
    AccessDecision,
    AuthenticationMethod,
    CallAllowed,
    CallRefused,
    ZoneCaller,
    ZonePolicy,
    decide,
)
from trunkline.zones.access.policy_file import read_policy

NOW = Instant(1_760_000_000_000_000)
SECOND = 1_000_000
SLACK: JsonObject = {"channel": "C1", "text": "Hello", "bot_token": "xoxb-secret"}
CERTIFIED: JsonObject = {"certificates": ["verification.example"]}


def caller(name: str = "verification", known_by: AuthenticationMethod = "certificate") -> ZoneCaller:
    return ZoneCaller(name=name, known_by=known_by)


def asked(
    policy: ZonePolicy,
    who: ZoneCaller | None = None,
    *,
    method: str = "execute_task",
    params: JsonObject = SLACK,
    size: int = 100,
    now: int = NOW,
    bucket: TokenBucket | None = None,
) -> AccessDecision:
    return decide(
        policy,
        who or caller(),
        method=method,
        params=params,
        size=size,
        now=Instant(now),
        bucket=bucket,
    )


@pytest.mark.parametrize(
    ("document", "who", "method", "params", "size", "reason"),
    [
        ({}, ANYBODY, "execute_task", SLACK, 10**9, None),
        ({"callers": {"verification": CERTIFIED}}, caller(), "execute_task", SLACK, 1, None),
        (
            {"callers": {"verification": CERTIFIED}},
            caller("other"),
            "execute_task",
            SLACK,
            1,
            "caller_not_allowed",
        ),
        ({"callers": {"verification": CERTIFIED}}, ANYBODY, "execute_task", SLACK, 1, "caller_not_allowed"),
        ({"callers": {"verification": CERTIFIED}}, ANYBODY, "get_task_result", {}, 1, "caller_not_allowed"),
        ({"callers": {"anybody": {}}}, ANYBODY, "execute_task", SLACK, 1, None),
        ({"callers": {"parent": {}}}, caller("parent", "parent"), "execute_task", SLACK, 1, None),
        (
            {"callers": {"platform": {}}},
            caller("parent", "parent"),
            "execute_task",
            SLACK,
            1,
            "caller_not_allowed",
        ),
        ({"defaults": {"methods": ["execute_task"]}}, ANYBODY, "execute_task", SLACK, 1, None),
        ({"defaults": {"methods": ["execute_task"]}}, ANYBODY, "delete_all", SLACK, 1, "method_not_allowed"),
        (
            {"defaults": {"methods": ["execute_task"]}},
            ANYBODY,
            "Execute_Task",
            SLACK,
            1,
            "method_not_allowed",
        ),
        ({"defaults": {"methods": ["execute_task"]}}, ANYBODY, "get_task_result", {}, 1, None),
        ({"defaults": {"methods": ["execute_task"]}}, ANYBODY, "GetAsyncTaskResult", {}, 1, None),
        ({"defaults": {"profiles": ["slack"]}}, ANYBODY, "execute_task", SLACK, 1, None),
        (
            {"defaults": {"profiles": ["slack"]}},
            ANYBODY,
            "execute_task",
            {"text": "x"},
            1,
            "profile_not_allowed",
        ),
        ({"defaults": {"profiles": ["slack", "any"]}}, ANYBODY, "execute_task", {"text": "x"}, 1, None),
        ({"defaults": {"profiles": ["slack"]}}, ANYBODY, "get_task_result", {"task_id": "t"}, 1, None),
        ({"defaults": {"max_bytes": 10}}, ANYBODY, "execute_task", SLACK, 10, None),
        ({"defaults": {"max_bytes": 10}}, ANYBODY, "execute_task", SLACK, 11, "too_large"),
        ({"defaults": {"max_bytes": 10}}, ANYBODY, "get_task_result", {}, 11, "too_large"),
    ],
    ids=range(20),
)
def test_what_a_policy_decides(
    document: JsonObject, who: ZoneCaller, method: str, params: JsonObject, size: int, reason: str | None
) -> None:
    decision = asked(read_policy(document), who, method=method, params=params, size=size)
    assert (decision.reason if isinstance(decision, CallRefused) else None) == reason


def test_a_callers_own_rules_go_before_the_defaults() -> None:
    policy = read_policy(
        {
            "defaults": {"methods": ["execute_task"], "max_bytes": 10, "rate": 1, "profiles": ["slack"]},
            "callers": {
                "verification": {**CERTIFIED, "methods": ["purge"], "max_bytes": 20, "profiles": ["any"]},
                "other": {"certificates": ["other.example"]},
            },
        }
    )
    assert isinstance(asked(policy, method="purge", params={}, size=20), CallAllowed)
    assert isinstance(asked(policy, method="execute_task", params={}, size=20), CallRefused)
    assert isinstance(asked(policy, caller("other"), size=10), CallAllowed)
    assert isinstance(asked(policy, caller("other"), method="purge", size=10), CallRefused)


@pytest.mark.parametrize(
    ("document", "params", "size", "status"),
    [
        ({"callers": {"verification": CERTIFIED}}, SLACK, 1, 403),
        ({"defaults": {"max_bytes": 10}}, SLACK, 11, 413),
    ],
    ids=["caller", "size"],
)
def test_a_refusal_says_what_to_do_and_repeats_nothing(
    document: JsonObject, params: JsonObject, size: int, status: int
) -> None:
    refused = asked(read_policy(document), ANYBODY, params=params, size=size)
    assert isinstance(refused, CallRefused)
    assert (refused.status, refused.code) == (status, -32000)
    assert refused.fault().message == refused.message
    assert "xoxb" not in refused.message
    assert refused.message.endswith(".")


def test_params_that_fit_no_profile_are_answered_by_the_one_they_come_closest_to() -> None:
    policy = read_policy({"defaults": {"profiles": ["slack"]}})
    refused = asked(policy, ANYBODY, params={**SLACK, "channel": 7})
    assert isinstance(refused, CallRefused)
    fault = refused.fault()
    assert (refused.status, fault.code, fault.message) == (200, -32602, "Invalid params")
    assert str(fault.data).count("'path'") == 1
    assert "channel" in str(fault.data)
    assert "xoxb" not in str(fault.data)


def test_an_open_policy_lets_anybody_call() -> None:
    assert asked(OPEN_POLICY, ANYBODY) == CallAllowed()


def test_the_rate_lets_a_burst_through_and_then_says_when_to_come_again() -> None:
    policy = read_policy({"defaults": {"rate": {"per_second": 0.5, "burst": 3}}})
    bucket = None
    for _ in range(3):
        decision = asked(policy, bucket=bucket)
        assert isinstance(decision, CallAllowed)
        bucket = decision.bucket
    refused = asked(policy, bucket=bucket)
    assert isinstance(refused, CallRefused)
    assert (refused.reason, refused.status, refused.retry_after) == ("too_fast", 429, 2)
    assert isinstance(asked(policy, bucket=bucket, now=NOW + 2 * SECOND), CallAllowed)


def test_asking_for_a_result_takes_nothing_from_the_rate() -> None:
    policy = read_policy({"defaults": {"rate": 1}})
    empty = TokenBucket(0.0, NOW)
    assert asked(policy, method="get_task_result", bucket=empty) == CallAllowed(empty)
    assert isinstance(asked(policy, bucket=empty), CallRefused)


def test_a_refusal_for_another_reason_takes_nothing_from_the_rate() -> None:
    policy = read_policy({"defaults": {"rate": 1, "methods": ["execute_task"]}})
    refused = asked(policy, method="purge", bucket=TokenBucket(0.0, NOW))
    assert isinstance(refused, CallRefused)
    assert refused.reason == "method_not_allowed"


@given(
    per_second=st.floats(0.01, 1_000, allow_nan=False),
    burst=st.integers(1, 50),
    gaps=st.lists(st.integers(0, 5 * SECOND), max_size=200),
)
def test_no_window_lets_more_calls_in_than_the_burst_and_what_time_brings(
    per_second: float, burst: int, gaps: list[int]
) -> None:
    policy = read_policy({"defaults": {"rate": {"per_second": per_second, "burst": burst}}})
    now, bucket, let_in = int(NOW), None, list[int]()
    for gap in gaps:
        now += gap
        decision = asked(policy, now=now, bucket=bucket)
        if isinstance(decision, CallAllowed):
            bucket = decision.bucket
            let_in.append(now)
    for first, start in enumerate(let_in):
        for last, end in enumerate(let_in[first:], start=1):
            assert last <= burst + per_second * (end - start) / SECOND + 1e-6


@given(
    per_second=st.floats(0.01, 1_000, allow_nan=False),
    tokens=st.floats(0, 0.99, allow_nan=False),
)
def test_a_caller_that_waits_for_retry_after_is_accepted(per_second: float, tokens: float) -> None:
    policy = read_policy({"defaults": {"rate": per_second}})
    refused = asked(policy, bucket=TokenBucket(tokens, NOW))
    assert isinstance(refused, CallRefused)
    assert refused.retry_after is not None
    later = NOW + refused.retry_after * SECOND
    assert isinstance(asked(policy, now=later, bucket=TokenBucket(tokens, NOW)), CallAllowed)


def test_secret_fields_are_found_however_deep_they_stand() -> None:
    policy = read_policy({"secret_fields": ["pin"]})
    params: JsonObject = {
        "text": "Hello",
        "bot_token": "xoxb-1",
        "attachments": [{"url": "http://x", "api_key": "k-1", "more": {"pin": 1234}}],
        "credentials": {"user": "me", "list": ["a", "b", None, True]},
    }
    assert policy.secrets_in(params) == ("xoxb-1", "k-1", "1234", "me", "a", "b")


def test_only_the_named_secret_fields_are_no_part_of_what_a_call_is() -> None:
    policy = read_policy({"secret_fields": ["pin"]})
    params: JsonObject = {"text": "Hello", "bot_token": "xoxb-1", "pin": 1, "author": "me"}
    assert policy.identity_of(params) == {"text": "Hello", "author": "me"}
    assert policy.hides("author")


def test_a_rate_may_be_a_number_alone() -> None:
    assert read_policy({"defaults": {"rate": 2}}).defaults.rate == RateLimit(per_second=2.0, burst=1)
