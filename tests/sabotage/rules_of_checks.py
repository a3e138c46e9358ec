"""Rules of checks: they give no work unasked, tell no secret, and leave alone whoever hangs."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.rule import Rule

_BROKEN = "tests/checker/test_broken_agents.py"
_REGISTERED = "tests/checker/test_registered_agents.py"

CHECKS: Sequence[Rule] = (
    Rule(
        name="check-gives-no-work",
        breaks="A check that was to look only sends messages, and the agent works on them.",
        file="checker/check.py",
        old="probes = [probe for probe in plan.probes if active or not probe.active]",
        new="probes = list(plan.probes)",
        caught_by=(f"{_BROKEN}::test_without_active_no_message_is_sent",),
    ),
    Rule(
        name="check-hides-what-an-agent-repeats",
        breaks="An agent's secret, repeated in its answer, stands in the report that everybody may read.",
        file="checker/exchanges.py",
        old='body=record_text(answer.body, redaction, "The response body", notes, MOST_BYTES_SHOWN),',
        new='body=record_text(answer.body, Redaction(), "The response body", notes, MOST_BYTES_SHOWN),',
        caught_by=(f"{_REGISTERED}::test_an_agent_is_asked_with_its_own_credentials_and_they_are_not_shown",),
    ),
    Rule(
        name="check-hides-secrets-in-its-own-words",
        breaks="The words of a finding quote an agent that repeats its secret.",
        file="checker/check.py",
        old="self._inquiry.redaction.text(made.seen)",
        new="made.seen",
        caught_by=(f"{_REGISTERED}::test_an_agent_is_asked_with_its_own_credentials_and_they_are_not_shown",),
    ),
    Rule(
        name="check-leaves-a-hanging-agent",
        breaks="A check of an agent that hangs waits for each of its answers in vain.",
        file="checker/inquiry.py",
        old=" and self._timeouts < self._limits.most_timeouts",
        new="",
        caught_by=(f"{_BROKEN}::test_an_agent_that_hangs_is_found_out_and_left_alone",),
    ),
    Rule(
        name="check-sends-secrets-nowhere-else",
        breaks="Whoever may ask for a check lets an agent's credentials be sent to an address of their own.",
        file="api/routes/checks.py",
        old=", frozen=True, forbid_unknown_fields=True",
        new=", frozen=True",
        caught_by=(f"{_REGISTERED}::test_what_cannot_be_checked_is_refused",),
    ),
    Rule(
        name="check-knows-one-id-from-another",
        breaks="An agent that makes numbers of ids passes, and its answers are refused by every run.",
        file="checker/plans/envelope.py",
        old="return type(found) is type(wanted) and found == wanted",
        new="return str(found) == str(wanted).lstrip('0')",
        caught_by=(f"{_BROKEN}::test_a_defect_fails_by_the_finding_that_names_it[ids-become-numbers]",),
    ),
    Rule(
        name="check-asks-for-a-task-that-goes-on",
        breaks="An agent passes that works on and cannot be asked for its task: every step with it fails in the end.",
        file="checker/check.py",
        old="if last is not None and inquiry.goes_on:",
        new="if False:",
        caught_by=(
            f"{_BROKEN}::test_a_defect_fails_by_the_finding_that_names_it[works-on-and-cannot-be-asked]",
            f"{_BROKEN}::test_a_defect_fails_by_the_finding_that_names_it[works-on-and-forgets-it]",
        ),
    ),
    Rule(
        name="check-knows-one-task-from-another",
        breaks="An agent passes that tells of another task than it was asked for.",
        file="checker/plans/steps.py",
        old="told_of is not None and told_of != asked_for",
        new="told_of is None",
        caught_by=(
            f"{_BROKEN}::test_a_defect_fails_by_the_finding_that_names_it[works-on-and-tells-of-another]",
        ),
    ),
)
