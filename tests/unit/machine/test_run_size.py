"""How much a run may store: what counts, and how a run ends that would need more."""

from __future__ import annotations

from datetime import timedelta

from tests.unit.machine.machine_harness import MachineHarness, fresh_state, workflow_of

from trunkline.machine.decide import MAX_BYTES_PER_TURN
from trunkline.machine.evolve import restore
from trunkline.machine.inputs import TurnContinued

LOOP = """
name: w
steps:
  read: {agent: A}
  each:
    agent: B
    needs: [read]
    for_each: ${input}
    input: {text: "${steps.read.output}", item: "${item}"}
"""
LARGE = "x" * 1_000


def test_a_large_output_that_each_item_gets_ends_the_run_before_all_items_have_it() -> None:
    play = MachineHarness(LOOP, [*range(60)])
    play.max_bytes = 10_000
    play.start()
    play.succeed("read", LARGE)
    assert play.state.status == "FAILED"
    assert play.state.error is not None
    assert play.state.error.code == "run_too_large"
    assert "the limit is 10000 (max_run_bytes)" in play.state.error.message
    sent = [task for task in play.tasks if task.agent == "B"]
    assert 0 < len(sent) < 10
    # The agents that have got a task meanwhile are told.
    assert {stop.task_id for stop in play.stops} == {task.task_id for task in sent}


def test_a_turn_begins_items_with_a_bounded_size_and_goes_on_in_the_next_one() -> None:
    play = MachineHarness(LOOP, [*range(8)])
    play.start()
    size_bytes = MAX_BYTES_PER_TURN // 3 + 1
    first = play.succeed("read", "x" * size_bytes)
    assert len(play.tasks) == 1 + 3
    (timer,) = play.timers.values()
    assert (timer.due, timer.item) == (first.now, TurnContinued())
    for _ in range(2):
        play.pass_time(timedelta())
    assert len(play.tasks) == 1 + 8
    for index in range(8):
        play.succeed(f"each[{index}]", index)
    assert play.state.status == "COMPLETED"


def test_an_output_that_is_too_large_ends_the_run_unless_nothing_else_has_to_begin() -> None:
    play = MachineHarness("{name: w, steps: {a: {agent: A}, b: {agent: B, needs: [a]}}}")
    play.max_bytes = 500
    play.start()
    play.succeed("a", LARGE)
    assert (play.state.status, play.calls("b")) == ("FAILED", [])
    last = MachineHarness("{name: w, steps: {a: {agent: A}}}")
    last.max_bytes = 500
    last.start()
    last.succeed("a", LARGE)
    assert last.state.status == "COMPLETED"


def test_a_paused_run_ends_when_it_is_resumed() -> None:
    play = MachineHarness("{name: w, steps: {a: {agent: A}, b: {agent: B, needs: [a]}}}")
    play.max_bytes = 500
    play.start()
    play.pause()
    play.succeed("a", LARGE)
    assert play.state.status == "PAUSED"
    play.resume()
    assert play.state.status == "FAILED"


def test_an_input_counts_for_each_attempt_and_a_restored_run_counts_the_same() -> None:
    text = "{name: w, steps: {a: {agent: A, input: '${input}', retry: {max_attempts: 5}}, b: {agent: B}}}"
    play = MachineHarness(text, LARGE)
    play.start()
    empty = play.state.size_bytes
    for _ in range(2):
        play.fail("a", "agent_unreachable")
        play.pass_time(timedelta(minutes=1))
    assert play.state.size_bytes == empty + 2 * len(play.step("a").input or b"")
    play.succeed("b", LARGE)
    restored = fresh_state(workflow_of(text), LARGE)
    restore(restored, list(play.state.steps.values()))
    assert restored.size_bytes == play.state.size_bytes
