"""Rules of the HTTP transport: which addresses are called, how much is read, and with which credentials."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.mutation import Change, Drop
from tests.sabotage.rule import Rule

_FORBIDDEN = "tests/scenarios/hostile/test_forbidden_addresses.py"
_CERTIFICATES = "tests/scenarios/hostile/test_certificates.py"
_MISBEHAVING = "tests/scenarios/hostile/test_misbehaving_agents.py"
_CONNECTION = "tests/unit/transports/test_http_connection.py"
_STREAMS = "tests/scenarios/hostile/test_streams.py"
_SECRETS = "tests/scenarios/test_secrets.py"
_TOKENS = "tests/unit/bridge/agents/test_tokens.py"
_SSE = "tests/unit/test_sse.py"
_OUTGOING = ("call", "look", "listen", "listen_again", "read_card", "fetch_token")

HTTP: Sequence[Rule] = (
    Rule(
        name="address-checked-after-resolution",
        breaks="A name that resolves to the machine itself, or to a cloud's metadata service, is called.",
        symbol="trunkline.transports.http1.dns_resolver:GuardedResolver.resolve",
        change=Change("call", 3, of=8, becomes="None"),
        caught_by=tuple(
            f"{_FORBIDDEN}::test_a_name_that_leads_to_a_forbidden_address_is_refused[embedded-127.0.0.1-{way}]"
            for way in _OUTGOING
        ),
        shows="isinstance(None, TransportError)",
    ),
    Rule(
        name="literal-address-checked",
        breaks="A literal IP address in a URL is called without any check.",
        symbol="trunkline.transports.https:HttpTransport._add_template",
        change=Change("assigned value", 2, of=8, becomes="None"),
        caught_by=tuple(
            f"{_FORBIDDEN}::test_no_way_to_write_a_forbidden_address_leads_to_a_connection[embedded-{way}]"
            for way in _OUTGOING
        ),
        shows="isinstance(None, TransportError)",
    ),
    Rule(
        name="connection-per-certificate",
        breaks="A request to one agent is sent with the certificate of another.",
        symbol="trunkline.transports.http1.tls_contexts:TlsContexts.context",
        change=Change("assigned value", 1, of=3, becomes="next(iter(it.func.value.values()), None)"),
        caught_by=(
            f"{_CERTIFICATES}::test_a_connection_made_with_one_agents_certificate_is_never_used_for_another[embedded]",
            f"{_CERTIFICATES}::test_calls_of_two_agents_at_once_are_never_mixed_up[embedded]",
        ),
    ),
    Rule(
        name="answer-of-its-own-request",
        breaks="Data that an agent sends unasked counts as the answer to the next request.",
        symbol="trunkline.transports.http1.connection:AgentConnection.has_nothing_unread",
        change=Drop("operand", 3, of=3),
        caught_by=(f"{_CONNECTION}::test_a_connection_is_not_used_while_something_waits_to_be_read",),
    ),
    Rule(
        name="answer-is-bounded",
        breaks="An agent whose answer never ends fills the memory.",
        symbol="trunkline.transports.http1.connection:AgentConnection.on_body",
        change=Change("condition", 2, of=2, becomes="False"),
        caught_by=(f"{_MISBEHAVING}::test_twenty_megabytes_are_over_the_usual_limit[embedded]",),
        shows="Error",
    ),
    Rule(
        name="one-answer-to-a-request",
        breaks="What an agent sends after an answer counts as the answer to the next request.",
        symbol="trunkline.transports.http1.connection:AgentConnection.on_message_begin",
        change=Drop("if statement"),
        caught_by=(f"{_CONNECTION}::test_a_second_answer_to_one_request_is_not_read",),
    ),
    Rule(
        name="head-is-bounded",
        breaks="A header line that never ends fills the memory.",
        symbol="trunkline.transports.http1.connection:AgentConnection.data_received",
        change=Change("condition", 5, of=9, becomes="False"),
        caught_by=(f"{_CONNECTION}::test_a_line_that_never_ends_is_not_kept_for_ever[head]",),
    ),
    Rule(
        name="header-in-one-line",
        breaks="A header with a line break becomes a separate request.",
        symbol="trunkline.transports.https:_header_lines",
        change=Change("condition", 1, of=2, becomes="it.values[2]"),
        caught_by=(
            f"{_MISBEHAVING}::test_a_header_that_would_break_the_request_is_not_sent[embedded-headers0]",
            f"{_MISBEHAVING}::test_a_header_that_would_break_the_request_is_not_sent[embedded-headers1]",
        ),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="stream-is-bounded",
        breaks="An agent whose stream never ends fills the memory.",
        symbol="trunkline.transports.http1.streamed_response:StreamedResponse._keep",
        change=Change("condition", becomes="it.left > 100 * it.comparators[0]"),
        caught_by=(f"{_STREAMS}::test_an_endless_line_ends_at_the_limit",),
    ),
    Rule(
        name="event-is-bounded",
        breaks="An event that never ends fills the memory, line by line.",
        symbol="trunkline.sse:SseParser._add",
        change=Change("condition", 1, of=2, becomes="False"),
        caught_by=(
            f"{_SSE}::test_an_event_may_be_as_long_as_the_cap_and_no_longer",
            f"{_SSE}::test_empty_data_lines_have_an_end_too",
        ),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="line-is-bounded",
        breaks="A line of a stream that never ends fills the memory.",
        symbol="trunkline.sse:SseParser._read",
        change=Change("condition", 2, of=5, becomes="False"),
        caught_by=(f"{_SSE}::test_a_line_may_be_as_long_as_the_cap_and_no_longer",),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="one-request-for-a-token",
        breaks="A hundred calls without a token request a hundred tokens.",
        symbol="trunkline.bridge.agents.tokens:TokenProvider._wait_for",
        change=Change("condition", 1, of=2, becomes="it or not it.left.done()"),
        caught_by=(f"{_TOKENS}::test_a_hundred_calls_that_find_no_token_ask_for_one",),
    ),
    Rule(
        name="token-request-survives-its-caller",
        breaks="A cancelled call cancels the token request that other calls wait for.",
        symbol="trunkline.bridge.agents.tokens:TokenProvider._wait_for",
        change=Change("assigned value", 4, of=4, becomes="await it.value.args[0]"),
        caught_by=(f"{_TOKENS}::test_one_that_gives_up_waiting_does_not_take_the_token_from_the_others",),
        shows="CancelledError",
    ),
    Rule(
        name="rejected-token-and-no-other",
        breaks="A call that was rejected with an old token discards the new one.",
        symbol="trunkline.bridge.agents.tokens:TokenProvider.discard",
        change=Drop("operand", 2, of=2),
        caught_by=(f"{_TOKENS}::test_of_many_that_are_refused_with_one_token_one_asks_for_another",),
    ),
    Rule(
        name="token-is-hidden",
        breaks="A token that an agent repeats is written to the database, the topics and the log.",
        symbol="trunkline.bridge.agents.tokens:TokenProvider.headers",
        change=Drop("call statement"),
        caught_by=(
            f"{_TOKENS}::test_a_call_with_a_token_redacts_it_and_the_earlier_ones",
            f"{_SECRETS}::test_neither_a_clients_secret_nor_its_tokens_are_readable[embedded-basic]",
        ),
    ),
    Rule(
        name="no-secret-in-progress",
        breaks="Credentials that an agent repeats in its progress are written to topics and database.",
        symbol="trunkline.bridge.calls.streams:AgentStreamReader._handle_event",
        change=Change("assigned value", 1, of=2, becomes="it.args[0]"),
        caught_by=(f"{_SECRETS}::test_a_token_that_comes_back_in_a_stream_is_not_readable[embedded]",),
    ),
    Rule(
        name="client-secret-again-for-another-endpoint",
        breaks="A client that may change an agent can have its OAuth client secret sent to another host.",
        symbol="trunkline.agents.authentication.auth_config:sends_elsewhere",
        change=Change("operand", 2, of=2, becomes="it.left is None"),
        caught_by=(
            "tests/unit/agents/authentication/test_auth_config.py::test_a_client_secret_stays_with_the_host_it_was_given_for",
        ),
    ),
    Rule(
        name="push-token-not-in-the-wire-record",
        breaks="A person who can read wire records can trigger polls of the task.",
        symbol="trunkline.bridge.calls.recording:ExchangeRecorder.add",
        change=Change("keyword", 1, of=12, becomes="it.args[0]"),
        caught_by=(
            "tests/scenarios/test_push_notifications.py::test_an_agent_gets_a_push_address_and_is_polled_when_it_uses_it[embedded]",
        ),
    ),
)
