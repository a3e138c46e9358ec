"""What follows from an output that does not match the step's schema: a correction, or a failure."""

from __future__ import annotations

from datetime import timedelta

import msgspec
from tests.unit.machine.machine_harness import MachineHarness

from trunkline.jsontypes import JsonObject, encode
from trunkline.machine.events import StepRepairRequested
from trunkline.machine.evolve import restore
from trunkline.machine.inputs import ResultArrived
from trunkline.messages import AgentResult, AgentTask

CHECKED = """
name: w
steps:
  s: {agent: A, output_schema: {type: object, required: [score]}, KEYS}
  t: {agent: B, needs: [s]}
"""
WRONG = "output.data: has no score"


def playing(keys: str = "", run_input: JsonObject | None = None) -> MachineHarness:
    play = MachineHarness(CHECKED.replace("KEYS", keys), run_input)
    play.start()
    return play


def answer_wrongly(
    play: MachineHarness, task: AgentTask | None = None, *, context_id: str | None = "context-1"
) -> None:
    asked = play.task("s") if task is None else task
    play.take(
        ResultArrived(
            AgentResult(
                task_id=asked.task_id,
                run_id=asked.run_id,
                step="s",
                attempt=asked.attempt,
                status="success",
                at=play.now,
                output=msgspec.Raw(b'{"text":"no idea"}'),
                output_errors=[WRONG],
                context_id=context_id,
                remote_task_id="remote-1",
            )
        )
    )


def failure_of(play: MachineHarness) -> tuple[str, object]:
    error = play.step("s").error
    assert error is not None
    return error.code, error.detail


def test_the_agent_is_asked_to_correct_its_output_in_the_same_conversation() -> None:
    play = playing()
    first = play.task("s")
    answer_wrongly(play)
    second = play.task("s")
    assert (second.attempt, second.context_id, second.remote_task_id) == (1, "context-1", None)
    assert second.task_id != first.task_id
    assert isinstance(second.input_data, dict)
    assert second.input_data["data"] == {
        "errors": [WRONG],
        "schema": {"type": "object", "required": ["score"]},
    }
    assert WRONG in str(second.input_data["text"])
    assert [event.repair for event in play.events if isinstance(event, StepRepairRequested)] == [1]


def test_a_corrected_output_completes_the_step_without_another_attempt() -> None:
    play = playing()
    answer_wrongly(play)
    play.succeed("s", {"data": {"score": 1}})
    step = play.step("s")
    assert (step.status, step.attempts, step.call_details.repairs) == ("COMPLETED", 1, 1)
    assert step.output == encode({"data": {"score": 1}})


def test_an_output_that_is_still_wrong_fails_the_step_with_the_errors() -> None:
    play = playing()
    answer_wrongly(play)
    answer_wrongly(play)
    assert failure_of(play) == ("output_invalid", {"errors": [WRONG]})
    assert (play.state.status, len(play.calls("s"))) == ("FAILED", 2)


def test_a_step_can_do_without_corrections() -> None:
    play = playing("repair: 0")
    answer_wrongly(play)
    assert (failure_of(play)[0], len(play.calls("s"))) == ("output_invalid", 1)


def test_the_agent_is_asked_as_often_as_the_step_says() -> None:
    play = playing("repair: 3")
    for _ in range(4):
        answer_wrongly(play)
    assert (failure_of(play)[0], len(play.calls("s"))) == ("output_invalid", 4)


def test_an_agent_that_must_not_be_called_twice_is_not_asked() -> None:
    play = playing("delivery: at_most_once")
    answer_wrongly(play)
    assert (failure_of(play)[0], len(play.calls("s"))) == ("output_invalid", 1)


def test_an_agent_without_a_conversation_gets_its_input_and_output_again() -> None:
    play = playing(run_input={"topic": "trunks"})
    answer_wrongly(play, context_id=None)
    given = play.task("s").input_data
    assert isinstance(given, dict)
    assert isinstance(given["data"], dict)
    assert (given["data"]["input"], given["data"]["output"]) == ({"topic": "trunks"}, {"text": "no idea"})


def test_a_paused_run_asks_after_it_has_been_resumed_also_from_the_store() -> None:
    play = playing()
    play.pause()
    answer_wrongly(play)
    assert (len(play.calls("s")), play.step("s").status) == (1, "PENDING")
    # As the store keeps it.
    restore(play.state, list(play.state.steps.values()))
    play.resume()
    assert len(play.calls("s")) == 2
    answer_wrongly(play)
    assert failure_of(play)[0] == "output_invalid"


def test_a_correction_without_an_answer_is_asked_for_again_with_the_same_task() -> None:
    play = playing("retry: {max_attempts: 2, first_delay: 1s, jitter: false}")
    answer_wrongly(play)
    asked = play.task("s")
    play.fail("s", "agent_connection_lost")
    play.pass_time(timedelta(seconds=1))
    assert (play.task("s").task_id, play.task("s").input_data) == (asked.task_id, asked.input_data)
    assert play.task("s").attempt == 2


def test_a_wrong_output_of_a_run_that_is_being_cancelled_asks_for_nothing() -> None:
    play = playing()
    play.cancel()
    answer_wrongly(play)
    assert (len(play.calls("s")), play.state.status) == (1, "CANCELLED")


def test_a_late_wrong_output_ends_the_wait_for_the_next_attempt() -> None:
    play = playing()
    first = play.task("s")
    play.fail("s", "agent_connection_lost")
    answer_wrongly(play, first)
    assert play.timers == {}
    assert play.history[-2:] == ["StepRepairRequested", "StepStarted"]


def test_a_wrong_output_that_comes_twice_is_taken_once() -> None:
    play = playing("repair: 3")
    first = play.task("s")
    answer_wrongly(play, first)
    answer_wrongly(play, first)
    assert (len(play.calls("s")), play.step("s").call_details.repairs) == (2, 1)


RETRIED = (
    "repair: 0, retry: {max_attempts: 3, first_delay: 1s, jitter: false, on: [no_answer, output_invalid]}"
)


def test_a_late_wrong_output_leaves_the_next_attempt_as_it_was_decided() -> None:
    play = playing(RETRIED)
    first = play.task("s")
    play.fail("s", "agent_timeout")
    answer_wrongly(play, first)
    assert (play.step("s").status, list(play.timers)) == ("WAITING", ["retry/s/1"])
    play.pass_time(timedelta(seconds=1))
    assert (play.task("s").attempt, play.step("s").status) == (2, "RUNNING")


def test_a_late_wrong_output_leaves_the_next_attempt_of_a_paused_run_in_its_queue() -> None:
    play = playing(RETRIED)
    first = play.task("s")
    play.fail("s", "agent_timeout")
    play.pause()
    play.pass_time(timedelta(seconds=1))
    answer_wrongly(play, first)
    assert (play.step("s").status, play.timers) == ("PENDING", {})
    play.resume()
    assert (play.task("s").attempt, play.step("s").status) == (2, "RUNNING")
