"""Rules of a zone's callers, link and bridge: the same work for the same id, and no half answer taken for a whole."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.mutation import Change, Drop
from tests.sabotage.rule import Rule

_LINK = "tests/unit/zones/test_client.py"
_GOLDEN = "tests/golden/test_wire.py::test_an_answer_means_the_outcome_in_the_file"
_PROFILES = "tests/unit/protocols/zone/test_params_profiles.py"
_KILLS = "tests/crash/test_link_kills.py"
_AGENTS = "tests/scenarios/test_zone_agents.py"
_SOCKETS = "tests/scenarios/zones/test_client.py"

ZONE_CALLS: Sequence[Rule] = (
    Rule(
        name="zone-task-has-one-id",
        breaks="A zone that gets the same task again takes it for another and runs it twice.",
        symbol="trunkline.protocols.zone.adapter:_send_id",
        change=Change("argument", 3, of=3, becomes="f'{it}{it.value.attempt}{it.value.doubtful}'"),
        caught_by=(
            f"{_AGENTS}::test_a_lost_answer_is_asked_for_with_the_same_id_and_the_work_runs_once[embedded]",
        ),
    ),
    Rule(
        name="link-comes-again-with-the-id-it-was-given",
        breaks="A caller that comes again after a crash has its work done twice.",
        symbol="trunkline.zones.client:ZoneClient.execute_task",
        change=Change("assigned value", 1, of=7, becomes="it.body if it.test else it.orelse.func(it.body)"),
        caught_by=(
            f"{_KILLS}::test_a_caller_that_was_killed_gets_the_same_work_with_the_same_id[after execute_task]",
            f"{_LINK}::test_link_and_zone_understand_one_another",
        ),
    ),
    Rule(
        name="link-signs-each-sending",
        breaks="A request that is sent again is refused: its token has been used.",
        symbol="trunkline.zones.client:ZoneClient._signed",
        change=Change(
            "call", 1, of=4, becomes="it.func(it.args[0], it.args[1], it.args[2], it.args[0].issuer)"
        ),
        caught_by=(f"{_SOCKETS}::test_each_sending_is_signed_anew_and_the_work_runs_once[embedded]",),
        shows="Error",
    ),
    Rule(
        name="zone-answer-is-one-of-two",
        breaks="An answer that is a result and an error is taken for whichever is looked for first.",
        symbol="trunkline.protocols.zone.answers:read_answer",
        change=Change("condition", 1, of=3, becomes="False"),
        caught_by=(f"{_GOLDEN}[answers/zone/both]",),
    ),
    Rule(
        name="zone-error-of-another-request-is-not-ours",
        breaks="The error of one call fails another.",
        symbol="trunkline.protocols.zone.answers:_read_error",
        change=Change("assigned value", 1, of=4, becomes="None"),
        caught_by=(f"{_GOLDEN}[answers/zone/error_id_other]",),
    ),
    Rule(
        name="zone-result-has-a-status-of-the-contract",
        breaks="Work that has failed in a zone's own words is taken for done.",
        symbol="trunkline.protocols.zone.answers:_read_result",
        change=Change("condition", 2, of=4, becomes="it.left != 'accepted'"),
        caught_by=(f"{_GOLDEN}[answers/zone/status_failed]",),
    ),
    Rule(
        name="a-stopping-zone-has-said-nothing",
        breaks="Work that goes on in a zone is given up, or done again under another id, when the zone stops.",
        symbol="trunkline.protocols.zone.answers:_step_error",
        change=Change("assigned value", 3, of=3, becomes="False"),
        caught_by=(f"{_GOLDEN}[answers/zone/error_stopping]",),
    ),
    Rule(
        name="a-question-refused-by-rate-is-asked-again",
        breaks="Work that goes on is given up when the agent is asked for it too often.",
        symbol="trunkline.bridge.calls.results:after_failed_poll",
        change=Drop("operand", 6, of=7),
        caught_by=(f"{_AGENTS}::test_a_refusal_that_passes_is_no_failure[embedded-by rate]",),
    ),
    Rule(
        name="params-are-never-quoted",
        breaks="A secret among the params is in the error that says what is wrong with them.",
        symbol="trunkline.protocols.zone.params_profiles:ParamsProfile.__init__",
        change=Drop("keyword"),
        caught_by=(
            f'{_PROFILES}::test_no_kind_of_finding_quotes_a_value[{{"properties":{{"a":{{"maxLength":2}}}}}}]',
            "tests/unit/zones/test_params.py::test_no_value_is_repeated",
        ),
    ),
    Rule(
        name="unfit-params-stay-here",
        breaks="What a zone must not get is sent to it, secrets included.",
        symbol="trunkline.protocols.zone.adapter:ZoneAdapter.to_agent_request",
        change=Change("condition", becomes="False"),
        caught_by=(f"{_AGENTS}::test_an_input_that_does_not_fit_the_profile_is_never_sent[embedded]",),
    ),
    Rule(
        name="link-hides-the-secrets-of-its-params",
        breaks="A zone that repeats a secret puts it into its caller's logs.",
        symbol="trunkline.zones.client:ZoneClient._redacted",
        change=Change("assigned value", becomes="it.func.value"),
        caught_by=(f"{_LINK}::test_no_secret_is_in_any_log_or_error",),
    ),
)
