"""Decisions about runs whose large outputs were not read with them."""

from __future__ import annotations

import pytest
from tests.unit.machine.machine_harness import MachineHarness

from trunkline.machine.scope import RunScope
from trunkline.machine.state import OutputUnread

LOOP = """
name: w
steps:
  read: {agent: A}
  next:
    agent: B
    needs: [read]
    input: {text: "${steps.read.output}"}
  each:
    agent: B
    needs: [read]
    for_each: ${input}
    input: {item: "${item}"}
"""


def begun(items: int) -> MachineHarness:
    play = MachineHarness(LOOP, [*range(items)])
    play.start()
    return play


def test_an_expression_asks_for_an_output_that_was_not_read() -> None:
    play = begun(1)
    read = play.state.steps["read"]
    play.succeed("read", "x")
    read.unread_output_bytes = 5
    with pytest.raises(OutputUnread) as caught:
        play.state.steps["read"].read_output()
    assert caught.value.steps == {"read"}
    with pytest.raises(OutputUnread):
        RunScope(play.state)("steps.read")
    # Without its output, its size is known.
    assert read.size_bytes == len(read.input or b"") + 5


def test_a_loop_asks_for_all_outputs_of_its_items_at_once() -> None:
    play = begun(3)
    play.succeed("read", "x")
    for item in range(2):
        play.succeed(f"each[{item}]", "y")
        play.state.steps[f"each[{item}]"].unread_output_bytes = 3
    with pytest.raises(OutputUnread) as caught:
        play.succeed("each[2]", "y")
    assert caught.value.steps == {"each[0]", "each[1]"}
