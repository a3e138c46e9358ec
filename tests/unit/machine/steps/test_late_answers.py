"""Answers that arrive after their step has ended or moved on."""

from __future__ import annotations

from datetime import timedelta

from tests.unit.machine.machine_harness import MachineHarness, error

ONE = "{name: w, steps: {s: {agent: A}}}"


def test_an_answer_is_taken_while_the_next_attempt_is_waited_for() -> None:
    play = MachineHarness(ONE)
    play.start()
    play.fail("s", "agent_timeout")
    play.succeed("s", "late")
    assert (play.state.status, play.output) == ("COMPLETED", "late")
    assert play.timers == {}


def test_an_answer_to_an_earlier_attempt_is_taken_and_the_newer_one_is_stopped() -> None:
    play = MachineHarness(ONE)
    play.start()
    first = play.task("s")
    play.fail("s", "agent_timeout")
    play.pass_time(timedelta(seconds=1))
    play.answer(first, "success")
    assert play.state.status == "COMPLETED"
    assert [(stop.task_id, stop.attempt) for stop in play.stops] == [(first.task_id, 2)]


def test_bad_news_from_an_earlier_attempt_changes_nothing() -> None:
    play = MachineHarness(ONE)
    play.start()
    first = play.task("s")
    play.fail("s", "agent_timeout")
    play.pass_time(timedelta(seconds=1))
    for late in (error("agent_timeout"), error("agent_task_failed")):
        assert play.answer(first, "error", error=late).events == []
    assert play.answer(first, "cancelled").events == []
    assert play.answer(first, "unknown").events == []
    assert play.step("s").status == "RUNNING"


def test_an_answer_to_a_task_that_has_failed_in_the_agents_own_words_is_history() -> None:
    play = MachineHarness(ONE)
    play.start()
    first = play.task("s")
    play.fail("s", "agent_http_error", http_status=503)
    assert play.answer(first, "success").events == []
    play.pass_time(timedelta(seconds=1))
    assert play.answer(first, "success").events == []
    assert play.step("s").status == "RUNNING"


def test_an_answer_is_taken_while_its_step_is_queued_in_a_paused_run() -> None:
    play = MachineHarness(ONE)
    play.start()
    play.fail("s", "agent_timeout")
    play.pause()
    play.pass_time(timedelta(seconds=5))
    assert play.step("s").status == "PENDING"
    play.succeed("s", "late")
    assert play.step("s").status == "COMPLETED"
    play.resume()
    assert (play.state.status, play.output, len(play.calls("s"))) == ("COMPLETED", "late", 1)


def test_an_answer_while_a_person_is_asked_ends_the_question() -> None:
    play = MachineHarness(ONE)
    play.start()
    play.ask("s")
    assert play.state.status == "WAITING"
    play.succeed("s", "found it myself")
    assert (play.state.status, play.output) == ("COMPLETED", "found it myself")


def test_an_answer_for_a_step_that_the_workflow_does_not_have_changes_nothing() -> None:
    play = MachineHarness(ONE)
    play.start()
    task = play.task("s")
    task.step = "stranger"
    assert play.answer(task, "success").events == []


def test_an_answer_for_a_step_that_has_not_begun_changes_nothing() -> None:
    play = MachineHarness("{name: w, steps: {s: {agent: A}, t: {agent: A, needs: [s]}}}")
    play.start()
    task = play.task("s")
    task.step = "t"
    assert play.answer(task, "success").events == []


def test_a_second_answer_to_a_call_changes_nothing() -> None:
    play = MachineHarness("{name: w, steps: {s: {agent: A}, t: {agent: A}}}")
    play.start()
    play.succeed("s", "first")
    assert play.succeed("s", "second").events == []
    assert play.step("s").output == b'"first"'
