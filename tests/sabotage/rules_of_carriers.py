"""Rules of the ways out that are not HTTP: what may leave by them, once, and what they must not tell."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.rule import Rule

_AGENTCORE = "tests/contract/test_aws_agentcore.py"
_CARRIERS = "tests/unit/agents/test_transport_urls.py"
_SPECS = "tests/unit/services/agents/test_specs.py"
_ELSEWHERE = (
    "arn:aws:bedrock-agentcore:eu-central-1.evil.example:123456789012:runtime/execution_zone-a1B2c3D4e5"
)

CARRIERS: Sequence[Rule] = (
    Rule(
        name="given-up-never-leaves",
        breaks="A call that was reported as not sent is sent by its thread all the same, and then a second time.",
        file="transports/pending_request.py",
        old="if self._is_abandoned or self._is_sent:",
        new="if self._is_sent:",
        caught_by=(f"{_AGENTCORE}::test_a_request_whose_caller_has_gone_never_leaves",),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="only-what-was-put-off-is-sent-again",
        breaks="A runtime gets the same request twice after an error that does not say that it was not taken.",
        file="transports/aws_client.py",
        old="return InvokeResult(answer, code in _PUT_OFF or answer.status == 429)",
        new="return InvokeResult(answer, answer.status >= 400)",
        caught_by=(
            f"{_AGENTCORE}::test_an_error_of_the_service_is_an_answer_and_nothing_is_sent_twice[ResourceNotFoundException]",
        ),
    ),
    Rule(
        name="sent-from-the-moment-it-may-have-arrived",
        breaks="A request that a runtime may have taken counts as not sent.",
        file="transports/aws_client.py",
        old="raise (_no_answer(exc) if errand.is_sent else _not_sent(exc)) from exc",
        new="raise _not_sent(exc) from exc",
        caught_by=(f"{_AGENTCORE}::test_what_breaks_after_the_request_has_left_counts_as_sent[hung up]",),
    ),
    Rule(
        name="a-thread-keeps-its-place-until-it-ends",
        breaks="Calls that hang pile up threads without end.",
        file="transports/aws_agentcore.py",
        old="return await _in_thread(invoke, self._slots.release)",
        new="self._slots.release()\n                return await _in_thread(invoke, bool)",
        caught_by=(f"{_AGENTCORE}::test_there_are_never_more_threads_than_calls_allowed",),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="answer-of-a-runtime-has-an-end",
        breaks="A runtime that never stops answering fills the memory.",
        file="transports/aws_client.py",
        old="if len(received) > limit:",
        new="if limit < 0:",
        caught_by=(
            f"{_AGENTCORE}::test_what_breaks_after_the_request_has_left_counts_as_sent[too large without a length]",
        ),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="session-of-a-call-is-its-own",
        breaks="Calls that have nothing to do with one another share a session, and so a machine.",
        file="transports/aws_agentcore.py",
        old="session = given.get(_SESSION) or str(uuid4())",
        new='session = given.get(_SESSION) or "0" * 36',
        caught_by=(f"{_AGENTCORE}::test_each_call_has_a_session_of_its_own_that_is_long_enough",),
    ),
    Rule(
        name="token-of-aws-in-no-answer",
        breaks="A refused signature puts the bridge's session token into the record of the call.",
        file="transports/aws_client.py",
        old="redaction.body(encode(said)),",
        new="encode(said),",
        caught_by=(f"{_AGENTCORE}::test_a_wrong_key_is_refused_without_quoting_what_was_signed",),
    ),
    Rule(
        name="source-of-credentials-not-quoted",
        breaks="What a program that gives out credentials has said stands in a step's error.",
        file="transports/aws_client.py",
        old='message = f"boto3 makes no client for {region}: {type(exc).__name__}."',
        new='message = f"boto3 makes no client for {region}: {type(exc).__name__}: {exc}"',
        caught_by=(f"{_AGENTCORE}::test_what_gives_out_credentials_may_fail_and_is_not_quoted",),
    ),
    Rule(
        name="boto3-logs-no-requests",
        breaks="With DEBUG for everything, requests are logged with their signatures and the secrets in them.",
        file="transports/aws_client.py",
        old="logging.getLogger(_name).setLevel(logging.INFO)",
        new="logging.getLogger(_name).setLevel(logging.DEBUG)",
        caught_by=(f"{_AGENTCORE}::test_neither_keys_nor_bodies_are_logged_at_any_level",),
    ),
    Rule(
        name="region-is-no-host",
        breaks="Whoever registers an agent chooses the host that signed requests are sent to.",
        file="agents/transport_urls.py",
        old="(?P<region>[a-z]{2,4}(?:-[a-z]+){1,3}-[0-9]{1,2})",
        new="(?P<region>[^:]+)",
        caught_by=(f"{_CARRIERS}::test_what_is_no_arn_of_a_runtime_is_refused[{_ELSEWHERE}]",),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="credentials-where-they-can-go",
        breaks="An operator believes that an agent is called with a token, which never leaves.",
        file="services/agents/transport_rules.py",
        old='if auth_type != "none" or has_secret:',
        new='if auth_type == "":',
        caught_by=(f"{_SPECS}::test_a_certificate_is_refused_where_there_is_no_tls",),
    ),
)
