"""Which steps run, in which order, and how many at a time."""

from __future__ import annotations

import pytest
from tests.unit.machine.machine_harness import MachineHarness

from trunkline.machine.events import StepSkipped
from trunkline.machine.inputs import RunRequested

CHAIN = """
name: chain
steps:
  first: {agent: A, input: {topic: "${ input.topic }"}}
  second: {agent: B, input: {text: "${ steps.first.output.text }"}}
"""
DIAMOND = """
name: diamond
steps:
  top: {agent: A}
  left: {agent: A, needs: [top]}
  right: {agent: B, needs: [top]}
  bottom: {agent: A, needs: [left, right]}
"""
WIDE = """
name: wide
max_parallel: 2
steps:
  a: {agent: A}
  b: {agent: A}
  c: {agent: A}
  d: {agent: A}
"""


def test_a_run_starts_its_first_step_with_its_input() -> None:
    play = MachineHarness(CHAIN, {"topic": "owls"})
    play.start()
    assert play.history == ["RunStarted", "StepStarted"]
    assert play.state.status == "RUNNING"
    task = play.task("first")
    assert (task.agent, task.input_data, task.attempt) == ("A", {"topic": "owls"}, 1)
    assert (task.run_id, task.correlation_id) == (play.state.id, "c-1")
    assert play.statuses == {"first": "RUNNING", "second": "PENDING"}


def test_a_run_is_pending_until_it_is_started_and_starts_once() -> None:
    play = MachineHarness(CHAIN, {"topic": "owls"})
    assert play.take().events == []
    assert play.state.status == "PENDING"
    play.start()
    assert play.take(RunRequested()).events == []


def test_a_step_reads_what_the_step_before_it_put_out() -> None:
    play = MachineHarness(CHAIN, {"topic": "owls"})
    play.start()
    play.succeed("first", {"text": "They fly."})
    assert play.task("second").input_data == {"text": "They fly."}
    play.succeed("second", {"text": "Done."})
    assert play.state.status == "COMPLETED"
    assert play.output == {"text": "Done."}
    assert play.state.finished_at == play.now


def test_steps_that_do_not_need_one_another_run_side_by_side() -> None:
    play = MachineHarness(DIAMOND)
    play.start()
    play.succeed("top")
    assert play.statuses == {"top": "COMPLETED", "left": "RUNNING", "right": "RUNNING", "bottom": "PENDING"}
    play.succeed("right")
    assert play.statuses["bottom"] == "PENDING"
    play.succeed("left")
    assert play.statuses["bottom"] == "RUNNING"


def test_no_more_steps_run_at_a_time_than_max_parallel() -> None:
    play = MachineHarness(WIDE)
    play.start()
    assert [task.step for task in play.tasks] == ["a", "b"]
    play.succeed("b")
    assert [task.step for task in play.tasks] == ["a", "b", "c"]


def test_a_step_that_waits_for_its_next_attempt_keeps_its_place() -> None:
    play = MachineHarness(WIDE)
    play.start()
    play.fail("a", "agent_timeout")
    assert play.step("a").status == "WAITING"
    assert [task.step for task in play.tasks] == ["a", "b"]


def test_a_step_that_waits_for_a_person_gives_its_place_away() -> None:
    play = MachineHarness(WIDE)
    play.start()
    play.ask("a")
    assert [task.step for task in play.tasks] == ["a", "b", "c"]


def test_a_reply_waits_until_there_is_a_place_for_its_call() -> None:
    play = MachineHarness(WIDE)
    play.start()
    play.ask("a")
    play.reply("a", "The second.")
    assert [task.step for task in play.tasks] == ["a", "b", "c"]
    play.succeed("b")
    play.succeed("c")
    assert [task.step for task in play.tasks] == ["a", "b", "c", "d", "a"]
    assert play.state.in_flight == 2


@pytest.mark.parametrize(("score", "status"), [(1, "RUNNING"), (0, "SKIPPED")])
def test_a_condition_decides_whether_a_step_runs(score: int, status: str) -> None:
    play = MachineHarness("{name: w, steps: {s: {agent: A, when: input.score > 0}, t: {agent: A, needs: [s]}}}", {
        "score": score
    })  # fmt: skip
    play.start()
    assert play.statuses["s"] == status


def test_a_skipped_step_satisfies_needs_and_its_output_is_null() -> None:
    play = MachineHarness("""
name: w
steps:
  s: {agent: A, when: "false"}
  t: {agent: A, needs: [s], input: "${ steps.s }"}
""")
    play.start()
    assert play.statuses == {"s": "SKIPPED", "t": "RUNNING"}
    assert play.task("t").input_data == {"status": "SKIPPED", "output": None, "error": None}
    assert StepSkipped("s", "Its condition is false: false") in play.events


@pytest.mark.parametrize("condition", ["input.missing > 0", "input.text", "input"])
def test_a_condition_that_is_neither_true_nor_false_fails_the_step(condition: str) -> None:
    play = MachineHarness(f"{{name: w, steps: {{s: {{agent: A, when: {condition}}}}}}}", {"text": "yes"})
    play.start()
    assert play.state.status == "FAILED"
    failure = play.step("s").error
    assert failure is not None
    assert (failure.code, failure.step, play.tasks) == ("expression_failed", "s", [])
    assert failure.fix


def test_a_run_whose_steps_are_all_skipped_is_complete_at_once() -> None:
    play = MachineHarness('{name: w, steps: {s: {agent: A, when: "false"}}}')
    play.start()
    assert play.history == ["RunStarted", "StepSkipped", "RunCompleted"]
    assert play.output is None
