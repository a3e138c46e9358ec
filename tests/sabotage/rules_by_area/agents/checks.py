"""Rules of checks: they give no work unasked, tell no secret, and leave alone whoever hangs."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.mutation import Change, Drop
from tests.sabotage.rule import Rule

_BROKEN = "tests/checker/test_broken_agents.py"
_REGISTERED = "tests/checker/test_registered_agents.py"

CHECKS: Sequence[Rule] = (
    Rule(
        name="check-gives-no-work",
        breaks="A check that was to look only sends messages, and the agent works on them.",
        symbol="trunkline.checker.check:_send",
        change=Change("assigned value", 8, of=11, becomes="list(it.generators[0].iter)"),
        caught_by=(f"{_BROKEN}::test_without_active_no_message_is_sent",),
    ),
    Rule(
        name="check-hides-what-an-agent-repeats",
        breaks="An agent's secret, repeated in its answer, stands in the report that everybody may read.",
        symbol="trunkline.checker.exchanges:record_exchange",
        change=Change("argument", 14, of=23, becomes="Redaction()"),
        caught_by=(f"{_REGISTERED}::test_an_agent_is_asked_with_its_own_credentials_and_they_are_not_shown",),
    ),
    Rule(
        name="check-hides-secrets-in-its-own-words",
        breaks="The words of a finding quote an agent that repeats its secret.",
        symbol="trunkline.checker.check:_FindingBuilder._finding",
        change=Change("keyword", becomes="it.value.args[0][it.slice]"),
        caught_by=(f"{_REGISTERED}::test_an_agent_is_asked_with_its_own_credentials_and_they_are_not_shown",),
    ),
    Rule(
        name="check-leaves-a-hanging-agent",
        breaks="A check of an agent that hangs waits for each of its answers in vain.",
        symbol="trunkline.checker.session:CheckSession.may_continue",
        change=Drop("operand", 2, of=6),
        caught_by=(f"{_BROKEN}::test_an_agent_that_hangs_is_found_out_and_left_alone",),
    ),
    Rule(
        name="check-sends-secrets-nowhere-else",
        breaks="Whoever may ask for a check lets an agent's credentials be sent to an address of their own.",
        symbol="trunkline.api.resources.checks:CheckRequest",
        change=Drop("keyword", 2, of=6),
        caught_by=(f"{_REGISTERED}::test_what_cannot_be_checked_is_refused",),
    ),
    Rule(
        name="check-knows-one-id-from-another",
        breaks="An agent that makes numbers of ids passes, and its answers are refused by every run.",
        symbol="trunkline.checker.plans.jsonrpc_envelope:is_same",
        change=Change(
            "return value",
            becomes="str(it.values[0].left.args[0]) == str(it.values[0].comparators[0].args[0]).lstrip('0')",
        ),
        caught_by=(f"{_BROKEN}::test_a_defect_fails_by_the_finding_that_names_it[ids-become-numbers]",),
    ),
    Rule(
        name="check-asks-for-a-task-that-goes-on",
        breaks="An agent passes that works on and cannot be asked for its task: every step with it fails in the end.",
        symbol="trunkline.checker.check:_send",
        change=Change("condition", 7, of=7, becomes="False"),
        caught_by=(
            f"{_BROKEN}::test_a_defect_fails_by_the_finding_that_names_it[works-on-and-cannot-be-asked]",
            f"{_BROKEN}::test_a_defect_fails_by_the_finding_that_names_it[works-on-and-forgets-it]",
        ),
    ),
    Rule(
        name="check-knows-one-task-from-another",
        breaks="An agent passes that tells of another task than it was asked for.",
        symbol="trunkline.checker.plans.step_call:_usable_by_bridge.judge",
        change=Change("condition", 2, of=3, becomes="it.values[0] and it.values[1].left is None"),
        caught_by=(
            f"{_BROKEN}::test_a_defect_fails_by_the_finding_that_names_it[works-on-and-tells-of-another]",
        ),
    ),
)
