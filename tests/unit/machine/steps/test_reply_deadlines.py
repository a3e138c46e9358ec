"""How long a question waits for a person, and what happens to the step without an answer."""

from __future__ import annotations

from datetime import timedelta

from tests.unit.machine.machine_harness import START, MachineHarness

from trunkline.clock import after
from trunkline.jsontypes import decode
from trunkline.machine.events import StepWaiting, encode_event
from trunkline.machine.inputs import ReplyOverdue, decode_input, encode_input
from trunkline.messages import Question

PATIENT = "{name: w, steps: {s: {agent: A, reply_timeout: 10m}}}"
RETRIED = "{name: w, steps: {s: {agent: A, reply_timeout: 10m, retry: {max_attempts: 9, on: [any]}}}}"
CONTINUED = (
    "{name: w, steps: {s: {agent: A, reply_timeout: 10m, on_error: continue}, t: {agent: B, needs: [s]}}}"
)
UNTIMED = "{name: w, steps: {s: {agent: A}}}"
TEN_MINUTES = timedelta(minutes=10)


def asked(workflow: str = PATIENT) -> MachineHarness:
    play = MachineHarness(workflow)
    play.start()
    play.ask("s")
    return play


def failure_of(play: MachineHarness) -> str:
    error = play.step("s").error
    assert error is not None
    return error.code


def test_a_question_says_until_when_it_waits() -> None:
    play = asked()
    waiting = play.step("s").waiting_for
    assert waiting is not None
    assert (waiting.since, waiting.until) == (START, after(START, TEN_MINUTES))
    assert (play.state.status, list(play.timers)) == ("WAITING", ["reply/s/1/0"])


def test_a_question_without_a_reply_in_time_fails_its_step_and_the_agent_is_cancelled() -> None:
    play = asked()
    play.pass_time(TEN_MINUTES)
    assert (play.state.status, play.statuses, failure_of(play)) == (
        "FAILED", {"s": "FAILED"}, "reply_timed_out",
    )  # fmt: skip
    assert play.state.error is not None
    assert "10m" in play.state.error.message
    assert [(stop.task_id, stop.attempt) for stop in play.stops] == [(play.task("s").task_id, 1)]
    assert play.timers == {}


def test_a_question_waits_to_the_last_moment() -> None:
    play = asked()
    play.pass_time(TEN_MINUTES - timedelta(microseconds=1))
    play.reply("s", "Just in time.")
    assert (play.statuses["s"], play.timers) == ("RUNNING", {})


def test_a_reply_after_the_deadline_changes_nothing() -> None:
    play = asked()
    play.pass_time(TEN_MINUTES)
    assert play.reply("s", "Too late.").events == []


def test_no_retry_follows_an_unanswered_question() -> None:
    play = asked(RETRIED)
    play.pass_time(TEN_MINUTES)
    assert (play.state.status, len(play.tasks), play.timers) == ("FAILED", 1, {})


def test_on_error_decides_how_the_run_goes_on() -> None:
    play = asked(CONTINUED)
    play.pass_time(TEN_MINUTES)
    assert (play.state.status, play.statuses) == ("RUNNING", {"s": "FAILED", "t": "RUNNING"})


def test_each_question_has_a_deadline_of_its_own() -> None:
    play = asked()
    play.pass_time(timedelta(minutes=9))
    play.reply("s", "The first answer.")
    play.ask("s", "And now?")
    assert [(key, timer.due) for key, timer in play.timers.items()] == [
        ("reply/s/1/1", after(play.now, TEN_MINUTES))
    ]
    play.pass_time(timedelta(minutes=9))
    assert play.statuses["s"] == "WAITING"
    play.pass_time(timedelta(minutes=1))
    assert failure_of(play) == "reply_timed_out"


def test_the_deadline_of_an_answered_question_says_nothing_to_the_next() -> None:
    play = asked()
    play.reply("s", "Yes.")
    play.ask("s", "Really?")
    assert play.take(ReplyOverdue("s", 1, 0)).events == []
    assert play.statuses["s"] == "WAITING"


def test_a_late_success_ends_the_wait() -> None:
    play = asked()
    play.succeed("s", "It was not needed after all.")
    assert (play.state.status, play.timers) == ("COMPLETED", {})


def test_cancelling_ends_the_wait_and_its_deadline() -> None:
    play = asked()
    play.cancel()
    assert (play.state.status, play.timers, len(play.stops)) == ("CANCELLED", {}, 1)


def test_a_pause_does_not_stop_the_clock_of_a_question() -> None:
    play = asked()
    play.pause()
    play.pass_time(TEN_MINUTES)
    assert (play.state.status, play.statuses["s"]) == ("PAUSED", "FAILED")
    play.resume()
    assert play.state.status == "FAILED"


def test_a_step_that_does_not_say_waits_as_long_as_the_settings_do() -> None:
    play = MachineHarness(UNTIMED)
    play.reply_timeout = timedelta(hours=1)
    play.start()
    play.ask("s")
    play.pass_time(timedelta(hours=1))
    assert failure_of(play) == "reply_timed_out"


def test_the_steps_own_deadline_goes_before_that_of_the_settings() -> None:
    play = MachineHarness(PATIENT)
    play.reply_timeout = timedelta(seconds=1)
    play.start()
    play.ask("s")
    assert [timer.due for timer in play.timers.values()] == [after(START, TEN_MINUTES)]


def test_without_any_deadline_a_question_waits_for_ever() -> None:
    play = asked(UNTIMED)
    play.pass_time(timedelta(days=365))
    assert (play.state.status, play.timers) == ("WAITING", {})


def test_a_login_request_waits_and_ends_like_a_question() -> None:
    play = MachineHarness(PATIENT)
    play.start()
    question = Question(kind="auth", text="Who are you?")
    play.answer(play.task("s"), "interrupted", question=question, remote_task_id="remote-1")
    waiting = play.step("s").waiting_for
    assert waiting is not None
    assert (waiting.kind, play.state.status) == ("auth", "WAITING")
    play.reply("s", "It is me.")
    assert play.task("s").input_data == {"text": "It is me."}
    play.succeed("s")
    assert (play.state.status, play.timers) == ("COMPLETED", {})


def test_other_content_of_a_question_is_kept_and_the_history_names_its_size() -> None:
    play = MachineHarness(PATIENT)
    play.start()
    question = Question(kind="input", text="May I?", data={"id": "call-1", "name": "pay"})
    turn = play.answer(play.task("s"), "interrupted", question=question, remote_task_id="remote-1")
    waiting = play.step("s").waiting_for
    assert waiting is not None
    assert waiting.data == {"id": "call-1", "name": "pay"}
    (event,) = [event for event in turn.events if isinstance(event, StepWaiting)]
    assert decode(encode_event(event)) == {
        "step": "s",
        "attempt": 1,
        "waiting_for": {
            "kind": "input",
            "text": "May I?",
            "until": "1970-01-01T00:26:40.000000Z",
            "data": {"bytes": 28},
        },
        "remote_task_id": "remote-1",
    }


def test_the_deadlines_input_survives_its_way_through_the_store() -> None:
    item = ReplyOverdue("s", 3, 2)
    assert decode_input(encode_input(item)) == item
