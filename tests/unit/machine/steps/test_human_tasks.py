"""Whose a task is: claims, rules for the questions of agents, and in whose inboxes a task is listed."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.unit.machine.machine_harness import START, MachineHarness
from tests.unit.machine.steps.test_ask import TWO, started, task_of

from trunkline.clock import after
from trunkline.machine.effects import Effect, ListTask, UnlistTask
from trunkline.machine.inputs import (
    EscalationDue,
    PersonAnswer,
    PersonAnswered,
    ResolvedOutcome,
    TaskClaimed,
    TaskReleased,
    decode_input,
    encode_input,
)
from trunkline.machine.state import HumanTask

DAY = timedelta(days=1)
TASK = "{name: w, steps: {ok: {ask: {title: T, assignees: [support, ada], due: 1d}}}}"
ANYONE = "{name: w, steps: {ok: {ask: {title: T}}}}"
ASKING = """
name: w
steps:
  ok:
    agent: A
    questions: {assignees: "${ input.who }", due: 1d, escalate: [{after: 2d, to: [boss]}]}
"""


def claim(play: MachineHarness, by: str, *, attempt: int = 1, replies: int = 0) -> list[Effect]:
    return play.take(TaskClaimed("ok", attempt, replies, by)).effects


def release(play: MachineHarness, by: str) -> list[Effect]:
    return play.take(TaskReleased("ok", 1, 0, by)).effects


def listed(*people: str, due: bool = True) -> ListTask:
    return ListTask("ok", people, START, after(START, DAY) if due else None)


def asked() -> tuple[MachineHarness, list[Effect]]:
    play = started(ASKING, {"who": ["ada"]})
    return play, play.ask("ok").effects


def answered(play: MachineHarness, by: str | None = None, answer: str = "yes") -> list[Effect]:
    return play.take(PersonAnswered("ok", 1, PersonAnswer(at=play.now, by=by, answer=answer))).effects


def test_a_task_is_listed_for_its_assignees_until_it_is_answered() -> None:
    play = MachineHarness(TASK)
    assert listed("support", "ada") in play.start().effects
    assert UnlistTask("ok") in answered(play)
    assert play.state.status == "COMPLETED"


def test_a_claimed_task_is_listed_for_the_person_who_works_on_it() -> None:
    play = started(TASK)
    assert claim(play, "bob") == [listed("bob")]
    assert (task_of(play).claimed_by, task_of(play).claimed_at) == ("bob", START)
    assert release(play, "bob") == [listed("support", "ada")]
    assert task_of(play).claimed_by is None


def test_a_claim_of_a_task_without_assignees_ends_with_its_release() -> None:
    play = started(ANYONE)
    assert claim(play, "bob") == [listed("bob", due=False)]
    assert release(play, "bob") == [UnlistTask("ok")]


def test_the_first_claim_counts_until_its_owner_releases_it() -> None:
    play = started(TASK)
    claim(play, "ada")
    assert claim(play, "bob") == []
    assert release(play, "bob") == []
    assert task_of(play).claimed_by == "ada"


def test_only_the_person_who_has_claimed_a_task_answers_it() -> None:
    play = started(TASK)
    claim(play, "ada")
    answered(play, by="bob")
    answered(play)
    assert play.step("ok").status == "WAITING"
    answered(play, by="ada")
    assert play.step("ok").status == "COMPLETED"


def test_an_answer_that_does_not_decide_the_task_ends_the_claim() -> None:
    play = started(TWO)
    claim(play, "ada")
    assert answered(play, by="ada", answer="approve") == [UnlistTask("ok")]
    assert task_of(play).claimed_by is None
    answered(play, by="bob", answer="approve")
    assert play.state.status == "COMPLETED"


@pytest.mark.parametrize(("attempt", "replies"), [(2, 0), (1, 1)])
def test_a_claim_of_another_task_of_the_step_does_not_count(attempt: int, replies: int) -> None:
    play = started(TASK)
    assert claim(play, "ada", attempt=attempt, replies=replies) == []
    assert task_of(play).claimed_by is None


def test_a_claim_changes_neither_due_time_nor_escalation() -> None:
    escalated = "escalate: [{after: 1d, to: [boss]}], timeout: 2d"
    play = started(f"{{name: w, steps: {{ok: {{ask: {{title: T, {escalated}}}}}}}}}")
    timers = dict(play.timers)
    claim(play, "ada")
    assert play.timers == timers
    turn = play.take(EscalationDue("ok", 1, 0))
    assert (task_of(play).assignees, task_of(play).claimed_by) == (("boss",), "ada")
    assert listed("ada", due=False) in turn.effects


def test_the_end_of_a_claimed_task_takes_it_off_every_list() -> None:
    play = started(TASK)
    claim(play, "ada")
    assert UnlistTask("ok") in play.cancel().effects


def test_a_question_has_the_assignees_the_due_time_and_the_escalation_of_its_step() -> None:
    play, effects = asked()
    assert task_of(play) == HumanTask(
        assignees=("ada",), due=after(START, DAY), escalations=((after(START, 2 * DAY), ("boss",)),)
    )
    assert listed("ada") in effects
    escalated = play.take(EscalationDue("ok", 1, 0))
    assert task_of(play).assignees == ("ada", "boss")
    assert listed("ada", "boss") in escalated.effects


def test_the_next_question_of_an_agent_is_escalated_again() -> None:
    play, _ = asked()
    play.pass_time(2 * DAY)
    assert task_of(play).assignees == ("ada", "boss")
    assert UnlistTask("ok") in play.reply("ok", "The first").effects
    play.ask("ok", "Sure?")
    assert task_of(play).assignees == ("ada",)
    play.pass_time(2 * DAY)
    assert task_of(play).assignees == ("ada", "boss")


def test_the_escalation_of_an_answered_question_does_not_touch_the_next_one() -> None:
    play, _ = asked()
    play.reply("ok", "The first")
    play.ask("ok", "Sure?")
    play.take(EscalationDue("ok", 1, 0, 0))
    assert task_of(play).assignees == ("ada",)


def test_wrong_rules_fail_the_step_before_the_agent_has_done_any_work() -> None:
    play = started(ASKING, {"who": "ada, bob"})
    failure = play.step("ok").error
    assert failure is not None
    assert (failure.code, play.tasks) == ("expression_failed", [])
    why = "'assignees' must be a list of at most 100 names"
    assert failure.message == f"The rules for the agent's questions are wrong: {why}."


def test_without_rules_a_question_is_listed_nowhere_until_it_is_claimed() -> None:
    play = started("{name: w, steps: {ok: {agent: A}}}")
    effects = play.ask("ok").effects
    assert not [effect for effect in effects if isinstance(effect, ListTask | UnlistTask)]
    assert claim(play, "ada") == [listed("ada", due=False)]
    assert UnlistTask("ok") in play.reply("ok", "The first").effects


@pytest.mark.parametrize("outcome", ["succeeded", "failed", "call_again"])
def test_the_search_for_an_outcome_can_be_claimed(outcome: ResolvedOutcome) -> None:
    play = started("{name: w, steps: {ok: {agent: A, delivery: at_most_once}}}")
    play.answer(play.task("ok"), "unknown")
    assert play.step("ok").status == "OUTCOME_UNKNOWN"
    assert [type(effect) for effect in claim(play, "ada")] == [ListTask]
    assert UnlistTask("ok") in play.resolve("ok", outcome).effects


def test_claims_and_releases_survive_the_input_queue() -> None:
    for item in (
        TaskClaimed("ok", 1, 2, "ada"),
        TaskReleased("ok", 1, 2, "ada"),
        EscalationDue("ok", 1, 0, 3),
    ):
        assert decode_input(encode_input(item)) == item


def test_an_escalation_that_was_stored_before_questions_had_them_is_read() -> None:
    stored = b'{"type":"escalation_due","step":"ok","attempt":1,"number":0}'
    assert decode_input(stored) == EscalationDue("ok", 1, 0)
