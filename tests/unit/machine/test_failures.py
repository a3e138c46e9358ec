"""What the failure of a step means for the others and for the run."""

from __future__ import annotations

from datetime import timedelta

from tests.unit.machine.machine_harness import MachineHarness

from trunkline.machine.events import StepSkipped

PAIR = "{name: w, steps: {a: {agent: A}, b: {agent: B}, c: {agent: C, needs: [b]}}}"
GOTO = """
name: w
steps:
  risky: {agent: A, on_error: {goto: rescue}}
  rescue: {agent: B, input: {why: "${ steps.risky.error.code }"}}
  last: {agent: C, needs: [rescue]}
"""


def test_a_failed_step_fails_its_run() -> None:
    play = MachineHarness("{name: w, steps: {a: {agent: A}, b: {agent: B, needs: [a]}}}")
    play.start()
    play.fail("a", http_status=400)
    assert play.state.status == "FAILED"
    assert play.state.error is not None
    assert (play.state.error.code, play.state.error.step, play.state.error.attempt) == (
        "agent_task_failed", "a", 1,
    )  # fmt: skip
    assert play.state.error.http_status == 400
    assert play.statuses == {"a": "FAILED", "b": "PENDING"}


def test_calls_in_flight_end_before_a_run_fails_and_nothing_new_starts() -> None:
    play = MachineHarness(PAIR)
    play.start()
    play.fail("a")
    assert play.state.status == "RUNNING"
    play.succeed("b", "kept for a retry")
    assert play.state.status == "FAILED"
    assert play.statuses == {"a": "FAILED", "b": "COMPLETED", "c": "PENDING"}
    assert play.stops == []


def test_a_call_that_fails_while_its_run_is_failing_is_not_retried() -> None:
    play = MachineHarness(PAIR)
    play.start()
    play.fail("a")
    play.fail("b", "agent_timeout")
    assert play.state.status == "FAILED"
    assert play.statuses["b"] == "FAILED"
    assert play.timers == {}


def test_a_retry_that_waits_is_given_up_when_another_step_fails() -> None:
    play = MachineHarness(PAIR)
    play.start()
    play.fail("b", "agent_timeout")
    play.fail("a")
    assert play.state.status == "FAILED"
    assert (play.statuses["b"], play.timers) == ("CANCELLED", {})


def test_a_retry_that_comes_due_while_its_run_is_failing_starts_no_call() -> None:
    play = MachineHarness("{name: w, steps: {a: {agent: A}, b: {agent: B}, d: {agent: D}}}")
    play.start()
    play.fail("b", "agent_timeout")
    play.fail("a")
    play.take(play.timers.pop("retry/b/1").item)
    assert len(play.calls("b")) == 1
    play.succeed("d")
    assert play.state.status == "FAILED"


def test_a_reply_to_a_failing_run_starts_no_call_and_the_agent_is_cancelled() -> None:
    play = MachineHarness("{name: w, steps: {a: {agent: A}, b: {agent: B}, d: {agent: D}}}")
    play.start()
    play.ask("b")
    play.fail("a")
    play.reply("b", "Never mind.")
    assert len(play.calls("b")) == 1
    play.succeed("d")
    assert (play.state.status, play.statuses["b"]) == ("FAILED", "CANCELLED")
    assert [(stop.task_id, stop.attempt) for stop in play.stops] == [(play.task("b").task_id, 1)]


def test_of_two_failures_the_first_is_the_runs_own() -> None:
    play = MachineHarness(PAIR)
    play.start()
    play.fail("b")
    play.pass_time(timedelta(milliseconds=1))
    play.fail("a", "agent_http_error", http_status=404)
    assert play.state.error is not None
    assert play.state.error.step == "b"


def test_of_two_failures_at_one_instant_the_first_steps_is_the_runs_own() -> None:
    play = MachineHarness(PAIR)
    play.start()
    play.fail("b")
    play.fail("a", "agent_http_error", http_status=404)
    assert play.state.error is not None
    assert play.state.error.step == "a"


def test_a_step_that_may_fail_lets_the_run_go_on() -> None:
    play = MachineHarness("""
name: w
steps:
  a: {agent: A, on_error: continue}
  b: {agent: B, needs: [a], input: "${ steps.a }"}
""")
    play.start()
    play.fail("a")
    assert play.statuses == {"a": "FAILED", "b": "RUNNING"}
    assert play.task("b").input_data == {
        "status": "FAILED",
        "output": None,
        "error": {
            "code": "agent_task_failed",
            "message": "It was agent_task_failed.",
            "http_status": None,
            "jsonrpc_code": None,
        },
    }
    play.succeed("b")
    assert play.state.status == "COMPLETED"


def test_a_failure_leads_to_the_step_that_catches_it() -> None:
    play = MachineHarness(GOTO)
    play.start()
    play.fail("risky")
    assert play.task("rescue").input_data == {"why": "agent_task_failed"}
    play.succeed("rescue")
    play.succeed("last")
    assert play.state.status == "COMPLETED"
    assert play.statuses == {"risky": "FAILED", "rescue": "COMPLETED", "last": "COMPLETED"}


def test_a_step_that_catches_is_skipped_when_nothing_failed() -> None:
    play = MachineHarness(GOTO)
    play.start()
    play.succeed("risky")
    assert play.statuses == {"risky": "COMPLETED", "rescue": "SKIPPED", "last": "RUNNING"}
    assert StepSkipped("rescue", "Nothing to handle: risky did not fail.") in play.events


def test_an_input_that_cannot_be_worked_out_fails_the_step_without_a_call() -> None:
    play = MachineHarness("""
name: w
steps:
  a: {agent: A, input: "${ input.missing }", on_error: continue}
  b: {agent: B, needs: [a]}
""", {"there": 1})  # fmt: skip
    play.start()
    failure = play.step("a").error
    assert failure is not None
    assert (failure.code, play.calls("a")) == ("expression_failed", [])
    assert "has no key 'missing'" in failure.message
    assert play.statuses["b"] == "RUNNING"


def test_an_input_that_outgrows_every_agent_fails_the_step_without_a_call() -> None:
    repeated = "${ input.text }" * 20
    play = MachineHarness(
        f'{{name: w, steps: {{a: {{agent: A, input: "{repeated}"}}}}}}', {"text": "x" * 1_000_000}
    )
    play.start()
    failure = play.step("a").error
    assert failure is not None
    assert (failure.code, play.calls("a")) == ("expression_failed", [])
    assert "20000002 bytes" in failure.message


def test_a_waiting_run_that_fails_while_another_call_starts_does_not_wait_any_more() -> None:
    play = MachineHarness("""
name: w
steps:
  a: {agent: A}
  b: {agent: B, needs: [a]}
  c: {agent: C, needs: [a], input: "${ input.missing }"}
""", {"there": 1})  # fmt: skip
    play.start()
    play.ask("a")
    play.succeed("a")
    assert play.statuses == {"a": "COMPLETED", "b": "RUNNING", "c": "FAILED"}
    assert play.state.status == "RUNNING"
    play.succeed("b")
    assert play.state.status == "FAILED"
