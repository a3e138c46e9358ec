"""Rules of agent checks: no work without `--active`, no secret in a report, no waiting for an agent that hangs."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.mutation import Change, Drop
from tests.sabotage.rule import Rule

_BROKEN = "tests/checker/test_broken_agents.py"
_REGISTERED = "tests/checker/test_registered_agents.py"

CHECKS: Sequence[Rule] = (
    Rule(
        name="check-gives-no-work",
        breaks="A check without `--active` sends messages, and the agent works on them.",
        symbol="trunkline.checker.check:_send",
        change=Change("assigned value", 8, of=12, becomes="list(it.generators[0].iter)"),
        caught_by=(f"{_BROKEN}::test_without_active_no_message_is_sent",),
    ),
    Rule(
        name="check-hides-what-an-agent-repeats",
        breaks="An agent's secret, repeated in its answer, appears in a report that every client may read.",
        symbol="trunkline.checker.exchanges:record_exchange",
        change=Change("argument", 14, of=23, becomes="Redaction()"),
        caught_by=(f"{_REGISTERED}::test_an_agent_is_asked_with_its_own_credentials_and_they_are_not_shown",),
    ),
    Rule(
        name="check-findings-quote-no-secret",
        breaks="The text of a finding quotes an agent that repeats its secret.",
        symbol="trunkline.checker.check:_FindingBuilder._finding",
        change=Change("keyword", becomes="it.value.args[0][it.slice]"),
        caught_by=(f"{_REGISTERED}::test_an_agent_is_asked_with_its_own_credentials_and_they_are_not_shown",),
    ),
    Rule(
        name="check-leaves-a-hanging-agent",
        breaks="A check of an agent that hangs waits for the timeout of every request.",
        symbol="trunkline.checker.session:CheckSession.may_continue",
        change=Drop("operand", 2, of=6),
        caught_by=(f"{_BROKEN}::test_an_agent_that_hangs_is_found_out_and_left_alone",),
    ),
    Rule(
        name="check-sends-secrets-nowhere-else",
        breaks="A client that may start a check can have an agent's credentials sent to another address.",
        symbol="trunkline.api.resources.agents.checks:CheckRequest",
        change=Drop("keyword", 2, of=6),
        caught_by=(f"{_REGISTERED}::test_what_cannot_be_checked_is_refused",),
    ),
    Rule(
        name="check-compares-ids-exactly",
        breaks="An agent that turns ids into numbers passes, and every run rejects its answers.",
        symbol="trunkline.checker.plans.jsonrpc_envelope:is_same",
        change=Change(
            "return value",
            becomes="str(it.values[0].left.args[0]) == str(it.values[0].comparators[0].args[0]).lstrip('0')",
        ),
        caught_by=(f"{_BROKEN}::test_a_defect_fails_by_the_finding_that_names_it[ids-become-numbers]",),
    ),
    Rule(
        name="check-polls-a-working-task",
        breaks="An agent passes whose tasks keep working and cannot be polled: every step that uses it fails "
        "eventually.",
        symbol="trunkline.checker.check:_send",
        change=Change("condition", 8, of=8, becomes="False"),
        caught_by=(
            f"{_BROKEN}::test_a_defect_fails_by_the_finding_that_names_it[works-on-and-cannot-be-asked]",
            f"{_BROKEN}::test_a_defect_fails_by_the_finding_that_names_it[works-on-and-forgets-it]",
        ),
    ),
    Rule(
        name="check-compares-task-ids",
        breaks="An agent passes that reports a task other than the one that was requested.",
        symbol="trunkline.checker.plans.step_call:_usable_by_bridge.judge",
        change=Change("condition", 2, of=3, becomes="it.values[0] and it.values[1].left is None"),
        caught_by=(
            f"{_BROKEN}::test_a_defect_fails_by_the_finding_that_names_it[works-on-and-tells-of-another]",
        ),
    ),
)
