"""Rules of the doors: who may come in, what is the same wish, and what must not come out."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.rule import Rule

_SECRETS = "tests/scenarios/test_secrets_on_topics.py"
_KEYS = "tests/scenarios/api/test_keys.py"

DOORS: Sequence[Rule] = (
    Rule(
        name="key-at-every-door",
        breaks="Anybody on the network can start runs.",
        file="api/app.py",
        old="return _guarded(Shortcut(app, runs.execute), services)",
        new="return Shortcut(_guarded(app, services), runs.execute)",
        caught_by=(f"{_KEYS}::test_no_door_but_livez_and_the_hooks_of_agents_opens_without_a_key",),
    ),
    Rule(
        name="revoked-key",
        breaks="A key that was revoked opens everything.",
        file="api/auth.py",
        old="if key.revoked_at is not None:",
        new="if key.revoked_at == 0:",
        caught_by=(f"{_KEYS}::test_a_revoked_key_opens_nothing_after_two_seconds",),
    ),
    Rule(
        name="idempotency-key",
        breaks="A client that asks again because it got no answer starts a second run.",
        file="services/runs.py",
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
        file="services/commands.py",
        old="idempotency_key=idempotency_key(record)",
        new="idempotency_key=None",
        caught_by=("tests/scenarios/test_commands.py::test_a_record_that_comes_again_starts_nothing",),
    ),
    Rule(
        name="no-secret-in-a-message",
        breaks="An agent that repeats its credentials has them written to topics, database and logs.",
        file="bridge/talk.py",
        old="outcome = without_echoes(partner.adapter.decode(answer, self._task), partner.redaction)",
        new="outcome = partner.adapter.decode(answer, self._task)",
        caught_by=(f"{_SECRETS}::test_neither_credentials_nor_their_echo_are_in_a_message",),
    ),
)
