"""Agents that work for a long time, and agents that ask questions."""

from __future__ import annotations

from datetime import timedelta

from tests.unit.machine.machine_harness import MachineHarness

ONE = "{name: w, steps: {s: {agent: A, input: {query: owls}}}}"
TWO = "{name: w, steps: {s: {agent: A}, t: {agent: B}}}"


def asked() -> MachineHarness:
    play = MachineHarness(ONE)
    play.start()
    play.ask("s", "Which owls?")
    return play


def test_a_working_agent_is_waited_for() -> None:
    play = MachineHarness(ONE)
    play.start()
    play.work("s", "remote-7")
    step = play.step("s")
    assert step.waiting_for is not None
    assert (step.status, step.waiting_for.kind, step.remote_task_id) == ("RUNNING", "remote", "remote-7")
    assert play.state.status == "RUNNING"
    play.succeed("s", "done")
    assert (play.state.status, play.step("s").waiting_for) == ("COMPLETED", None)


def test_news_that_an_agent_is_still_working_is_recorded_once() -> None:
    play = MachineHarness(ONE)
    play.start()
    play.work("s")
    assert play.work("s").events == []


def test_a_working_agent_that_fails_is_called_again_without_its_old_task() -> None:
    play = MachineHarness("{name: w, steps: {s: {agent: A, retry: {on: [any]}}}}")
    play.start()
    play.work("s")
    play.fail("s", "agent_task_failed")
    play.pass_time(timedelta(seconds=1))
    first, second = play.calls("s")
    assert second.task_id != first.task_id
    assert second.remote_task_id is None


def test_a_question_makes_the_run_wait_for_a_person() -> None:
    play = asked()
    step = play.step("s")
    assert step.waiting_for is not None
    assert (step.status, step.waiting_for.kind, step.waiting_for.text) == ("WAITING", "input", "Which owls?")
    assert (play.state.status, play.timers) == ("WAITING", {})
    assert play.history[-2:] == ["StepWaiting", "RunWaiting"]


def test_a_run_does_not_wait_for_a_person_while_anything_in_it_runs() -> None:
    play = MachineHarness(TWO)
    play.start()
    play.ask("s")
    assert play.state.status == "RUNNING"
    play.fail("t", "agent_timeout")
    assert play.state.status == "RUNNING"
    play.pass_time(timedelta(seconds=1))
    play.succeed("t")
    assert play.state.status == "WAITING"


def test_a_reply_goes_on_with_the_agents_own_task_and_context() -> None:
    play = asked()
    play.reply("s", "Barn owls.")
    first, second = play.calls("s")
    assert (second.remote_task_id, second.context_id) == ("remote-1", "context-1")
    assert second.input_data == {"text": "Barn owls."}
    assert (first.task_id, second.task_id) == (f"{play.state.id}/s/0", f"{play.state.id}/s/0.1")
    assert (play.state.status, play.step("s").status) == ("RUNNING", "RUNNING")
    assert play.step("s").replies == 1


def test_a_conversation_uses_no_attempts_up() -> None:
    play = asked()
    for question in range(5):
        play.reply("s", "Go on.")
        play.ask("s", f"Question {question}?")
    assert {task.attempt for task in play.calls("s")} == {1}
    assert len({task.task_id for task in play.calls("s")}) == 6
    play.reply("s", "Enough.")
    play.fail("s", "agent_timeout")
    assert play.step("s").status == "WAITING"


def test_a_reply_without_an_answer_is_sent_again_as_it_was() -> None:
    play = asked()
    play.reply("s", "Barn owls.")
    play.fail("s", "agent_timeout")
    play.pass_time(timedelta(seconds=1))
    _, second, third = play.calls("s")
    assert (third.task_id, third.attempt) == (second.task_id, 2)
    assert (third.input_data, third.remote_task_id) == (second.input_data, "remote-1")


def test_a_refused_reply_is_followed_by_a_new_call_with_the_input() -> None:
    play = asked()
    play.reply("s", "Barn owls.")
    play.fail("s", "agent_http_error", http_status=503)
    play.pass_time(timedelta(seconds=1))
    third = play.task("s")
    assert (third.task_id, third.attempt) == (f"{play.state.id}/s/1.1", 2)
    assert (third.input_data, third.remote_task_id) == ({"query": "owls"}, None)


def test_a_reply_to_a_paused_run_waits_for_its_resumption() -> None:
    play = asked()
    play.pause()
    play.reply("s", "Barn owls.")
    assert (len(play.calls("s")), play.state.status) == (1, "PAUSED")
    play.resume()
    assert play.task("s").input_data == {"text": "Barn owls."}
    assert (play.task("s").task_id, play.task("s").attempt) == (f"{play.state.id}/s/0.1", 1)


def test_an_unrequested_reply_changes_nothing() -> None:
    play = MachineHarness(ONE)
    play.start()
    assert play.reply("s", "Hello?").events == []
    play.fail("s", "agent_timeout")
    assert play.reply("s", "Hello?").events == []


def test_a_second_reply_to_the_same_question_changes_nothing() -> None:
    play = asked()
    play.reply("s", "Barn owls.")
    assert play.reply("s", "No: eagle owls.").events == []
