"""Rules of a zone's endpoint: one reading of a request, no secret in its answers, and nobody in by mistake."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.rule import Rule

_REQUESTS = "tests/unit/zones/test_requests.py"
_PARAMS = "tests/unit/zones/test_params.py"
_ENDPOINT = "tests/unit/zones/test_endpoint.py"
_SERVER = "tests/unit/zones/test_server.py"
_HTTP = "tests/scenarios/zones/test_http.py"
_SERVED = "tests/scenarios/zones/test_served.py"

ZONE_ANSWERS: Sequence[Rule] = (
    Rule(
        name="zone-request-read-one-way",
        breaks="Of a name that comes twice the zone that checks reads one value, and the zone that runs the other.",
        file="zones/requests.py",
        old="if len(members) != len(pairs):",
        new="if len(members) > len(pairs):",
        caught_by=(
            f"{_REQUESTS}::test_what_is_json_but_no_request_is_invalid[a name twice]",
            f"{_REQUESTS}::test_what_is_json_but_no_request_is_invalid[two ids]",
        ),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="zone-request-not-too-deep",
        breaks="A request of nothing but brackets stops whoever walks through it behind the zone.",
        file="zones/requests.py",
        old="    if too_deep:\n",
        new="    if too_deep and value is None:\n",
        caught_by=(f"{_REQUESTS}::test_what_is_not_json_is_a_parse_error[a little too deep]",),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="zone-id-as-it-was-written",
        breaks="A caller that compares ids as texts does not know its answer again.",
        file="zones/requests.py",
        old="id=_text_of_id(body)",
        new="id=json.dumps(value['id']).encode()",
        caught_by=(
            f"{_REQUESTS}::test_an_id_is_kept_as_it_was_written[1.50]",
            f"{_ENDPOINT}::test_an_id_comes_back_byte_for_byte",
        ),
    ),
    Rule(
        name="zone-types-words-not-repeated",
        breaks="What a type's own rules say about a value, with the value, is told to the caller.",
        file="zones/params.py",
        old='path = place.removesuffix("`").removeprefix(".") if is_inside else ""',
        new='path = place.removesuffix("`").removeprefix(".")',
        caught_by=(f"{_PARAMS}::test_what_a_structs_own_rules_say_is_not_repeated",),
    ),
    Rule(
        name="zone-handler-may-not-accept",
        breaks="A handler's own word promises an answer that nobody can ever ask for.",
        file="zones/handlers.py",
        old='if result["status"] != "success":',
        new='if result["status"] not in ("success", "accepted"):',
        caught_by=(f"{_ENDPOINT}::test_what_a_handler_may_not_return_is_an_internal_error[accepted]",),
        shows="KeyError",
    ),
    Rule(
        name="zone-size-of-a-body-in-pieces",
        breaks="A request that does not say its size fills the memory.",
        file="zones/http.py",
        old="        if size > most_bytes:\n",
        new="        if size > most_bytes * 1_000:\n",
        caught_by=(f"{_HTTP}::test_a_body_that_is_too_large_is_413_whether_or_not_it_says_its_size",),
    ),
    Rule(
        name="zone-not-for-browsers",
        breaks="A web page calls the zone on the machine of whoever looks at it.",
        file="zones/http.py",
        old='if name == b"origin":',
        new='if name == b"never":',
        caught_by=(f"{_HTTP}::test_a_browser_is_turned_away",),
    ),
    Rule(
        name="zone-open-only-if-said",
        breaks="A zone that does not ask who calls is served to a whole network by mistake.",
        file="zones/server.py",
        old="return _TAKEN_AT_THEIR_WORD.isdisjoint(policy.callers)",
        new="return True",
        caught_by=(
            f"{_SERVER}::test_whoever_need_not_show_who_it_is_may_not_come_from_anywhere[platform]",
            f"{_SERVER}::test_whoever_need_not_show_who_it_is_may_not_come_from_anywhere[anybody_too]",
        ),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="zone-answers-before-it-stops",
        breaks="Whoever waits for an answer when the zone is stopped is cut off, though the work is done.",
        file="zones/server.py",
        old="            await zone.drain()\n",
        new="",
        caught_by=(
            f"{_SERVED}::test_a_stop_lets_the_work_end_and_its_caller_have_the_answer[embedded-SIGTERM]",
        ),
        shows="JSONDecodeError",
    ),
)
