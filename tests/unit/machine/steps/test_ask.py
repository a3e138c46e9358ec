"""Steps that ask people: which answer counts, until when, and who is asked."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest
from tests.unit.machine.machine_harness import START, MachineHarness

from trunkline.clock import after, rfc3339
from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.machine.inputs import (
    EscalationDue,
    PersonAnswer,
    PersonAnswered,
    RunRequested,
    WaitDue,
    decode_input,
    encode_input,
)
from trunkline.machine.state import HumanTask

ASK = """
name: w
steps:
  ok:
    ask:
      title: Approve ${ input.what }
      text: It costs ${ input.price }.
      options: [approve, reject]
      assignees: ["${ input.who }", finance]
      due: 1d
      timeout: 3d
  after: {set: {answer: "${ steps.ok.output.answer }"}, needs: [ok]}
"""
INPUT: Json = {"what": "the order", "price": 5, "who": "ada"}
DAY = timedelta(days=1)
ESCALATED = """
name: w
steps:
  ok: {ask: {title: T, assignees: [ada], escalate: [{after: 2d, to: [ceo]}, {after: 1d, to: [boss, ada]}]}}
"""
TWO = "{name: w, steps: {ok: {ask: {title: T, options: [approve, reject], required: 2}}}}"


def started(workflow: str, run_input: Json = None) -> MachineHarness:
    play = MachineHarness(workflow, run_input)
    play.start()
    return play


def answer(
    play: MachineHarness, answer: str | None, by: str | None = None, *, attempt: int = 1, data: Json = None
) -> JsonObject:
    given = PersonAnswer(at=play.now, by=by, answer=answer, data=msgspec.Raw(encode(data)))
    play.take(PersonAnswered("ok", attempt, given))
    return given.shown()


def task_of(play: MachineHarness, step: str = "ok") -> HumanTask:
    waiting = play.step(step).waiting_for
    assert waiting is not None
    assert waiting.human_task is not None
    return waiting.human_task


def failure_of(play: MachineHarness, step: str = "ok") -> str:
    failure = play.step(step).error
    assert failure is not None
    return failure.code


def test_a_run_waits_for_a_person_and_goes_on_with_the_answer() -> None:
    play = started(ASK, INPUT)
    waiting = play.step("ok").waiting_for
    assert waiting is not None
    assert (play.state.status, waiting.kind, waiting.text) == ("WAITING", "person", "It costs 5.")
    assert (waiting.since, waiting.until) == (START, after(START, 3 * DAY))
    assert task_of(play) == HumanTask(
        title="Approve the order",
        options=("approve", "reject"),
        assignees=("ada", "finance"),
        due=after(START, DAY),
    )
    shown = answer(play, "approve", "ada", data={"n": 1})
    assert (play.state.status, play.output, play.timers) == ("COMPLETED", {"answer": "approve"}, {})
    assert play.step("ok").output == encode(shown)
    assert shown == {
        "answer": "approve", "data": {"n": 1}, "by": "ada", "at": rfc3339(START), "comment": None,
    }  # fmt: skip
    assert play.history == [
        "RunStarted", "StepBegan", "StepWaiting", "RunWaiting", "StepAnswered", "StepCompleted", "StepBegan",
        "StepCompleted", "RunCompleted",
    ]  # fmt: skip


def test_the_first_answer_counts() -> None:
    play = started(ASK, INPUT)
    first = answer(play, "reject", "ada")
    answer(play, "approve", "bob")
    assert play.step("ok").output == encode(first)


def test_an_answer_to_another_attempt_does_not_count() -> None:
    play = started(ASK, INPUT)
    answer(play, "approve", attempt=2)
    assert play.statuses["ok"] == "WAITING"


def test_an_answer_to_a_step_without_a_question_changes_nothing() -> None:
    play = started("{name: w, steps: {ok: {agent: A}}}")
    answer(play, "approve")
    play.take(EscalationDue("ok", 1, 0))
    assert play.statuses == {"ok": "RUNNING"}


def test_a_timeout_fails_the_step() -> None:
    play = started(ASK, INPUT)
    play.pass_time(3 * DAY - timedelta(microseconds=1))
    assert play.statuses["ok"] == "WAITING"
    play.pass_time(timedelta(microseconds=1))
    assert (failure_of(play), play.state.status, play.timers) == ("ask_timeout", "FAILED", {})


def test_a_timeout_completes_the_step_with_null_where_the_workflow_continues() -> None:
    play = started("{name: w, steps: {ok: {ask: {title: T, timeout: 1h, on_timeout: continue}}}}")
    play.pass_time(timedelta(hours=1))
    assert (play.state.status, play.output) == ("COMPLETED", None)


def test_a_step_asks_again_after_a_timeout_that_is_retried() -> None:
    play = started(
        "{name: w, steps: {ok: {ask: {title: T, timeout: 1h},"
        " retry: {max_attempts: 2, on: [ask_timeout], first_delay: 1s, jitter: false}}}}"
    )
    play.pass_time(timedelta(hours=1))
    answer(play, "too late")
    play.pass_time(timedelta(seconds=1))
    assert (play.step("ok").attempts, play.statuses) == (2, {"ok": "WAITING"})
    answer(play, "in time", attempt=2)
    assert play.state.status == "COMPLETED"


def test_a_timer_of_another_attempt_does_not_end_the_wait() -> None:
    play = started(ASK, INPUT)
    play.take(WaitDue("ok", 2))
    assert play.statuses["ok"] == "WAITING"


def test_a_task_is_overdue_without_any_effect_on_the_run() -> None:
    play = started("{name: w, steps: {ok: {ask: {title: T, due: 1h}}}}")
    assert play.timers == {}
    play.pass_time(DAY)
    answer(play, "late")
    assert play.state.status == "COMPLETED"


def test_a_due_time_can_be_a_time() -> None:
    play = started(
        "{name: w, steps: {ok: {ask: {title: T, due: '${ input }'}}}}", "2026-12-24T08:00:00+01:00"
    )
    due = task_of(play).due
    assert due is not None
    assert rfc3339(due) == "2026-12-24T07:00:00.000000Z"


def test_each_escalation_adds_assignees_at_its_time() -> None:
    play = started(ESCALATED)
    play.pass_time(DAY - timedelta(microseconds=1))
    assert task_of(play).assignees == ("ada",)
    play.pass_time(timedelta(microseconds=1))
    assert task_of(play).assignees == ("ada", "boss")
    play.pass_time(DAY)
    assert task_of(play).assignees == ("ada", "boss", "ceo")
    assert (play.timers, play.history.count("StepEscalated")) == ({}, 2)


def test_an_escalation_comes_once() -> None:
    play = started(ESCALATED)
    play.pass_time(DAY)
    play.take(EscalationDue("ok", 1, 0))
    assert task_of(play).assignees == ("ada", "boss")


@pytest.mark.parametrize("after_escalation", [timedelta(), DAY])
def test_an_answer_ends_the_escalation(after_escalation: timedelta) -> None:
    play = started(ESCALATED)
    play.pass_time(after_escalation)
    answer(play, None)
    assert (play.state.status, play.timers) == ("COMPLETED", {})


def test_an_approval_of_two_people_needs_both_of_them() -> None:
    play = started(TWO)
    first = answer(play, "approve", "ada")
    answer(play, "approve", "ada")
    answer(play, "approve")
    assert (play.state.status, task_of(play).answers) == ("WAITING", (first,))
    second = answer(play, "approve", "bob")
    assert play.output == {**second, "answers": [first, second]}


def test_any_other_option_decides_at_once() -> None:
    play = started(TWO)
    answer(play, "approve", "ada")
    second = answer(play, "reject", "bob")
    assert isinstance(play.output, dict)
    assert play.output["answer"] == second["answer"] == "reject"


def test_a_task_is_answered_during_a_pause_but_nothing_begins() -> None:
    play = started(ASK, INPUT)
    play.pause()
    answer(play, "approve")
    assert play.statuses == {"ok": "COMPLETED", "after": "PENDING"}
    play.resume()
    assert play.state.status == "COMPLETED"


def test_the_end_of_the_run_closes_the_task_and_its_timers() -> None:
    play = started(ESCALATED.replace("title: T", "title: T, timeout: 5d"))
    play.cancel()
    assert (play.state.status, play.statuses, play.timers) == ("CANCELLED", {"ok": "CANCELLED"}, {})


def test_the_deadline_of_a_step_closes_its_task() -> None:
    play = started("{name: w, steps: {ok: {ask: {title: T, timeout: 2h}, deadline: 1h}}}")
    play.pass_time(timedelta(hours=1))
    assert (failure_of(play), play.timers) == ("deadline_exceeded", {})


def test_a_join_that_is_decided_closes_the_task() -> None:
    play = started(
        "{name: w, steps: {a: {agent: A}, ok: {ask: {title: T, timeout: 1h}},"
        " j: {set: {x: 1}, needs: [a, ok], join: any}}}"
    )
    play.succeed("a")
    assert (play.state.status, play.statuses["ok"], play.timers) == ("COMPLETED", "CANCELLED", {})


def test_items_ask_like_steps() -> None:
    play = started("{name: w, steps: {each: {for_each: [a, b], ask: {title: 'Check ${ item }'}}}}")
    assert [task_of(play, f"each[{index}]").title for index in range(2)] == ["Check a", "Check b"]
    for index in (1, 0):
        given = PersonAnswer(at=play.now, answer=f"{index}")
        play.take(PersonAnswered(f"each[{index}]", 1, given))
    assert isinstance(play.output, list)
    assert [each["answer"] for each in play.output if isinstance(each, dict)] == ["0", "1"]


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("{title: '${ input }'}", "'title'"),
        ("{title: T, text: '${ input }'}", "'text'"),
        ("{title: T, assignees: '${ input }'}", "'assignees'"),
        ("{title: T, assignees: ['${ input }']}", "'assignees'"),
        ("{title: T, due: '${ input }'}", "'due'"),
        ("{title: T, timeout: '${ input }'}", "'timeout'"),
        ("{title: T, escalate: [{after: '${ input }', to: [a]}]}", "'after'"),
        ("{title: T, escalate: [{after: 1h, to: '${ input }'}]}", "'to'"),
    ],
)
def test_a_value_that_cannot_be_used_fails_the_step(asked: str, says: str) -> None:
    play = started(f"{{name: w, steps: {{ok: {{ask: {asked}}}}}}}", 5)
    failure = play.step("ok").error
    assert failure is not None
    assert (failure.code, play.state.status) == ("expression_failed", "FAILED")
    assert failure.message.startswith("The step cannot ask a person")
    assert says in failure.message


def test_more_assignees_than_a_task_can_have_fail_the_step() -> None:
    names: list[Json] = [f"p{index}" for index in range(101)]
    play = started("{name: w, steps: {ok: {ask: {title: T, assignees: '${ input }'}}}}", names)
    assert failure_of(play) == "expression_failed"


def test_the_inputs_of_people_survive_the_queue() -> None:
    given = PersonAnswer(at=START, by="ada", answer="yes", data=msgspec.Raw(b'{"a":1}'), comment="ok")
    for item in (PersonAnswered("ok", 2, given), EscalationDue("ok", 2, 1)):
        assert decode_input(encode_input(item)) == item


def test_a_task_given_by_a_retry_is_checked_like_one_of_the_workflow() -> None:
    play = MachineHarness(ASK, INPUT)
    play.take(RunRequested(inputs={"ok": msgspec.Raw(b'{"title":""}')}))
    assert failure_of(play) == "expression_failed"
