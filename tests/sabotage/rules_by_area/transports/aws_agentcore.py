"""Rules of the AWS AgentCore transport: what is sent, at most once, and what must not be disclosed."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.mutation import Change, Drop, ReplaceText
from tests.sabotage.rule import Rule

_AGENTCORE = "tests/contract/test_aws_agentcore.py"
_CARRIERS = "tests/unit/agents/test_transport_urls.py"
_SPECS = "tests/unit/services/agents/test_specs.py"
_ELSEWHERE = (
    "arn:aws:bedrock-agentcore:eu-central-1.evil.example:123456789012:runtime/execution_zone-a1B2c3D4e5"
)

AWS_AGENTCORE: Sequence[Rule] = (
    Rule(
        name="abandoned-request-is-never-sent",
        breaks="A call that was reported as not sent is sent by its thread anyway, and then a second time.",
        symbol="trunkline.transports.pending_request:PendingRequest.send",
        change=Drop("operand", 1, of=2),
        caught_by=(f"{_AGENTCORE}::test_a_request_whose_caller_has_gone_never_leaves",),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="only-throttled-requests-are-sent-again",
        breaks="A runtime gets the same request twice after an error that does not rule out that it was accepted.",
        symbol="trunkline.transports.aws_client:_refusal",
        change=Change("argument", 17, of=17, becomes="it.values[1].left >= 400"),
        caught_by=(
            f"{_AGENTCORE}::test_an_error_of_the_service_is_an_answer_and_nothing_is_sent_twice[ResourceNotFoundException]",
        ),
    ),
    Rule(
        name="sent-from-the-moment-it-may-have-arrived",
        breaks="A request that a runtime may have accepted counts as not sent.",
        symbol="trunkline.transports.aws_client:AgentCoreClients.invoke",
        change=Change("ternary", becomes="it.orelse"),
        caught_by=(f"{_AGENTCORE}::test_what_breaks_after_the_request_has_left_counts_as_sent[hung up]",),
    ),
    Rule(
        name="thread-keeps-its-slot-until-it-ends",
        breaks="Calls that hang accumulate threads without limit.",
        symbol="trunkline.transports.aws_agentcore:AgentCoreTransport._invoke",
        change=Change(
            "return value",
            2,
            of=2,
            becomes="(it.value.args[1](), await it.value.func(it.value.args[0], bool))[1]",
        ),
        caught_by=(f"{_AGENTCORE}::test_there_are_never_more_threads_than_calls_allowed",),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="answer-of-a-runtime-is-bounded",
        breaks="A runtime whose answer never ends fills the memory.",
        symbol="trunkline.transports.aws_client:AgentCoreClients._read_answer",
        change=Change("condition", 2, of=3, becomes="False"),
        caught_by=(
            f"{_AGENTCORE}::test_what_breaks_after_the_request_has_left_counts_as_sent[too large without a length]",
        ),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="one-session-per-call",
        breaks="Unrelated calls share a session, and so a machine.",
        symbol="trunkline.transports.aws_agentcore:_parameters",
        change=Change("operand", 2, of=2, becomes="'0' * 36"),
        caught_by=(f"{_AGENTCORE}::test_each_call_has_a_session_of_its_own_that_is_long_enough",),
    ),
    Rule(
        name="aws-token-in-no-answer",
        breaks="A rejected signature puts the bridge's session token into the wire record of the call.",
        symbol="trunkline.transports.aws_client:_refusal",
        change=Change("argument", 13, of=17, becomes="it.args[0]"),
        caught_by=(f"{_AGENTCORE}::test_a_wrong_key_is_refused_without_quoting_what_was_signed",),
    ),
    Rule(
        name="source-of-credentials-not-quoted",
        breaks="The output of a credential helper appears in a step's error.",
        symbol="trunkline.transports.aws_client:AgentCoreClients._client",
        change=Change("assigned value", 3, of=3, becomes="f'{it} {it.values[3].value.value.args[0]}'"),
        caught_by=(f"{_AGENTCORE}::test_what_gives_out_credentials_may_fail_and_is_not_quoted",),
    ),
    Rule(
        name="boto3-logs-no-requests",
        breaks="With DEBUG for everything, requests are logged with their signatures and secrets.",
        symbol="trunkline.transports.aws_client",
        change=Change("argument", 4, of=4, becomes="it.value.DEBUG"),
        caught_by=(f"{_AGENTCORE}::test_neither_keys_nor_bodies_are_logged_at_any_level",),
    ),
    Rule(
        name="region-is-not-a-host",
        breaks="A client that registers an agent chooses the host that signed requests are sent to.",
        symbol="trunkline.agents.transport_urls:_RUNTIME",
        change=ReplaceText("a-z]{2,4}(?:-[a-z]+){1,3}-[0-9]{1,2}", "^:]+"),
        caught_by=(f"{_CARRIERS}::test_what_is_no_arn_of_a_runtime_is_refused[{_ELSEWHERE}]",),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="credentials-only-where-they-are-used",
        breaks="An operator believes that an agent is called with a token, but the token is never sent.",
        symbol="trunkline.services.agents.transport_rules:check_transport_rules",
        change=Change("condition", 5, of=7, becomes="False"),
        caught_by=(f"{_SPECS}::test_a_certificate_is_refused_where_there_is_no_tls",),
    ),
)
