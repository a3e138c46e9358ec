"""Rules of choosing a dialect: what counts as proof, and which hosts a card may name."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.mutation import Change, Drop
from tests.sabotage.rule import Rule

_NEGOTIATION = "tests/scenarios/test_negotiation.py"
_DIALECTS = "tests/scenarios/test_dialects.py"
_REGISTRY = "tests/unit/services/agents/test_registry.py"

DIALECTS: Sequence[Rule] = (
    Rule(
        name="card-of-its-own-origin",
        breaks="An agent card can make Trunkline send the agent's credentials to any host.",
        symbol="trunkline.protocols.negotiate:_is_approved",
        change=Drop("operand", 2, of=2),
        caught_by=(
            f"{_DIALECTS}::test_a_card_cannot_send_the_credentials_to_another_origin[embedded]",
            f"{_NEGOTIATION}::test_a_secret_goes_to_another_origin_only_when_it_was_given_for_it",
            "tests/unit/protocols/test_negotiate.py::test_an_approved_origin_is_followed_and_no_other",
        ),
    ),
    Rule(
        name="secret-again-for-another-origin",
        breaks="A client that may change an agent can have the agent's secret sent to another host.",
        symbol="trunkline.services.agents.registry:_origins",
        change=Change("assigned value", 2, of=2, becomes="(it.elts[0],)"),
        caught_by=(f"{_REGISTRY}::test_approving_another_host_requires_the_secret_that_will_be_sent_there",),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="another-dialect-only-after-proof",
        breaks="An agent that accepted a task and then fails gets it again in every dialect.",
        symbol="trunkline.bridge.calls.session:AgentSession.send",
        change=Drop("operand", 2, of=4),
        caught_by=(
            f"{_NEGOTIATION}::test_without_proof_nothing_is_sent_twice[embedded--32603]",
            f"{_NEGOTIATION}::test_a_call_that_may_have_been_taken_is_not_made_in_another_dialect",
        ),
    ),
    Rule(
        name="pinned-dialect-is-kept",
        breaks="An agent is called in a dialect other than the one that the operator pinned.",
        symbol="trunkline.bridge.agents.negotiation:DialectNegotiator.alternatives",
        change=Drop("if statement", 1, of=2),
        caught_by=(f"{_DIALECTS}::test_a_pinned_dialect_is_never_left[embedded]",),
    ),
)
