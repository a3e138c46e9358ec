"""Rules of calls to zones, by `ZoneClient` and bridge: the same id for the same work, and no incomplete answer."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.mutation import Change, Drop
from tests.sabotage.rule import Rule

_CLIENT = "tests/unit/zones/test_client.py"
_GOLDEN = "tests/golden/test_wire.py::test_an_answer_means_the_outcome_in_the_file"
_PROFILES = "tests/unit/protocols/zone/test_params_profiles.py"
_KILLS = "tests/crash/test_zone_client_kills.py"
_AGENTS = "tests/scenarios/test_zone_agents.py"
_SOCKETS = "tests/scenarios/zones/test_client.py"

ZONE_CALLS: Sequence[Rule] = (
    Rule(
        name="zone-task-has-one-id",
        breaks="A zone that gets the same task again does not recognise it, and runs it twice.",
        symbol="trunkline.protocols.zone.adapter:_send_id",
        change=Change("argument", 3, of=3, becomes="f'{it}{it.value.attempt}{it.value.doubtful}'"),
        caught_by=(
            f"{_AGENTS}::test_a_lost_answer_is_asked_for_with_the_same_id_and_the_work_runs_once[embedded]",
        ),
    ),
    Rule(
        name="zone-client-repeats-its-id",
        breaks="A caller that repeats its request after a crash has the work done twice.",
        symbol="trunkline.zones.client:ZoneClient.execute_task",
        change=Change("assigned value", 1, of=7, becomes="it.body if it.test else it.orelse.func(it.body)"),
        caught_by=(
            f"{_KILLS}::test_a_caller_that_was_killed_gets_the_same_work_with_the_same_id[after execute_task]",
            f"{_CLIENT}::test_client_and_zone_understand_one_another",
        ),
    ),
    Rule(
        name="zone-client-signs-each-request",
        breaks="A repeated request is rejected because its token has been used.",
        symbol="trunkline.zones.client:ZoneClient._signed",
        change=Change(
            "call", 1, of=4, becomes="it.func(it.args[0], it.args[1], it.args[2], it.args[0].issuer)"
        ),
        caught_by=(f"{_SOCKETS}::test_each_sending_has_its_own_signature_and_the_work_runs_once[embedded]",),
        shows="Error",
    ),
    Rule(
        name="zone-answer-is-one-of-two",
        breaks="An answer with both a result and an error is read as whichever is looked up first.",
        symbol="trunkline.protocols.zone.answers:read_answer",
        change=Change("condition", 1, of=3, becomes="False"),
        caught_by=(f"{_GOLDEN}[answers/zone/both]",),
    ),
    Rule(
        name="zone-error-of-another-request",
        breaks="The error of one call fails another.",
        symbol="trunkline.protocols.zone.answers:_read_error",
        change=Change("assigned value", 1, of=4, becomes="None"),
        caught_by=(f"{_GOLDEN}[answers/zone/error_id_other]",),
    ),
    Rule(
        name="zone-result-has-a-status-of-the-contract",
        breaks="Failed work that a zone reports with a status of its own counts as done.",
        symbol="trunkline.protocols.zone.answers:_read_result",
        change=Change("condition", 2, of=4, becomes="it.left != 'accepted'"),
        caught_by=(f"{_GOLDEN}[answers/zone/status_failed]",),
    ),
    Rule(
        name="stopping-zone-is-no-failure",
        breaks="When a zone stops, work that continues there is abandoned, or repeated under another id.",
        symbol="trunkline.protocols.zone.answers:_step_error",
        change=Change("assigned value", 3, of=3, becomes="False"),
        caught_by=(f"{_GOLDEN}[answers/zone/error_stopping]",),
    ),
    Rule(
        name="rate-limited-poll-is-repeated",
        breaks="Work that continues is abandoned when a poll exceeds the agent's rate limit.",
        symbol="trunkline.bridge.calls.results:after_failed_poll",
        change=Drop("operand", 6, of=7),
        caught_by=(f"{_AGENTS}::test_a_refusal_that_passes_is_no_failure[embedded-by rate]",),
    ),
    Rule(
        name="params-are-never-quoted",
        breaks="A secret in the params appears in the error that describes what is wrong with them.",
        symbol="trunkline.protocols.zone.params_profiles:ParamsProfile.__init__",
        change=Drop("keyword"),
        caught_by=(
            f'{_PROFILES}::test_no_kind_of_finding_quotes_a_value[{{"properties":{{"a":{{"maxLength":2}}}}}}]',
            "tests/unit/zones/test_params.py::test_no_value_is_repeated",
        ),
    ),
    Rule(
        name="invalid-params-are-never-sent",
        breaks="Params that a zone must not get are sent to it, secrets included.",
        symbol="trunkline.protocols.zone.adapter:ZoneAdapter.to_agent_request",
        change=Change("condition", becomes="False"),
        caught_by=(f"{_AGENTS}::test_an_input_that_does_not_fit_the_profile_is_never_sent[embedded]",),
    ),
    Rule(
        name="zone-client-hides-secrets",
        breaks="A secret that a zone repeats appears in its caller's logs.",
        symbol="trunkline.zones.client:ZoneClient._redacted",
        change=Change("assigned value", becomes="it.func.value"),
        caught_by=(f"{_CLIENT}::test_no_secret_is_in_any_log_or_error",),
    ),
)
