"""Rules of a zone's door: whose token counts, where, when, and how often."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.rule import Rule

_DOOR = "tests/unit/zones/test_door.py"
_WRONG = f"{_DOOR}::test_a_token_that_is_wrong_is_refused_and_the_answer_does_not_say_why"
_POLICY = "tests/unit/zones/test_policy.py"
_CALLERS = "tests/scenarios/zones/test_callers.py"
_TOKENS = "zones/signed_tokens.py"

ZONE_DOOR: Sequence[Rule] = (
    Rule(
        name="token-for-this-zone",
        breaks="Whoever gets a token for another zone can call this one with it.",
        file=_TOKENS,
        old="if claims.aud not in (audience, [audience]):",
        new="if not claims.aud:",
        caught_by=(
            f"{_WRONG}[another zone]",
            f"{_WRONG}[two zones]",
            f"{_CALLERS}::test_a_token_that_is_wrong_runs_nothing[embedded-audience]",
        ),
    ),
    Rule(
        name="token-for-now",
        breaks="A token from an old log opens the zone.",
        file=_TOKENS,
        old="if claims.exp <= now - SKEW_SECONDS:",
        new="if claims.exp <= 0:",
        caught_by=(f"{_DOOR}::test_a_caller_is_known_before_its_body_is_read",),
    ),
    Rule(
        name="token-for-now-still",
        breaks="A token whose body is slow to come is used after it was forgotten that it had been used.",
        file="zones/door.py",
        old="if now >= token.until:",
        new="if now < 0:",
        caught_by=(f"{_DOOR}::test_a_token_that_runs_out_while_its_body_comes_is_refused",),
    ),
    Rule(
        name="token-for-minutes",
        breaks="One token that got lost is good for years.",
        file=_TOKENS,
        old="if not 0 < claims.exp - claims.iat <= MOST_TOKEN_SECONDS:",
        new="if claims.exp <= claims.iat:",
        caught_by=(f"{_WRONG}[longer than five minutes]", f"{_WRONG}[older than long]"),
    ),
    Rule(
        name="token-once",
        breaks="Who has read a call on its way can make it again.",
        file="zones/door.py",
        old="if not self._store.use_token(token.issuer, token.id, token.until, now):",
        new="if not token.id:",
        caught_by=(
            f"{_DOOR}::test_a_token_is_good_once_also_after_a_restart",
            f"{_CALLERS}::test_a_signed_call_is_answered_and_its_token_is_worth_nothing_any_more[embedded]",
        ),
    ),
    Rule(
        name="token-for-as-long-as-it-is-good",
        breaks="In the seconds by which clocks may differ a used token is good once more.",
        file=_TOKENS,
        old="until = Instant(int((claims.exp + SKEW_SECONDS) * _MICROSECONDS))",
        new="until = Instant(int(claims.iat * _MICROSECONDS))",
        caught_by=(f"{_DOOR}::test_a_used_token_stays_used_for_as_long_as_clocks_may_differ",),
    ),
    Rule(
        name="token-for-this-body",
        breaks="A token that was caught can carry any other call, if it comes first.",
        file=_TOKENS,
        old="return self.body is None or self.body == body_digest(body)",
        new="return self.body is None or bool(body)",
        caught_by=(
            f"{_WRONG}[for another body]",
            f"{_CALLERS}::test_a_token_of_one_request_does_not_carry_another[embedded]",
        ),
    ),
    Rule(
        name="algorithms-are-ours",
        breaks="Who knows the public key can sign with it, or not at all.",
        file="agents/authentication/signed_tokens.py",
        old="        if name not in ALGORITHMS:",
        new="        if name not in self.algorithms:",
        caught_by=(f"{_WRONG}[the algorithm none]", f"{_WRONG}[the public key as a shared secret]"),
    ),
    Rule(
        name="signed-by-its-issuer",
        breaks="Anybody can be any caller.",
        file=_TOKENS,
        old="return jws.validate_compact(signed, _key(key), registry=TOKEN_FORMS)",
        new="return bool(jws.validate_compact(signed, _key(key), registry=TOKEN_FORMS)) or True",
        caught_by=(f"{_WRONG}[another caller's key]", f"{_WRONG}[a signature of zeros]"),
    ),
    Rule(
        name="bad-token-is-nobody",
        breaks="A caller whose token is wrong is let in as anybody.",
        file="zones/door.py",
        old="if self._takes_tokens and shown.authorizations:",
        new="if self._takes_tokens and shown.authorizations and ANYBODY.name not in (self._policy.callers or {}):",
        caught_by=(f"{_DOOR}::test_a_bad_token_is_refused_although_anybody_may_call",),
    ),
    Rule(
        name="callers-on-the-list",
        breaks="A caller that the policy does not name may do what the defaults allow.",
        file="zones/policy.py",
        old="return None if own is None else _completed(own, self.defaults)",
        new="return _completed(own or Rules(), self.defaults)",
        caught_by=(
            f"{_DOOR}::test_a_refused_call_leaves_a_note_without_its_params",
            f"{_POLICY}::test_what_a_policy_decides[2]",
        ),
    ),
    Rule(
        name="caller-in-its-rate",
        breaks="One caller takes the zone from all others.",
        file="zones/policy.py",
        old="return Allowed(without(full, 1))",
        new="return Allowed(full)",
        caught_by=(
            f"{_POLICY}::test_no_window_lets_more_calls_in_than_the_burst_and_what_time_brings",
            f"{_DOOR}::test_a_caller_that_calls_too_often_is_told_to_wait_and_another_is_not",
            f"{_CALLERS}::test_what_a_policy_limits_is_refused_with_its_own_status[embedded]",
        ),
    ),
    Rule(
        name="names-of-the-certificate",
        breaks="The common name, which no authority checks, opens the zone.",
        file="zones/peers.py",
        old="    if names:\n        return names\n",
        new="",
        caught_by=(f"{_CALLERS}::test_a_certificate_is_as_good_as_a_token[embedded]",),
    ),
    Rule(
        name="handlers-secrets-in-no-log",
        breaks="A handler that breaks has the caller's token written to the log.",
        file="zones/handlers.py",
        old="traceback=redaction.text(text),",
        new="traceback=text,",
        caught_by=(
            "tests/scenarios/zones/test_zone_process.py::test_no_secret_of_a_call_is_logged_although_its_handler_repeats_it[embedded]",
        ),
    ),
    Rule(
        name="no-secret-in-a-zones-answer",
        breaks="A handler that repeats the token it was given has it kept in the zone's file and sent back.",
        file="zones/endpoint.py",
        old="perform = partial(without_echoes, perform, secrets)",
        new="secrets = ()",
        caught_by=(
            "tests/scenarios/zones/test_zone_process.py::test_no_answer_repeats_a_secret_of_its_call_and_none_is_kept[embedded]",
        ),
    ),
)
