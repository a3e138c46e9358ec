"""The output of a run, and what a retried run keeps."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest
from tests.unit.machine.machine_harness import MachineHarness

from trunkline.machine.inputs import RunRequested, decode_input, encode_input

CHAIN = """
name: chain
steps:
  a: {agent: A}
  b: {agent: B, input: "${ steps.a.output }"}
  c: {agent: C, input: "${ steps.b.output }"}
"""
NOT_JSON = [b"nope", b'"\xff"', b"1e999", b"[" * 100_000 + b"]" * 100_000, b""]


def test_without_an_output_the_last_steps_output_is_the_runs() -> None:
    play = MachineHarness(CHAIN)
    play.start(a=1, b=2)
    play.succeed("c", {"text": "end"})
    assert play.output == {"text": "end"}


def test_several_last_steps_put_out_by_name() -> None:
    play = MachineHarness("""
name: w
steps:
  a: {agent: A}
  b: {agent: B, needs: [a]}
  c: {agent: C, needs: [a], when: "false"}
""")
    play.start()
    play.succeed("a", 1)
    play.succeed("b", 2)
    assert play.output == {"b": 2, "c": None}


def test_an_output_is_worked_out_from_the_steps() -> None:
    play = MachineHarness("""
name: w
steps: {a: {agent: A}}
output: {said: "It was ${ steps.a.output.text }", whole: "${ steps.a.output }", for: "${ input.who }"}
""", {"who": "me"})  # fmt: skip
    play.start()
    play.succeed("a", {"text": "fine"})
    assert play.output == {"said": "It was fine", "whole": {"text": "fine"}, "for": "me"}


def test_an_output_that_cannot_be_worked_out_fails_the_run() -> None:
    play = MachineHarness(
        '{name: w, deadline: 1h, steps: {a: {agent: A}}, output: "${ steps.a.output.text }"}'
    )
    play.start()
    play.succeed("a", {"other": 1})
    assert (play.state.status, play.statuses["a"]) == ("FAILED", "COMPLETED")
    assert play.state.error is not None
    assert play.state.error.code == "output_failed"
    assert "has no key 'text'" in play.state.error.message
    assert (play.state.error.fix != "", play.timers) == (True, {})


@pytest.mark.parametrize("text", NOT_JSON)
def test_an_output_that_is_not_json_fails_the_step_that_reads_it(text: bytes) -> None:
    play = MachineHarness(CHAIN)
    play.start()
    play.answer(play.task("a"), "success", output=msgspec.Raw(text))
    assert play.statuses == {"a": "COMPLETED", "b": "FAILED", "c": "PENDING"}
    failure = play.step("b").error
    assert failure is not None
    assert failure.code == "expression_failed"
    assert "the output of step a cannot be read as JSON" in failure.message


@pytest.mark.parametrize("text", NOT_JSON)
def test_an_output_that_is_not_json_fails_the_run_that_puts_it_out(text: bytes) -> None:
    play = MachineHarness("{name: w, steps: {a: {agent: A}}}")
    play.start()
    play.answer(play.task("a"), "success", output=msgspec.Raw(text))
    assert play.state.error is not None
    assert (play.state.status, play.state.error.code) == ("FAILED", "output_failed")


def test_a_condition_about_an_output_that_is_not_json_fails_its_step() -> None:
    play = MachineHarness('{name: w, steps: {a: {agent: A}, b: {agent: B, when: "steps.a.output.x == 1"}}}')
    play.start()
    play.answer(play.task("a"), "success", output=msgspec.Raw(b"{"))
    failure = play.step("b").error
    assert failure is not None
    assert failure.code == "expression_failed"


def test_an_input_that_is_not_json_fails_the_step_that_reads_it() -> None:
    play = MachineHarness("{name: w, steps: {a: {agent: A}}}")
    play.state.input = b"nope"
    play.start()
    failure = play.step("a").error
    assert failure is not None
    assert failure.message.startswith("the run's input cannot be read as JSON")


def test_a_number_that_no_machine_word_holds_passes_through() -> None:
    play = MachineHarness("{name: w, steps: {a: {agent: A}, b: {agent: B, input: '${ steps.a.output }'}}}")
    play.start()
    play.answer(play.task("a"), "success", output=msgspec.Raw(b'{"n":123456789012345678901234567890}'))
    assert play.task("b").input_data == {"n": 123456789012345678901234567890}


def test_a_retried_run_takes_the_outputs_over_and_goes_on_after_them() -> None:
    play = MachineHarness(CHAIN)
    play.start(a={"from": "before"}, b="also")
    assert play.history == ["RunStarted", "StepKept", "StepKept", "StepStarted"]
    assert play.statuses == {"a": "COMPLETED", "b": "COMPLETED", "c": "RUNNING"}
    assert play.task("c").input_data == "also"


def test_a_retried_run_gives_a_step_the_input_that_a_person_wrote() -> None:
    play = MachineHarness(
        "{name: w, steps: {a: {agent: A}, b: {agent: B, input: '${ steps.a.output.missing }'}}}"
    )
    request = RunRequested({"a": msgspec.Raw(b"1")}, inputs={"b": msgspec.Raw(b'{"mine":2}')})
    play.take(decode_input(encode_input(request)))
    assert play.history == ["RunStarted", "StepKept", "StepInputGiven", "StepStarted"]
    assert play.task("b").input_data == {"mine": 2}
    play.fail("b", "agent_timeout")
    play.pass_time(timedelta(minutes=1))
    assert (play.task("b").attempt, play.task("b").input_data) == (2, {"mine": 2})


def test_a_given_input_waits_until_its_step_may_begin() -> None:
    play = MachineHarness(CHAIN)
    play.take(RunRequested(inputs={"c": msgspec.Raw(b'"mine"')}))
    assert [task.step for task in play.tasks] == ["a"]
    play.succeed("a", {"from": "a"})
    play.succeed("b", "of b")
    assert play.task("c").input_data == "mine"


def test_outputs_are_taken_over_in_whatever_order_they_come() -> None:
    play = MachineHarness(CHAIN)
    play.start(b="also", a={"from": "before"})
    assert [task.step for task in play.tasks] == ["c"]


def test_a_retried_run_that_has_everything_is_complete_at_once() -> None:
    play = MachineHarness(CHAIN)
    play.take(RunRequested({name: msgspec.Raw(b'"kept"') for name in "abc"}))
    assert (play.state.status, play.output, play.tasks) == ("COMPLETED", "kept", [])


def test_a_kept_step_in_the_middle_of_nothing_kept_does_not_wake_what_needs_more() -> None:
    play = MachineHarness("""
name: w
steps:
  a: {agent: A}
  b: {agent: B}
  c: {agent: C, needs: [a, b]}
""")
    play.start(a=1)
    assert play.statuses == {"a": "COMPLETED", "b": "RUNNING", "c": "PENDING"}
    play.succeed("b")
    assert play.statuses["c"] == "RUNNING"
