"""Rules of a zone's callers, link and bridge: the same work for the same id, and no half answer taken for a whole."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.rule import Rule

_LINK = "tests/unit/zones/test_link.py"
_GOLDEN = "tests/golden/test_wire.py::test_an_answer_means_the_outcome_in_the_file"
_PROFILES = "tests/unit/protocols/test_profiles.py"
_KILLS = "tests/crash/test_link_kills.py"
_AGENTS = "tests/scenarios/test_zone_agents.py"
_SOCKETS = "tests/scenarios/zones/test_link.py"

ZONE_CALLS: Sequence[Rule] = (
    Rule(
        name="zone-task-has-one-id",
        breaks="A zone that gets the same task again takes it for another and runs it twice.",
        file="protocols/zone_call.py",
        old="    return str(uuid5(_IDS, task.task_id))\n",
        new='    return str(uuid5(_IDS, f"{task.task_id}{task.attempt}{task.doubtful}"))\n',
        caught_by=(
            f"{_AGENTS}::test_a_lost_answer_is_asked_for_with_the_same_id_and_the_work_runs_once[embedded]",
        ),
    ),
    Rule(
        name="link-comes-again-with-the-id-it-was-given",
        breaks="A caller that comes again after a crash has its work done twice.",
        file="zones/link.py",
        old="call_id = str(uuid4()) if id is None else _checked_id(id)",
        new="call_id = str(uuid4()) if id is None else _checked_id(str(uuid4()))",
        caught_by=(
            f"{_KILLS}::test_a_caller_that_was_killed_gets_the_same_work_with_the_same_id[after execute_task]",
            f"{_LINK}::test_link_and_zone_understand_one_another",
        ),
    ),
    Rule(
        name="link-signs-each-sending",
        breaks="A request that is sent again is refused: its token has been used.",
        file="zones/link.py",
        old='        return f"Bearer {signed_token(signer, body, self._clock.now(), str(uuid4()))}"\n',
        new='        return f"Bearer {signed_token(signer, body, self._clock.now(), signer.issuer)}"\n',
        caught_by=(f"{_SOCKETS}::test_each_sending_is_signed_anew_and_the_work_runs_once[embedded]",),
        shows="Error",
    ),
    Rule(
        name="zone-answer-is-one-of-two",
        breaks="An answer that is a result and an error is taken for whichever is looked for first.",
        file="protocols/zone_answers.py",
        old="if envelope.result is not UNSET and envelope.error is not UNSET:",
        new="if envelope.result is UNSET and envelope.error is not UNSET and False:",
        caught_by=(f"{_GOLDEN}[answers/zone/both]",),
    ),
    Rule(
        name="zone-error-of-another-request-is-not-ours",
        breaks="The error of one call fails another.",
        file="protocols/zone_answers.py",
        old="id_ = None if got is UNSET or _value(got) is None else _own_id(got, ids)",
        new="id_ = None",
        caught_by=(f"{_GOLDEN}[answers/zone/error_id_other]",),
    ),
    Rule(
        name="zone-result-has-a-status-of-the-contract",
        breaks="Work that has failed in a zone's own words is taken for done.",
        file="protocols/zone_answers.py",
        old='    if status == "success":\n',
        new='    if status != "accepted":\n',
        caught_by=(f"{_GOLDEN}[answers/zone/status_failed]",),
    ),
    Rule(
        name="a-stopping-zone-has-said-nothing",
        breaks="Work that goes on in a zone is given up, or done again under another id, when the zone stops.",
        file="protocols/zone_answers.py",
        old='is_open = isinstance(data, dict) and data.get("reason") in _UNAVAILABLE_REASONS',
        new="is_open = False",
        caught_by=(f"{_GOLDEN}[answers/zone/error_stopping]",),
    ),
    Rule(
        name="a-question-refused-by-rate-is-asked-again",
        breaks="Work that goes on is given up when the agent is asked for it too often.",
        file="bridge/calls/results.py",
        old="if overloaded or error.http_status == _TOO_MANY or not",
        new="if overloaded or not",
        caught_by=(f"{_AGENTS}::test_a_refusal_that_passes_is_no_failure[embedded-by rate]",),
    ),
    Rule(
        name="params-are-never-quoted",
        breaks="A secret among the params is in the error that says what is wrong with them.",
        file="protocols/profiles.py",
        old='mask="the value", ',
        new="",
        caught_by=(
            f'{_PROFILES}::test_no_kind_of_finding_quotes_a_value[{{"properties":{{"a":{{"maxLength":2}}}}}}]',
            "tests/unit/zones/test_params.py::test_no_value_is_repeated",
        ),
    ),
    Rule(
        name="unfit-params-stay-here",
        breaks="What a zone must not get is sent to it, secrets included.",
        file="protocols/zone_call.py",
        old="        wrong = params_problem(params, self.profile)\n        if wrong is not None:\n",
        new="        wrong = params_problem(params, self.profile)\n        if wrong is not None and False:\n",
        caught_by=(f"{_AGENTS}::test_an_input_that_does_not_fit_the_profile_is_never_sent[embedded]",),
    ),
    Rule(
        name="link-hides-the-secrets-of-its-params",
        breaks="A zone that repeats a secret puts it into its caller's logs.",
        file="zones/link.py",
        old="redaction = Redaction(self._proof).beside(_secrets_in(errand.params))",
        new="redaction = Redaction(self._proof)",
        caught_by=(f"{_LINK}::test_no_secret_is_in_any_log_or_error",),
    ),
)
