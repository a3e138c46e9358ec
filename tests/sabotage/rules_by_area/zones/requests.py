"""Rules of requests to a zone: one interpretation of a request, no secret in an answer, no accidental exposure."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.mutation import Change, Drop, ReplaceText
from tests.sabotage.rule import Rule

_REQUESTS = "tests/unit/zones/test_jsonrpc.py"
_PARAMS = "tests/unit/zones/test_params.py"
_ENDPOINT = "tests/unit/zones/test_zone.py"
_SERVER = "tests/unit/zones/serving/test_http_server.py"
_HTTP = "tests/scenarios/zones/test_http.py"
_SERVED = "tests/scenarios/zones/test_zone_command.py"

ZONE_REQUESTS: Sequence[Rule] = (
    Rule(
        name="zone-request-without-duplicate-names",
        breaks="If a name occurs twice, the zone that checks reads one value and the zone that runs reads the other.",
        symbol="trunkline.zones.jsonrpc:_object",
        change=Change("condition", becomes="False"),
        caught_by=(
            f"{_REQUESTS}::test_what_is_json_but_no_request_is_invalid[the same name twice]",
            f"{_REQUESTS}::test_what_is_json_but_no_request_is_invalid[two ids]",
        ),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="zone-request-not-too-deep",
        breaks="A deeply nested request crashes the code that walks through it.",
        symbol="trunkline.zones.jsonrpc:_read",
        change=Change("condition", 1, of=2, becomes="it and value is None"),
        caught_by=(f"{_REQUESTS}::test_what_is_not_json_is_a_parse_error[a little too deep]",),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="zone-id-unchanged",
        breaks="A caller that compares ids as text does not recognise its answer.",
        symbol="trunkline.zones.jsonrpc:read_request",
        change=Change("keyword", 1, of=3, becomes="json.dumps(value['id']).encode()"),
        caught_by=(
            f"{_REQUESTS}::test_an_id_is_kept_as_it_was_written[1.50]",
            f"{_ENDPOINT}::test_an_id_comes_back_byte_for_byte",
        ),
    ),
    Rule(
        name="zone-validation-quotes-no-value",
        breaks="The validation message of a type, with the value in it, is sent to the caller.",
        symbol="trunkline.zones.params:_conversion_to.convert",
        change=Change("assigned value", 2, of=2, becomes="it.body"),
        caught_by=(f"{_PARAMS}::test_what_a_structs_own_rules_say_is_not_repeated",),
    ),
    Rule(
        name="zone-handler-may-not-accept",
        breaks="A handler's result promises an answer that can never be fetched.",
        symbol="trunkline.zones.methods:result_text",
        change=Change("condition", 3, of=4, becomes="it.left not in ('success', 'accepted')"),
        caught_by=(f"{_ENDPOINT}::test_what_a_handler_may_not_return_is_an_internal_error[accepted]",),
        shows="KeyError",
    ),
    Rule(
        name="zone-size-of-a-chunked-body",
        breaks="A request without a Content-Length fills the memory.",
        symbol="trunkline.zones.serving.asgi:_read_body",
        change=Change("condition", 2, of=3, becomes="it.left > it.comparators[0] * 1000"),
        caught_by=(f"{_HTTP}::test_a_body_that_is_too_large_is_413_whether_or_not_it_says_its_size",),
    ),
    Rule(
        name="zone-not-for-browsers",
        breaks="A web page can call a zone on its visitor's machine.",
        symbol="trunkline.zones.serving.asgi:_refused_unread",
        change=ReplaceText("origin", "never"),
        caught_by=(f"{_HTTP}::test_a_browser_is_turned_away",),
    ),
    Rule(
        name="zone-open-only-if-configured",
        breaks="A zone without authentication is exposed to a whole network by mistake.",
        symbol="trunkline.zones.serving.http_server:_asks",
        change=Change("return value", 2, of=2, becomes="True"),
        caught_by=(
            f"{_SERVER}::test_a_zone_without_authentication_is_refused_on_other_addresses[platform]",
            f"{_SERVER}::test_a_zone_without_authentication_is_refused_on_other_addresses[anybody_too]",
        ),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="zone-answers-before-it-stops",
        breaks="A caller that waits for an answer is disconnected when the zone stops, although the work is done.",
        symbol="trunkline.zones.serving.http_server:_serve",
        change=Drop("call statement", 8, of=8),
        caught_by=(
            f"{_SERVED}::test_a_stop_lets_the_work_end_and_its_caller_have_the_answer[embedded-SIGTERM]",
        ),
        shows="JSONDecodeError",
    ),
)
