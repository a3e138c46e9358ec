"""Which conversation a call belongs to."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.unit.machine.machine_harness import MachineHarness


def two_steps(context: str) -> MachineHarness:
    play = MachineHarness(f"""
name: w
steps:
  first: {{agent: A, context: {context}}}
  second: {{agent: A, context: {context}, needs: [first]}}
  other: {{agent: B, context: {context}, needs: [first]}}
""")
    play.start()
    return play


@pytest.mark.parametrize(("context", "expected"), [("run", "ctx-1"), ("step", None), ("none", None)])
def test_a_context_is_kept_per_run_and_agent_unless_the_step_says_otherwise(
    context: str, expected: str | None
) -> None:
    play = two_steps(context)
    assert play.task("first").context_id is None
    play.succeed("first", context_id="ctx-1")
    assert play.task("second").context_id == expected
    assert play.task("other").context_id is None


@pytest.mark.parametrize(("context", "expected"), [("run", "ctx-1"), ("step", "ctx-1"), ("none", None)])
def test_the_next_attempt_of_a_step_knows_what_the_agent_has_said(context: str, expected: str | None) -> None:
    play = two_steps(context)
    play.work("first", context_id="ctx-1")
    play.fail("first", "agent_http_error", http_status=503)
    play.pass_time(timedelta(seconds=1))
    assert play.task("first").context_id == expected


@pytest.mark.parametrize("context", ["run", "step", "none"])
def test_a_reply_always_belongs_to_the_question(context: str) -> None:
    play = two_steps(context)
    play.ask("first")
    play.reply("first", "Yes.")
    assert play.task("first").context_id == "context-1"


def test_a_step_with_a_context_of_its_own_leaves_the_runs_alone() -> None:
    play = MachineHarness("""
name: w
steps:
  a: {agent: A}
  b: {agent: A, context: step, needs: [a]}
  c: {agent: A, needs: [b]}
""")
    play.start()
    play.succeed("a", context_id="of the run")
    play.succeed("b", context_id="of the step")
    assert play.task("c").context_id == "of the run"


def test_each_agent_has_a_conversation_of_its_own() -> None:
    play = MachineHarness("""
name: w
steps:
  a: {agent: A}
  b: {agent: B}
  c: {agent: A, needs: [a, b]}
  d: {agent: B, needs: [a, b]}
""")
    play.start()
    play.succeed("a", context_id="with A")
    play.succeed("b", context_id="with B")
    assert (play.task("c").context_id, play.task("d").context_id) == ("with A", "with B")
