"""Steps that choose their agent when they begin: which calls they make, and which they never make."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.unit.machine.machine_harness import MachineHarness

from trunkline.clock import Instant, after
from trunkline.machine.candidates import Candidate
from trunkline.messages import StepError

A = Candidate(agent="A", cost=1, repeatable=True)
B = Candidate(agent="B", cost=2, repeatable=True)
C = Candidate(agent="C", cost=3)
SKILL = "name: w\nsteps: {a: {skill: s, select: cheapest, retry: {max_attempts: 1}, EXTRA}}"


def begun(extra: str = "", *candidates: Candidate) -> MachineHarness:
    """A step whose agent has been chosen."""
    play = MachineHarness(SKILL.replace(", EXTRA", f", {extra}" if extra else ""))
    play.start()
    play.offer(*candidates or (A, B, C))
    return play


def called(play: MachineHarness) -> list[tuple[str, int]]:
    return [(task.agent, task.attempt) for task in play.tasks]


def test_a_step_looks_for_agents_with_its_skill() -> None:
    play = MachineHarness("name: w\nsteps: {a: {skill: s, tags: [t], input_modes: [text/plain]}}")
    play.start()
    (lookup,) = play.lookups
    assert (lookup.skill, lookup.tags, lookup.input_modes) == ("s", ("t",), ("text/plain",))
    assert play.statuses == {"a": "WAITING"}
    assert play.state.status == "RUNNING"


def test_the_chosen_agent_is_called_and_the_choice_is_recorded() -> None:
    play = begun()
    assert called(play) == [("A", 1)]
    route = play.step("a").route
    assert route is not None
    assert route.choice is not None
    assert (route.agent, route.choice.reason) == ("A", "cheapest: cost 1")
    assert play.history[-2:] == ["StepAgentChosen", "StepStarted"]


def test_a_step_without_candidates_fails_at_once() -> None:
    play = MachineHarness(SKILL.replace(", EXTRA", ""))
    play.start()
    play.offer()
    error = play.step("a").error
    assert error is not None
    assert (error.code, play.tasks) == ("no_agent_found", [])
    assert "the skill 's'" in error.message


def test_a_step_waits_until_a_breaker_lets_calls_through() -> None:
    play = MachineHarness(SKILL.replace(", EXTRA", ""))
    play.start()
    retry_at = after(play.now, timedelta(seconds=1))
    play.offer(Candidate(agent="A", breaker_open=True, retry_at=retry_at))
    waiting = play.step("a").waiting_for
    assert waiting is not None
    assert (waiting.kind, waiting.until) == ("agent", retry_at)
    play.pass_time(timedelta(seconds=1))
    play.offer(A)
    assert called(play) == [("A", 1)]


def test_the_wait_for_an_agent_grows_longer() -> None:
    play = MachineHarness(SKILL.replace(", EXTRA", ""))
    play.start()
    waits: list[int] = []
    for _ in range(12):
        play.offer(Candidate(agent="A", breaker_open=True))
        waiting = play.step("a").waiting_for
        assert waiting is not None
        assert waiting.until is not None
        waits.append((waiting.until - play.now) // 1_000_000)
        play.pass_time(timedelta(microseconds=waiting.until - play.now))
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]


# --- another agent


def fail_over(play: MachineHarness, error: StepError, *candidates: Candidate) -> None:
    play.answer(play.task("a"), "error", error=error)
    if play.lookups[-1].without:
        play.offer(*candidates or (A, B, C))


@pytest.mark.parametrize(
    "error",
    [
        StepError(code="agent_unreachable", message="m"),
        StepError(code="agent_http_error", message="m", http_status=429),
        StepError(code="agent_task_failed", message="m", rejected=True),
    ],
    ids=["unreachable", "429", "rejected"],
)
def test_the_next_agent_is_called_in_the_same_attempt_if_nothing_was_accepted(error: StepError) -> None:
    play = begun()
    fail_over(play, error)
    assert called(play) == [("A", 1), ("B", 1)]
    assert len({task.task_id for task in play.tasks}) == 2
    play.succeed("a", "done")
    assert (play.state.status, play.step("a").attempts) == ("COMPLETED", 1)


@pytest.mark.parametrize(
    "error",
    [
        StepError(code="agent_timeout", message="m", doubtful=True),
        StepError(code="agent_unreachable", message="m", doubtful=True),
        StepError(code="agent_task_failed", message="m"),
        StepError(code="agent_http_error", message="m", http_status=503),
        StepError(code="secret_missing", message="m"),
    ],
    ids=["timeout", "doubtful", "failed", "503", "secret"],
)
def test_no_other_agent_is_called_if_the_first_may_have_done_something(error: StepError) -> None:
    play = begun()
    fail_over(play, error)
    assert called(play) == [("A", 1)]
    assert play.state.status == "FAILED"


def test_a_repeatable_step_calls_another_agent_after_an_unclear_outcome() -> None:
    play = begun("repeatable: true")
    fail_over(play, StepError(code="agent_timeout", message="m", doubtful=True))
    assert called(play) == [("A", 1), ("B", 1)]
    assert not play.task("a").doubtful


def test_a_retry_after_an_unclear_outcome_goes_to_the_same_agent() -> None:
    play = MachineHarness("name: w\nsteps: {a: {skill: s, retry: {max_attempts: 2}}}")
    play.start()
    play.offer(A, B)
    play.answer(play.task("a"), "error", error=StepError(code="agent_timeout", message="m", doubtful=True))
    play.pass_time(timedelta(minutes=1))
    assert called(play) == [("A", 1), ("A", 2)]
    first, second = play.tasks
    assert second.task_id == first.task_id
    assert second.doubtful
    # It may have the first message, so it is never proven that it has accepted nothing.
    play.answer(second, "error", error=StepError(code="agent_http_error", message="m", http_status=429))
    assert (len(play.tasks), play.state.status) == (2, "FAILED")


def test_a_retry_after_an_answer_chooses_again() -> None:
    play = MachineHarness("name: w\nsteps: {a: {skill: s, retry: {max_attempts: 2, on: [any]}}}")
    play.start()
    play.offer(A, B)
    play.fail("a")
    play.pass_time(timedelta(minutes=1))
    play.offer(B)
    assert called(play) == [("A", 1), ("B", 2)]


def test_the_step_fails_when_every_agent_has_refused() -> None:
    play = begun("", A, B)
    unreachable = StepError(code="agent_unreachable", message="m")
    fail_over(play, unreachable, A, B)
    fail_over(play, StepError(code="agent_unreachable", message="m"), A, B)
    assert called(play) == [("A", 1), ("B", 1)]
    assert play.state.status == "FAILED"


def test_a_candidate_that_is_gone_leaves_the_error_of_the_call() -> None:
    play = begun("", A, B)
    fail_over(play, StepError(code="agent_unreachable", message="gone"), A)
    error = play.step("a").error
    assert error is not None
    assert (error.code, play.state.status) == ("agent_unreachable", "FAILED")


def test_a_conversation_stays_with_its_agent() -> None:
    play = begun()
    play.ask("a")
    play.reply("a", "Yes.")
    play.answer(play.task("a"), "error", error=StepError(code="agent_unreachable", message="m"))
    assert {task.agent for task in play.tasks} == {"A"}


def test_a_paused_run_calls_no_agent_that_was_found() -> None:
    play = MachineHarness(SKILL.replace(", EXTRA", ""))
    play.start()
    play.pause()
    play.offer(A)
    assert play.tasks == []
    play.resume()
    play.offer(A)
    assert called(play) == [("A", 1)]


def test_a_cancelled_run_looks_for_no_agent() -> None:
    play = MachineHarness(SKILL.replace(", EXTRA", ""))
    play.start()
    play.cancel()
    play.offer(A)
    assert (play.state.status, play.tasks, play.stops, play.timers) == ("CANCELLED", [], [], {})
    assert play.statuses == {"a": "CANCELLED"}


def test_the_deadline_counts_from_the_search_for_an_agent() -> None:
    play = MachineHarness("name: w\nsteps: {a: {skill: s, deadline: 10s}}")
    play.start()
    play.offer(Candidate(agent="A", breaker_open=True))
    play.pass_time(timedelta(seconds=10))
    error = play.step("a").error
    assert error is not None
    assert (error.code, play.timers) == ("deadline_exceeded", {})


def test_each_item_of_a_list_has_an_agent_of_its_own() -> None:
    play = MachineHarness(
        'name: w\nsteps: {a: {for_each: "${ input }", agent: "${ item }", allow: [A, B]}}', ["A", "B"]
    )
    play.start()
    assert [(task.step, task.agent) for task in play.tasks] == [("a[0]", "A"), ("a[1]", "B")]


def test_an_agent_that_an_expression_may_not_name_is_not_called() -> None:
    play = MachineHarness('name: w\nsteps: {a: {agent: "${ input }", allow: [A, B]}}', "C")
    play.start()
    error = play.step("a").error
    assert error is not None
    assert (error.code, play.tasks) == ("agent_not_allowed", [])
    assert error.message == "The step may not call the agent 'C': only A, B may be called."


# --- two agents at the same time

HEDGE = "hedge: {after: 5s}"
FIVE_SECONDS = timedelta(seconds=5)


def hedged(extra: str = HEDGE) -> MachineHarness:
    """A step with two calls."""
    play = begun(extra)
    play.pass_time(FIVE_SECONDS)
    play.offer(A, B)
    return play


def test_a_second_agent_is_called_when_the_first_is_slow() -> None:
    play = hedged()
    assert called(play) == [("A", 1), ("B", 1)]
    assert play.lookups[-1].repeatable
    assert play.tasks[0].input_data == play.tasks[1].input_data
    assert play.timers == {}


def test_a_fast_agent_gets_no_company() -> None:
    play = begun(HEDGE)
    play.succeed("a")
    assert play.timers == {}
    play.pass_time(FIVE_SECONDS)
    assert (len(play.tasks), len(play.lookups), play.timers) == (1, 1, {})


@pytest.mark.parametrize("winner", [0, 1])
def test_the_first_good_answer_wins_and_the_other_call_is_stopped(winner: int) -> None:
    play = hedged()
    won, lost = play.tasks[winner], play.tasks[1 - winner]
    play.answer(won, "success")
    assert play.state.status == "COMPLETED"
    assert play.step("a").agent == won.agent
    assert [(stop.task_id, stop.agent) for stop in play.stops] == [(lost.task_id, lost.agent)]
    before = len(play.events)
    play.answer(lost, "success")
    assert len(play.events) == before


@pytest.mark.parametrize("failing", [0, 1])
def test_a_call_that_fails_leaves_the_other_one(failing: int) -> None:
    play = hedged()
    failed, other = play.tasks[failing], play.tasks[1 - failing]
    play.answer(failed, "error", error=StepError(code="agent_task_failed", message="No."))
    assert (play.step("a").status, play.step("a").agent) == ("RUNNING", other.agent)
    play.answer(other, "success")
    assert (play.state.status, play.stops) == ("COMPLETED", [])


def test_the_step_fails_when_both_calls_have() -> None:
    play = hedged()
    for task in play.tasks[:2]:
        play.answer(task, "error", error=StepError(code="agent_task_failed", message="No."))
    assert play.state.status == "FAILED"


def test_a_question_is_not_asked_while_another_agent_may_do_without() -> None:
    play = hedged()
    play.ask("a")
    assert (play.step("a").status, play.step("a").agent) == ("RUNNING", "A")
    assert [stop.agent for stop in play.stops] == ["B"]


def test_a_cancellation_stops_both_calls() -> None:
    play = hedged()
    play.cancel()
    assert sorted(stop.agent for stop in play.stops) == ["A", "B"]


def test_agents_that_are_not_repeatable_get_no_company() -> None:
    play = begun(HEDGE, C, B)
    assert called(play) == [("B", 1)]
    alone = begun(HEDGE, C)
    assert alone.timers == {}


def test_a_repeatable_step_takes_any_agent_for_the_second_call() -> None:
    play = begun(f"repeatable: true, {HEDGE}", C)
    play.pass_time(FIVE_SECONDS)
    assert not play.lookups[-1].repeatable


def test_there_are_as_many_calls_as_max_says() -> None:
    play = begun("hedge: {after: 5s, max: 3}, repeatable: true")
    for _ in range(4):
        play.pass_time(FIVE_SECONDS)
        if play.lookups[-1].hedge:
            play.offer(A, B, C)
    assert called(play) == [("A", 1), ("B", 1), ("C", 1)]


def test_a_busy_agent_is_not_called_in_addition() -> None:
    play = begun(HEDGE)
    play.pass_time(FIVE_SECONDS)
    play.offer(Candidate(agent="B", busy=1, slots=1, repeatable=True))
    assert called(play) == [("A", 1)]


def test_a_lookup_that_comes_too_late_calls_no_other_agent() -> None:
    play = begun(HEDGE)
    play.pass_time(FIVE_SECONDS)
    play.succeed("a")
    play.offer(A, B)
    assert called(play) == [("A", 1)]


def test_candidates_that_come_twice_are_chosen_once() -> None:
    play = begun()
    play.offer(B)
    assert called(play) == [("A", 1)]
    assert play.now == Instant(1_000_000_000)
