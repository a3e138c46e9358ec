"""Rules of access to a zone: whose token is valid, where, when, and how often."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.mutation import Change, Drop
from tests.sabotage.rule import Rule

_ACCESS = "tests/unit/zones/access/test_control.py"
_WRONG = f"{_ACCESS}::test_a_token_that_is_wrong_is_refused_and_the_answer_does_not_say_why"
_POLICY = "tests/unit/zones/access/test_policy.py"
_CALLERS = "tests/scenarios/zones/test_callers.py"
_TOKENS = "zones/access/signed_tokens.py"

ZONE_ACCESS: Sequence[Rule] = (
    Rule(
        name="token-for-this-zone",
        breaks="A token for another zone also opens this one.",
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
        caught_by=(f"{_ACCESS}::test_a_caller_is_known_before_its_body_is_read",),
    ),
    Rule(
        name="token-still-valid-after-the-body",
        breaks="A token whose body arrives slowly is accepted after the record of its use has expired.",
        symbol="trunkline.zones.access.control:AccessControl.check_body",
        change=Change("condition", 2, of=4, becomes="False"),
        caught_by=(f"{_ACCESS}::test_a_token_that_runs_out_while_its_body_comes_is_refused",),
    ),
    Rule(
        name="token-for-minutes",
        breaks="One leaked token is valid for years.",
        symbol="trunkline.zones.access.signed_tokens:_wrong_time",
        change=Change(
            "condition", 3, of=3, becomes="it.operand.comparators[0].left <= it.operand.comparators[0].right"
        ),
        caught_by=(f"{_WRONG}[longer than five minutes]", f"{_WRONG}[older than long]"),
    ),
    Rule(
        name="token-once",
        breaks="An eavesdropper can repeat a call.",
        symbol="trunkline.zones.access.control:AccessControl.check_body",
        change=Change("condition", 4, of=4, becomes="False"),
        caught_by=(
            f"{_ACCESS}::test_a_token_is_good_once_also_after_a_restart",
            f"{_CALLERS}::test_a_signed_call_is_answered_and_its_token_is_worth_nothing_any_more[embedded]",
        ),
    ),
    Rule(
        name="token-remembered-while-valid",
        breaks="Within the clock tolerance, a used token is accepted a second time.",
        symbol="trunkline.zones.access.signed_tokens:read_token",
        change=Change("argument", 18, of=18, becomes="it.left.left.value.iat * it.right"),
        caught_by=(f"{_ACCESS}::test_a_used_token_stays_used_for_as_long_as_clocks_may_differ",),
    ),
    Rule(
        name="token-without-body",
        breaks="An intercepted token that is not bound to a request can carry any other call.",
        symbol="trunkline.zones.access.signed_tokens:read_token",
        change=Change("condition", 4, of=4, becomes="False"),
        caught_by=(
            f"{_ACCESS}::test_a_token_for_any_body_is_refused_unless_the_policy_allows_its_caller_to_send_one",
        ),
    ),
    Rule(
        name="token-for-this-body",
        breaks="An intercepted token can carry any other call if that call arrives first.",
        symbol="trunkline.zones.access.signed_tokens:VerifiedToken.is_for",
        change=Change("operand", 2, of=2, becomes="True"),
        caught_by=(
            f"{_WRONG}[for another body]",
            f"{_CALLERS}::test_a_token_of_one_request_does_not_carry_another[embedded]",
        ),
    ),
    Rule(
        name="algorithms-are-fixed",
        breaks="An attacker who knows the public key can sign with it, or send an unsigned token.",
        symbol="trunkline.agents.authentication.signed_tokens:TokenAlgorithms.get_alg",
        change=Change("condition", becomes="it.left not in self.algorithms"),
        caught_by=(f"{_WRONG}[the algorithm none]", f"{_WRONG}[the public key as a shared secret]"),
    ),
    Rule(
        name="signed-by-its-issuer",
        breaks="Every caller can pose as any other.",
        symbol="trunkline.zones.access.signed_tokens:_is_signed_with",
        change=Change("return value", 1, of=2, becomes="it or True"),
        caught_by=(f"{_WRONG}[another caller's key]", f"{_WRONG}[a signature of zeros]"),
    ),
    Rule(
        name="invalid-token-is-rejected",
        breaks="A caller with an invalid token is treated as an anonymous one and let in.",
        symbol="trunkline.zones.access.control:AccessControl._identify",
        change=Change(
            "condition",
            1,
            of=3,
            becomes="it and ANYBODY.name not in (it.values[0].value._policy.callers or {})",
        ),
        caught_by=(f"{_ACCESS}::test_a_bad_token_is_refused_although_anybody_may_call",),
    ),
    Rule(
        name="callers-in-the-policy",
        breaks="A caller that the policy does not name gets the default permissions.",
        symbol="trunkline.zones.access.policy:ZonePolicy.rules_of",
        change=Change(
            "return value",
            2,
            of=2,
            becomes="it.orelse.func(it.test.left or CallerRules(), it.orelse.args[1])",
        ),
        caught_by=(
            f"{_ACCESS}::test_a_refused_call_leaves_a_note_without_its_params",
            f"{_POLICY}::test_what_a_policy_decides[2]",
        ),
    ),
    Rule(
        name="caller-within-its-rate",
        breaks="One caller uses up the whole capacity of the zone.",
        symbol="trunkline.zones.access.policy:_within_rate",
        change=Change("argument", 5, of=14, becomes="it.args[0]"),
        caught_by=(
            f"{_POLICY}::test_no_window_lets_more_calls_in_than_the_burst_and_what_time_brings",
            f"{_ACCESS}::test_a_caller_over_its_rate_must_wait_and_another_need_not",
            f"{_CALLERS}::test_what_a_policy_limits_is_refused_with_its_own_status[embedded]",
        ),
    ),
    Rule(
        name="names-of-the-certificate",
        breaks="The common name, which no authority verifies, opens the zone.",
        symbol="trunkline.zones.access.client_certificates:names_in",
        change=Drop("if statement"),
        caught_by=(f"{_CALLERS}::test_a_certificate_is_as_good_as_a_token[embedded]",),
    ),
    Rule(
        name="handlers-secrets-in-no-log",
        breaks="A handler that raises writes the caller's token to the log.",
        symbol="trunkline.zones.methods:ZoneMethod._log_failure",
        change=Change("keyword", 3, of=3, becomes="it.args[0]"),
        caught_by=(
            "tests/scenarios/zones/test_zone_process.py::test_no_secret_of_a_call_is_logged_although_its_handler_repeats_it[embedded]",
        ),
    ),
    Rule(
        name="no-secret-in-a-zone-answer",
        breaks="A token that a handler repeats is kept in the zone's file and sent back.",
        symbol="trunkline.zones.zone:Zone._job",
        change=Drop("assignment", 3, of=4),
        caught_by=(
            "tests/scenarios/zones/test_zone_process.py::test_no_answer_repeats_a_secret_of_its_call_and_none_is_kept[embedded]",
        ),
    ),
)
