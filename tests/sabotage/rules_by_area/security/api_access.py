"""Rules of access to the REST interface: authentication, idempotency, and what must not be disclosed."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.mutation import Change
from tests.sabotage.rule import Rule

_SECRETS = "tests/scenarios/test_secrets_on_topics.py"
_KEYS = "tests/scenarios/api/test_keys.py"
_ORIGIN = "tests/unit/api/middleware/test_origin_check.py"
_REFUSALS = "tests/unit/api/middleware/test_auth.py"
_KEY_LIMITS = "tests/unit/api/middleware/test_key_limits.py"
_HOOKS = "tests/unit/services/agents/test_push_notifications.py"

API_ACCESS: Sequence[Rule] = (
    Rule(
        name="key-for-every-request",
        breaks="Every client on the network can start runs.",
        symbol="trunkline.api.app:_checked",
        change=Change("condition", 1, of=1, becomes="True"),
        caught_by=(f"{_KEYS}::test_only_livez_and_the_hooks_of_agents_answer_without_a_key",),
    ),
    Rule(
        name="pages-of-other-websites",
        breaks="A website that a developer visits creates and deletes things in the Trunkline on the same machine.",
        symbol="trunkline.api.middleware.origin_check:OriginCheck._refusal",
        change=Change("operand", 8, of=9, becomes="it.left in it.comparators[0]"),
        caught_by=(f"{_ORIGIN}::test_a_foreign_page_changes_nothing",),
    ),
    Rule(
        name="dns-rebinding",
        breaks="A website whose name resolves to this machine can read everything.",
        symbol="trunkline.wiring.system:open_system",
        change=Change("keyword", 17, of=23, becomes="None"),
        caught_by=(f"{_KEYS}::test_without_keys_no_foreign_host_name_is_accepted",),
    ),
    Rule(
        name="public-url-without-keys",
        breaks="Everyone who reaches public_url can use the whole API without a key.",
        symbol="trunkline.api.middleware.origin_check:OriginCheck._refusal",
        change=Change("condition", 2, of=4, becomes="False"),
        caught_by=(f"{_ORIGIN}::test_without_keys_the_public_name_opens_what_agents_call_and_nothing_else",),
    ),
    Rule(
        name="stream-of-a-revoked-key",
        breaks="A client with a revoked key continues to receive events as long as its stream is open.",
        symbol="trunkline.api.middleware.auth:wait_until_revoked",
        change=Change("condition", 3, of=3, becomes="False"),
        caught_by=(f"{_KEYS}::test_a_stream_ends_when_its_key_is_revoked",),
    ),
    Rule(
        name="refusals-in-the-log",
        breaks="Clients from many addresses can fill the disk with log lines about refused requests.",
        symbol="trunkline.api.middleware.auth:RefusalLog.admit",
        change=Change("condition", 2, of=2, becomes="False"),
        caught_by=(
            f"{_REFUSALS}::test_more_addresses_than_the_table_has_room_for_are_not_logged_in_the_same_second",
        ),
    ),
    Rule(
        name="revoked-key",
        breaks="A revoked key still gives access.",
        symbol="trunkline.api.middleware.auth:ApiKeyCheck._refusal",
        change=Change("condition", 4, of=6, becomes="False"),
        caught_by=(f"{_KEYS}::test_a_revoked_key_opens_nothing_after_two_seconds",),
    ),
    Rule(
        name="expired-key",
        breaks="A key gives access after it has expired.",
        symbol="trunkline.api.middleware.auth:ApiKeyCheck._refusal",
        change=Change("condition", 5, of=6, becomes="False"),
        caught_by=(f"{_KEYS}::test_a_key_opens_nothing_once_it_has_expired",),
    ),
    Rule(
        name="key-does-not-revoke-itself",
        breaks="An admin revokes the key in use by mistake, and then has no access to the API.",
        symbol="trunkline.services.security.api_keys:ApiKeys.revoke",
        change=Change("condition", 1, of=3, becomes="False"),
        caught_by=(f"{_KEYS}::test_a_key_does_not_revoke_itself",),
    ),
    Rule(
        name="requests-of-one-key",
        breaks="One client with a viewer's key can have so many requests in progress that all others wait.",
        symbol="trunkline.api.middleware.key_limits:_ClientLimits.request",
        change=Change("condition", 1, of=4, becomes="False"),
        caught_by=(
            f"{_KEY_LIMITS}::test_a_key_has_so_many_requests_in_progress_and_others_are_not_affected",
        ),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="rate-of-one-key",
        breaks="One client with a viewer's key can send so many requests that all others wait.",
        symbol="trunkline.api.middleware.key_limits:_ClientLimits.request",
        change=Change("condition", 3, of=4, becomes="False"),
        caught_by=(f"{_KEY_LIMITS}::test_a_key_sends_so_many_requests_a_second_and_others_are_not_affected",),
    ),
    Rule(
        name="limits-of-addresses-take-no-memory",
        breaks="Requests without a key from many addresses take memory that is never given back.",
        symbol="trunkline.api.middleware.key_limits:_ClientLimits.request",
        change=Change("condition", 2, of=4, becomes="False"),
        caught_by=(f"{_KEY_LIMITS}::test_addresses_beyond_the_limit_take_no_memory",),
        shows="TooManyRequests",
    ),
    Rule(
        name="rate-of-callers-without-a-key",
        breaks="Anyone can send so many requests to a public publication that all others wait.",
        symbol="trunkline.api.middleware.auth:ApiKeyCheck.__call__",
        change=Change("condition", 6, of=6, becomes="False"),
        caught_by=("tests/scenarios/publishing/test_callers.py::test_an_address_without_a_key_has_a_rate",),
    ),
    Rule(
        name="idempotency-key",
        breaks="A client that repeats a request because it got no answer starts a second run.",
        symbol="trunkline.services.runs.runs:Runs._start",
        change=Change("keyword", 8, of=23, becomes="None"),
        caught_by=(
            "tests/scenarios/api/test_execute.py::test_an_idempotency_key_starts_one_run",
            "tests/scenarios/test_many_runs.py::test_a_key_that_comes_many_times_at_once_starts_one_run",
        ),
    ),
    Rule(
        name="command-by-its-key",
        breaks="A command that the broker delivers twice starts two runs.",
        symbol="trunkline.services.messaging.start_commands:StartCommandConsumer._start",
        change=Change("keyword", 2, of=3, becomes="None"),
        caught_by=("tests/scenarios/test_start_commands.py::test_a_record_that_comes_again_starts_nothing",),
    ),
    Rule(
        name="no-secret-in-a-message",
        breaks="Credentials that an agent repeats in its answer are written to topics, database and logs.",
        symbol="trunkline.bridge.calls.agent_client:TaskTranslator.decode",
        change=Change("assigned value", 3, of=3, becomes="it.args[0]"),
        caught_by=(f"{_SECRETS}::test_neither_credentials_nor_their_echo_are_in_a_message",),
    ),
    Rule(
        name="push-address-is-verified",
        breaks="A caller with one push token can have any task polled.",
        symbol="trunkline.services.agents.push_notifications:PushTokenKey.opened",
        change=Change("assigned value", 4, of=7, becomes="True"),
        caught_by=(f"{_HOOKS}::test_a_forged_address_opens_nothing[cut]",),
    ),
    Rule(
        name="push-token-is-required",
        breaks="A caller that found a push address in a log can trigger polls.",
        symbol="trunkline.services.agents.push_notifications:PushTokenKey.opened",
        change=Change("assigned value", 5, of=7, becomes="True"),
        caught_by=(f"{_HOOKS}::test_a_wrong_token_opens_nothing[x]",),
    ),
    Rule(
        name="push-address-in-no-log",
        breaks="A person who can read the log can trigger polls.",
        symbol="trunkline.api.problems:redacted_path",
        change=Change("return value", becomes="path"),
        caught_by=(
            "tests/scenarios/api/test_push_notifications.py::test_neither_the_address_nor_the_token_is_in_the_log[embedded]",
        ),
    ),
    Rule(
        name="answer-to-its-question",
        breaks="When two people answer at the same time, the second answers a question that they have not read.",
        symbol="trunkline.services.runs.runs:_check_question",
        change=Change("condition", 4, of=4, becomes="it.values[0].left == it.values[1].comparators[0]"),
        caught_by=(
            "tests/scenarios/test_inbox.py::test_an_answer_to_a_question_that_was_answered_is_refused[embedded]",
        ),
    ),
)
