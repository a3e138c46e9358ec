"""Rules of steps that reuse the output of an equal step."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.mutation import Change, Drop
from tests.sabotage.rule import Rule

_MACHINE = "tests/unit/machine/steps/test_output_cache.py"
_STORE = "tests/contract/stores/test_output_cache.py"
_CACHE = "trunkline.machine.output_cache"
_SQLITE = "trunkline.stores.sqlite.tables.agents.output_cache:SqliteOutputCacheWrites"

OUTPUT_CACHE: Sequence[Rule] = (
    Rule(
        name="search-for-an-output-is-under-way",
        breaks="A cancelled run leaves its claim, and steps of other runs wait for it.",
        symbol="trunkline.machine.state:StepState.has_begun",
        change=Drop("operand", 2, of=5),
        caught_by=(f"{_MACHINE}::test_cancelling_a_waiting_step_gives_up_its_claim",),
    ),
    Rule(
        name="old-cache-answers-do-not-count",
        breaks="A step does the work because of an answer to an earlier question, while another one leads.",
        symbol=f"{_CACHE}:take",
        change=Drop("operand", 3, of=5),
        caught_by=(f"{_MACHINE}::test_an_old_answer_changes_nothing",),
    ),
    Rule(
        name="paused-run-does-no-work-for-others",
        breaks="A paused run begins calls.",
        symbol=f"{_CACHE}:take",
        change=Change("condition", 4, of=4, becomes="False"),
        caught_by=(f"{_MACHINE}::test_a_paused_step_gives_up_the_lead_and_asks_again",),
    ),
    Rule(
        name="waiting-for-an-output-ends",
        breaks="A step whose answer is lost waits for ever.",
        symbol=f"{_CACHE}:_seek",
        change=Drop("call statement", 3, of=3),
        caught_by=(f"{_MACHINE}::test_an_old_answer_changes_nothing",),
    ),
    Rule(
        name="given-input-is-not-cached",
        breaks="A person gives a step another input, and gets the output for the old one.",
        symbol=f"{_CACHE}:must_ask",
        change=Change("ternary", 1, of=1, becomes="True"),
        caught_by=(f"{_MACHINE}::test_an_input_that_a_person_gives_is_used",),
    ),
    Rule(
        name="schema-is-a-part-of-the-key",
        breaks="A step gets an output that does not match its schema.",
        symbol=f"{_CACHE}:_digest",
        change=Drop("element", 13, of=14),
        caught_by=(f"{_MACHINE}::test_an_output_that_was_checked_otherwise_is_another_one",),
    ),
    Rule(
        name="failed-work-is-handed-on",
        breaks="Steps wait for one that has failed.",
        symbol="trunkline.machine.turn:Turn._end_claim",
        change=Drop("call statement", 2, of=2),
        caught_by=(f"{_MACHINE}::test_the_lead_stays_over_a_retry_and_ends_with_the_failure",),
    ),
    Rule(
        name="files-stay-with-their-run",
        breaks="A step gets an output whose files have been deleted with another run.",
        symbol="trunkline.machine.turn:_can_be_kept",
        change=Drop("operand", 2, of=2),
        caught_by=(f"{_MACHINE}::test_a_large_output_and_one_with_files_are_not_kept",),
    ),
    Rule(
        name="step-that-asks-people-holds-no-one",
        breaks="Steps of other runs wait until a person answers the question of one.",
        symbol="trunkline.machine.step_changes:leave_cache",
        change=Drop("operand", 6, of=9),
        caught_by=(f"{_MACHINE}::test_a_step_that_waits_for_a_person_lets_others_do_the_work",),
    ),
    Rule(
        name="claims-of-ended-runs-end",
        breaks="Steps wait for a run that is over.",
        symbol=f"{_SQLITE}.claim",
        change=Drop("call statement", 2, of=4),
        caught_by=(f"{_STORE}::test_a_claim_ends_with_its_run[sqlite]",),
    ),
    Rule(
        name="no-step-waits-inside-the-lead",
        breaks="Two runs wait for outputs that each other makes.",
        symbol=f"{_SQLITE}.claim",
        change=Drop("call statement", 4, of=4),
        caught_by=(f"{_STORE}::test_a_step_inside_one_that_works_on_an_output_does_not_wait[sqlite]",),
    ),
    Rule(
        name="one-claim-leads",
        breaks="Equal steps do the same work.",
        symbol=f"{_SQLITE}._lead",
        change=Change("condition", 2, of=3, becomes="True"),
        caught_by=(f"{_STORE}::test_the_next_one_leads_when_the_first_is_gone[sqlite]",),
    ),
)
