"""Child runs: what starts them, what their end means, and which commands reach them."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest
from tests.unit.machine.machine_harness import RUN, MachineHarness, error

from trunkline.ids import child_run_id
from trunkline.machine.decide import abandon
from trunkline.machine.effects import SendRunInput
from trunkline.machine.inputs import (
    CancelRequested,
    ChildEnded,
    ChildRefused,
    Input,
    PauseRequested,
    ResumeRequested,
    decode_input,
    encode_input,
)
from trunkline.machine.steps.child import MAX_DEPTH
from trunkline.messages import StepError

ONE = "{name: w, steps: {c: {workflow: below, input: {text: '${ input.text }'}}}}"
TWO = "{name: w, steps: {c: {workflow: below}, a: {agent: A}}}"
AGAIN = """
name: w
steps:
  c: {workflow: below, version: 3, retry: {max_attempts: 2, on: [any], first_delay: 1s, jitter: false}}
"""
LOOP = "{name: w, steps: {c: {workflow: below, for_each: {items: [1, 2, 3], limit: 2}}}}"
CHILD = child_run_id(RUN, "c", 1)


def started(workflow: str = ONE) -> MachineHarness:
    play = MachineHarness(workflow, {"text": "hello"})
    play.start()
    return play


def failure_of(play: MachineHarness, step: str = "c") -> StepError:
    failure = play.step(step).error
    assert failure is not None
    return failure


def test_a_step_asks_for_a_run_with_its_input() -> None:
    (run,) = started().runs
    assert (run.run_id, run.step, run.workflow, run.version) == (CHILD, "c", "below", None)
    assert run.input == b'{"text":"hello"}'


def test_the_output_of_the_run_is_the_steps() -> None:
    play = started()
    play.end_run("c", "COMPLETED", {"answer": 42})
    assert (play.state.status, play.output) == ("COMPLETED", {"answer": 42})
    assert play.history == ["RunStarted", "StepChildStarted", "StepCompleted", "RunCompleted"]


def test_the_failure_of_the_run_is_shown_with_its_reason() -> None:
    play = started()
    play.end_run("c", "FAILED", error=error("agent_timeout"))
    failure = failure_of(play)
    assert (play.state.status, failure.code) == ("FAILED", "child_failed")
    assert failure.message == f"Run {CHILD} of workflow below failed: It was agent_timeout."
    assert failure.fix == f"See the reason: trunkline runs show {CHILD}."
    assert failure.fix_command == f"trunkline runs show {CHILD}"
    assert failure.detail == {
        "run_id": CHILD, "code": "agent_timeout", "message": "It was agent_timeout.", "step": None,
    }  # fmt: skip


def test_a_child_run_that_was_cancelled_by_others_fails_the_step() -> None:
    play = started()
    play.end_run("c", "CANCELLED")
    assert (play.state.status, failure_of(play).code) == ("FAILED", "child_cancelled")
    assert failure_of(play).detail == {"run_id": CHILD}


def test_a_run_that_cannot_begin_fails_the_step_whatever_its_retries() -> None:
    play = started(AGAIN)
    play.take(ChildRefused("c", CHILD, error("workflow_unknown")))
    assert (play.state.status, failure_of(play).code) == ("FAILED", "workflow_unknown")


def test_every_attempt_is_a_run_of_its_own_with_the_same_input() -> None:
    play = started(AGAIN)
    play.end_run("c", "FAILED")
    assert play.statuses["c"] == "WAITING"
    play.pass_time(timedelta(seconds=1))
    first, second = play.runs
    assert (first.run_id, second.run_id) == (CHILD, child_run_id(RUN, "c", 2))
    assert (first.input, first.version) == (second.input, second.version)
    play.take(ChildEnded("c", first.run_id, "COMPLETED", msgspec.Raw(b'"late"')))
    assert play.statuses["c"] == "RUNNING"
    play.end_run("c", "COMPLETED", "in time")
    assert play.output == "in time"


def test_without_a_policy_that_says_so_no_second_run_is_begun() -> None:
    play = started()
    play.end_run("c", "FAILED", error=error("agent_http_error", http_status=503))
    assert (len(play.runs), play.state.status) == (1, "FAILED")


def test_too_deep_a_run_begins_no_other() -> None:
    play = MachineHarness(ONE, {"text": "hello"})
    play.state.depth = MAX_DEPTH
    play.start()
    assert (play.state.status, failure_of(play).code, play.runs) == ("FAILED", "child_too_deep", [])
    play = MachineHarness(ONE, {"text": "hello"})
    play.state.depth = MAX_DEPTH - 1
    play.start()
    assert len(play.runs) == 1


def test_an_input_that_cannot_be_made_begins_no_run() -> None:
    play = MachineHarness(ONE, {})
    play.start()
    assert (failure_of(play).code, play.runs) == ("expression_failed", [])


def test_a_cancelled_run_waits_for_its_child_to_be_cancelled() -> None:
    play = started(TWO)
    play.cancel()
    assert play.told == [(CHILD, CancelRequested())]
    play.answer(play.task("a"), "cancelled")
    assert play.state.status == "RUNNING"
    play.end_run("c", "CANCELLED")
    assert (play.state.status, set(play.statuses.values())) == ("CANCELLED", {"CANCELLED"})


def test_a_child_that_does_not_end_in_time_does_not_keep_a_cancelled_run() -> None:
    play = started()
    play.cancel()
    play.pass_time(timedelta(seconds=10))
    assert (play.state.status, play.told) == ("CANCELLED", [(CHILD, CancelRequested())])


def test_a_failure_that_ends_the_run_cancels_the_child_once_and_waits_for_it() -> None:
    play = started(TWO)
    play.fail("a")
    assert (play.told, play.state.status) == ([(CHILD, CancelRequested())], "RUNNING")
    play.take()
    play.end_run("c", "CANCELLED")
    assert (play.state.status, play.statuses["c"]) == ("FAILED", "CANCELLED")
    assert len(play.told) == 1


@pytest.mark.parametrize(
    ("workflow", "passes"),
    [
        ("{name: w, steps: {c: {workflow: below, deadline: 1m}}}", timedelta(minutes=1)),
        ("{name: w, deadline: 1m, steps: {c: {workflow: below}}}", timedelta(minutes=1)),
    ],
    ids=["of the step", "of the workflow"],
)
def test_a_deadline_cancels_the_child(workflow: str, passes: timedelta) -> None:
    play = started(workflow)
    play.pass_time(passes)
    assert (play.state.status, play.told) == ("FAILED", [(CHILD, CancelRequested())])
    play.end_run("c", "COMPLETED")
    assert (play.state.status, play.timers) == ("FAILED", {})


def test_a_join_that_is_decided_without_it_cancels_the_child() -> None:
    play = started(
        "{name: w, steps: {c: {workflow: below}, a: {agent: A}, j: {agent: J, needs: [a, c], join: any}}}"
    )
    play.succeed("a")
    assert (play.told, play.statuses["c"]) == ([(CHILD, CancelRequested())], "CANCELLED")


def test_a_run_that_cannot_be_decided_cancels_its_children() -> None:
    play = started()
    turn = abandon(play.state, error("internal_error"), play.now)
    assert [effect for effect in turn.effects if isinstance(effect, SendRunInput)] == [
        SendRunInput(CHILD, "cancel", CancelRequested())
    ]


def test_children_are_paused_and_resumed_with_the_run_each_time() -> None:
    play = started(TWO)
    keys: set[str] = set()
    expected: list[Input] = []
    for _ in range(2):
        for turn, item in ((play.pause(), PauseRequested()), (play.resume(), ResumeRequested())):
            keys.update(effect.key for effect in turn.effects if isinstance(effect, SendRunInput))
            expected.append(item)
    assert play.told == [(CHILD, item) for item in expected]
    # The inbox would drop the second of two with the same key.
    assert len(keys) == 4


def test_the_end_of_a_child_is_taken_in_while_the_run_is_paused() -> None:
    play = started("{name: w, steps: {c: {workflow: below}, a: {agent: A, needs: [c]}}}")
    play.pause()
    play.end_run("c", "COMPLETED")
    assert (play.statuses, play.tasks) == ({"c": "COMPLETED", "a": "PENDING"}, [])
    play.resume()
    assert play.statuses["a"] == "RUNNING"


def test_a_loop_begins_as_many_runs_at_once_as_it_may() -> None:
    play = started(LOOP)
    assert [run.step for run in play.runs] == ["c[0]", "c[1]"]
    assert play.runs[0].input == b"1"
    play.end_run("c[1]", "COMPLETED", "second")
    assert [run.step for run in play.runs] == ["c[0]", "c[1]", "c[2]"]
    play.end_run("c[0]", "COMPLETED", "first")
    play.end_run("c[2]", "COMPLETED", "third")
    assert play.output == ["first", "second", "third"]


def test_an_item_that_fails_cancels_the_runs_of_the_others() -> None:
    play = started(LOOP)
    play.end_run("c[0]", "FAILED")
    assert play.told == [(play.run_of("c[1]").run_id, CancelRequested())]
    assert play.state.status == "FAILED"


@pytest.mark.parametrize(
    "item",
    [
        ChildEnded("c", CHILD, "COMPLETED", msgspec.Raw(b'{"a":1}')),
        ChildEnded("c", CHILD, "FAILED", error=error("agent_timeout")),
        ChildRefused("c", CHILD, error("workflow_unknown")),
    ],
    ids=["completed", "failed", "refused"],
)
def test_the_result_of_a_child_run_travels_unchanged(item: Input) -> None:
    assert decode_input(encode_input(item)) == item
