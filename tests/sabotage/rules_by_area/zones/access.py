"""Rules of a zone's door: whose token counts, where, when, and how often."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.mutation import Change, Drop
from tests.sabotage.rule import Rule

_DOOR = "tests/unit/zones/access/test_control.py"
_WRONG = f"{_DOOR}::test_a_token_that_is_wrong_is_refused_and_the_answer_does_not_say_why"
_POLICY = "tests/unit/zones/access/test_policy.py"
_CALLERS = "tests/scenarios/zones/test_callers.py"
_TOKENS = "zones/access/signed_tokens.py"

ZONE_ACCESS: Sequence[Rule] = (
    Rule(
        name="token-for-this-zone",
        breaks="Whoever gets a token for another zone can call this one with it.",
        symbol="trunkline.zones.access.signed_tokens:_wrong_claim",
        change=Change("condition", 1, of=2, becomes="False"),
        caught_by=(
            f"{_WRONG}[another zone]",
            f"{_WRONG}[two zones]",
            f"{_CALLERS}::test_a_token_that_is_wrong_runs_nothing[embedded-audience]",
        ),
    ),
    Rule(
        name="token-for-now",
        breaks="A token from an old log opens the zone.",
        symbol="trunkline.zones.access.signed_tokens:_wrong_time",
        change=Change("condition", 1, of=3, becomes="False"),
        caught_by=(f"{_DOOR}::test_a_caller_is_known_before_its_body_is_read",),
    ),
    Rule(
        name="token-for-now-still",
        breaks="A token whose body is slow to come is used after it was forgotten that it had been used.",
        symbol="trunkline.zones.access.control:AccessControl.check_body",
        change=Change("condition", 2, of=4, becomes="False"),
        caught_by=(f"{_DOOR}::test_a_token_that_runs_out_while_its_body_comes_is_refused",),
    ),
    Rule(
        name="token-for-minutes",
        breaks="One token that got lost is good for years.",
        symbol="trunkline.zones.access.signed_tokens:_wrong_time",
        change=Change(
            "condition", 3, of=3, becomes="it.operand.comparators[0].left <= it.operand.comparators[0].right"
        ),
        caught_by=(f"{_WRONG}[longer than five minutes]", f"{_WRONG}[older than long]"),
    ),
    Rule(
        name="token-once",
        breaks="Who has read a call on its way can make it again.",
        symbol="trunkline.zones.access.control:AccessControl.check_body",
        change=Change("condition", 4, of=4, becomes="False"),
        caught_by=(
            f"{_DOOR}::test_a_token_is_good_once_also_after_a_restart",
            f"{_CALLERS}::test_a_signed_call_is_answered_and_its_token_is_worth_nothing_any_more[embedded]",
        ),
    ),
    Rule(
        name="token-for-as-long-as-it-is-good",
        breaks="In the seconds by which clocks may differ a used token is good once more.",
        symbol="trunkline.zones.access.signed_tokens:read_token",
        change=Change("argument", 16, of=16, becomes="it.left.left.value.iat * it.right"),
        caught_by=(f"{_DOOR}::test_a_used_token_stays_used_for_as_long_as_clocks_may_differ",),
    ),
    Rule(
        name="token-for-this-body",
        breaks="A token that was caught can carry any other call, if it comes first.",
        symbol="trunkline.zones.access.signed_tokens:VerifiedToken.is_for",
        change=Change("operand", 2, of=2, becomes="True"),
        caught_by=(
            f"{_WRONG}[for another body]",
            f"{_CALLERS}::test_a_token_of_one_request_does_not_carry_another[embedded]",
        ),
    ),
    Rule(
        name="algorithms-are-ours",
        breaks="Who knows the public key can sign with it, or not at all.",
        symbol="trunkline.agents.authentication.signed_tokens:TokenAlgorithms.get_alg",
        change=Change("condition", becomes="it.left not in self.algorithms"),
        caught_by=(f"{_WRONG}[the algorithm none]", f"{_WRONG}[the public key as a shared secret]"),
    ),
    Rule(
        name="signed-by-its-issuer",
        breaks="Anybody can be any caller.",
        symbol="trunkline.zones.access.signed_tokens:_is_signed_with",
        change=Change("return value", 1, of=2, becomes="it or True"),
        caught_by=(f"{_WRONG}[another caller's key]", f"{_WRONG}[a signature of zeros]"),
    ),
    Rule(
        name="bad-token-is-nobody",
        breaks="A caller whose token is wrong is let in as anybody.",
        symbol="trunkline.zones.access.control:AccessControl._identify",
        change=Change(
            "condition",
            1,
            of=3,
            becomes="it and ANYBODY.name not in (it.values[0].value._policy.callers or {})",
        ),
        caught_by=(f"{_DOOR}::test_a_bad_token_is_refused_although_anybody_may_call",),
    ),
    Rule(
        name="callers-on-the-list",
        breaks="A caller that the policy does not name may do what the defaults allow.",
        symbol="trunkline.zones.access.policy:ZonePolicy.rules_of",
        change=Change(
            "return value",
            2,
            of=2,
            becomes="it.orelse.func(it.test.left or CallerRules(), it.orelse.args[1])",
        ),
        caught_by=(
            f"{_DOOR}::test_a_refused_call_leaves_a_note_without_its_params",
            f"{_POLICY}::test_what_a_policy_decides[2]",
        ),
    ),
    Rule(
        name="caller-in-its-rate",
        breaks="One caller takes the zone from all others.",
        symbol="trunkline.zones.access.policy:_within_rate",
        change=Change("argument", 5, of=14, becomes="it.args[0]"),
        caught_by=(
            f"{_POLICY}::test_no_window_lets_more_calls_in_than_the_burst_and_what_time_brings",
            f"{_DOOR}::test_a_caller_that_calls_too_often_is_told_to_wait_and_another_is_not",
            f"{_CALLERS}::test_what_a_policy_limits_is_refused_with_its_own_status[embedded]",
        ),
    ),
    Rule(
        name="names-of-the-certificate",
        breaks="The common name, which no authority checks, opens the zone.",
        symbol="trunkline.zones.access.client_certificates:names_in",
        change=Drop("if statement"),
        caught_by=(f"{_CALLERS}::test_a_certificate_is_as_good_as_a_token[embedded]",),
    ),
    Rule(
        name="handlers-secrets-in-no-log",
        breaks="A handler that breaks has the caller's token written to the log.",
        symbol="trunkline.zones.methods:ZoneMethod._log_failure",
        change=Change("keyword", 3, of=3, becomes="it.args[0]"),
        caught_by=(
            "tests/scenarios/zones/test_zone_process.py::test_no_secret_of_a_call_is_logged_although_its_handler_repeats_it[embedded]",
        ),
    ),
    Rule(
        name="no-secret-in-a-zones-answer",
        breaks="A handler that repeats the token it was given has it kept in the zone's file and sent back.",
        symbol="trunkline.zones.zone:Zone._job",
        change=Drop("assignment", 3, of=4),
        caught_by=(
            "tests/scenarios/zones/test_zone_process.py::test_no_answer_repeats_a_secret_of_its_call_and_none_is_kept[embedded]",
        ),
    ),
)
