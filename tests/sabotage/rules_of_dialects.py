"""Rules of the choice of a dialect: what is no proof, and where a card may lead."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.rule import Rule

_NEGOTIATION = "tests/scenarios/test_negotiation.py"
_DIALECTS = "tests/scenarios/test_dialects.py"
_REGISTRY = "tests/unit/services/agents/test_registry.py"

DIALECTS: Sequence[Rule] = (
    Rule(
        name="card-of-its-own-origin",
        breaks="A card can have the agent's credentials sent to any host.",
        file="protocols/negotiate.py",
        old="return origin is not None and origin in (origin_of(agent_url), *options.allow_card_origin)",
        new="return origin is not None",
        caught_by=(
            f"{_DIALECTS}::test_a_card_cannot_send_the_credentials_to_another_origin[embedded]",
            f"{_NEGOTIATION}::test_a_secret_goes_to_another_origin_only_when_it_was_given_for_it",
            "tests/unit/protocols/test_negotiate.py::test_an_approved_origin_is_followed_and_no_other",
        ),
    ),
    Rule(
        name="secret-again-for-another-origin",
        breaks="Whoever may change an agent can have its secret sent to a host of theirs.",
        file="services/agents/registry.py",
        old="places = (url, *options.allow_card_origin, *(() if override is None else (override,)))",
        new="places = (url, *(() if override is None else ()))",
        caught_by=(
            f"{_REGISTRY}::test_whoever_approves_another_host_must_know_the_secret_that_will_be_sent_there",
        ),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="another-dialect-only-after-proof",
        breaks="An agent that has taken a task and then fails gets it once more in every dialect.",
        file="bridge/calls/client.py",
        old="if isinstance(outcome, Failed) and outcome.other_dialect:",
        new="if isinstance(outcome, Failed):",
        caught_by=(
            f"{_NEGOTIATION}::test_without_proof_nothing_is_sent_twice[embedded--32603]",
            f"{_NEGOTIATION}::test_a_call_that_may_have_been_taken_is_not_made_in_another_dialect",
        ),
    ),
    Rule(
        name="a-pinned-dialect-is-never-left",
        breaks="An agent is spoken to in another dialect than the operator has said.",
        file="bridge/agents/negotiation.py",
        old="        if agent.protocol != AUTO:\n            return ()\n",
        new="",
        caught_by=(f"{_DIALECTS}::test_a_pinned_dialect_is_never_left[embedded]",),
    ),
)
