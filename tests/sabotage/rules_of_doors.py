"""Rules of the doors: who may come in, what is the same wish, and what must not come out."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.rule import Rule

_SECRETS = "tests/scenarios/test_secrets_on_topics.py"
_KEYS = "tests/scenarios/api/test_keys.py"
_HOOKS = "tests/unit/services/agents/test_push_notifications.py"

DOORS: Sequence[Rule] = (
    Rule(
        name="key-at-every-door",
        breaks="Anybody on the network can start runs.",
        file="api/app.py",
        old="_checked(Shortcut(app, runs.execute), services)",
        new="Shortcut(_checked(app, services), runs.execute)",
        caught_by=(f"{_KEYS}::test_no_door_but_livez_and_the_hooks_of_agents_opens_without_a_key",),
    ),
    Rule(
        name="pages-of-other-websites",
        breaks="A website that a developer looks at starts and deletes things in the Trunkline on the same machine.",
        file="api/middleware/origin_check.py",
        old='if scope["method"] not in _READING and _is_foreign(scope, host):',
        new='if scope["method"] in _READING and _is_foreign(scope, host):',
        caught_by=("tests/unit/api/middleware/test_origin_check.py::test_a_foreign_page_changes_nothing",),
    ),
    Rule(
        name="foreign-names-that-lead-here",
        breaks="A website whose name is made to lead to this machine reads everything.",
        file="wiring/system.py",
        old="names=_public_names(settings) if keys is None else None,",
        new="names=None,",
        caught_by=(f"{_KEYS}::test_without_keys_nobody_comes_in_by_a_foreign_name",),
    ),
    Rule(
        name="revoked-key",
        breaks="A key that was revoked opens everything.",
        file="api/middleware/auth.py",
        old="if key.revoked_at is not None:",
        new="if key.revoked_at == 0:",
        caught_by=(f"{_KEYS}::test_a_revoked_key_opens_nothing_after_two_seconds",),
    ),
    Rule(
        name="idempotency-key",
        breaks="A client that asks again because it got no answer starts a second run.",
        file="services/runs/runs.py",
        old="            idempotency_key=idempotency_key,\n            request_digest",
        new="            idempotency_key=None,\n            request_digest",
        caught_by=(
            "tests/scenarios/api/test_executing.py::test_an_idempotency_key_starts_one_run",
            "tests/scenarios/test_many_runs.py::test_a_key_that_comes_many_times_at_once_starts_one_run",
        ),
    ),
    Rule(
        name="command-by-its-key",
        breaks="A command that the broker delivers twice starts two runs.",
        file="services/messaging/start_commands.py",
        old="idempotency_key=idempotency_key(record)",
        new="idempotency_key=None",
        caught_by=("tests/scenarios/test_commands.py::test_a_record_that_comes_again_starts_nothing",),
    ),
    Rule(
        name="no-secret-in-a-message",
        breaks="An agent that repeats its credentials has them written to topics, database and logs.",
        file="bridge/calls/session.py",
        old="outcome = redact_outcome(resolved.adapter.decode(answer, self._task), resolved.redaction)",
        new="outcome = resolved.adapter.decode(answer, self._task)",
        caught_by=(f"{_SECRETS}::test_neither_credentials_nor_their_echo_are_in_a_message",),
    ),
    Rule(
        name="hook-address-is-ours",
        breaks="Whoever has one token can have any task asked for.",
        file="services/agents/push_notifications.py",
        old="if not (is_ours & has_token) or",
        new="if not has_token or",
        caught_by=(f"{_HOOKS}::test_a_forged_address_opens_nothing[cut]",),
    ),
    Rule(
        name="hook-token-came-along",
        breaks="Who has read an address in some log can ring at it.",
        file="services/agents/push_notifications.py",
        old="if not (is_ours & has_token) or",
        new="if not is_ours or",
        caught_by=(f"{_HOOKS}::test_a_wrong_token_opens_nothing[x]",),
    ),
    Rule(
        name="hook-address-in-no-log",
        breaks="Who reads the log can ring.",
        file="api/problems.py",
        old='f"{_HOOKS_PREFIX}***" if path.startswith(_HOOKS_PREFIX) else path',
        new="path",
        caught_by=(
            "tests/scenarios/api/test_hooks.py::test_neither_the_address_nor_the_token_is_in_the_log[embedded]",
        ),
    ),
    Rule(
        name="answer-to-its-question",
        breaks="Of two people who answer at once the second one answers a question that he has not read.",
        file="services/runs/runs.py",
        old="if item is not None and item != item_id(",
        new="if item == item_id(",
        caught_by=(
            "tests/scenarios/test_inbox.py::test_an_answer_to_a_question_that_was_answered_is_refused[embedded]",
        ),
    ),
)
