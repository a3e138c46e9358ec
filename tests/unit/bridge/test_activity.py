"""What the ends of calls add to the picture of their agents."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from trunkline.bridge.activity import minutes_of, with_call_times
from trunkline.bridge.calls.results import CallResult, step_error
from trunkline.clock import Instant, after
from trunkline.messages import AgentResult, AgentTask
from trunkline.messages.model import ResultStatus
from trunkline.stores.base import ClaimedTask, TaskAnswer, TaskKey
from trunkline.stores.port.agents.activity import AgentMinute, begin_of

BEGAN = begin_of(29_000_000)


def call_result(
    milliseconds: int,
    status: ResultStatus = "success",
    *,
    agent: str = "A",
    code: str | None = None,
    called_at: Instant | None = BEGAN,
) -> CallResult:
    task = AgentTask(task_id="run/step/0", run_id="run", step="step", agent=agent)
    key = TaskKey(task.task_id, 1)
    return CallResult(
        claim=ClaimedTask(key=key, task=task, epoch=1, called_at=called_at),
        answer=TaskAnswer(key=key, epoch=1),
        result=AgentResult(
            task_id=task.task_id,
            run_id=task.run_id,
            step=task.step,
            attempt=1,
            status=status,
            at=after(BEGAN, timedelta(milliseconds=milliseconds)),
            error=None if code is None else step_error(code, "It failed."),
        ),
        exchanges=[],
    )


def test_calls_of_one_agent_and_minute_are_one_sum() -> None:
    calls = [call_result(10), call_result(30, "error", code="agent_timeout"), call_result(20, "unknown")]
    assert minutes_of(calls) == [
        AgentMinute(agent="A", minute=29_000_000, calls=3, failures=2, total_ms=60, longest_ms=30)
    ]


def test_other_agents_and_minutes_have_sums_of_their_own() -> None:
    counted = minutes_of([call_result(10), call_result(10, agent="B"), call_result(60_000)])
    assert {(each.agent, each.minute - 29_000_000): each.calls for each in counted} == {
        ("A", 0): 1,
        ("B", 0): 1,
        ("A", 1): 1,
    }


def test_what_goes_on_or_was_broken_off_is_not_counted() -> None:
    polled_later, held = call_result(10), call_result(10)
    polled_later.answer = msgspec.structs.replace(polled_later.answer, poll_at=BEGAN)
    held.answer = msgspec.structs.replace(held.answer, holds=True)
    assert minutes_of([polled_later, held, call_result(10, "cancelled")]) == []


def test_a_clock_of_another_bridge_makes_no_time_less_than_nothing() -> None:
    (counted,) = minutes_of([call_result(0, called_at=after(BEGAN, timedelta(seconds=1)))])
    assert (counted.calls, counted.total_ms) == (1, 0)


def test_an_answer_is_kept_with_when_it_was_asked_for_and_how_it_ended() -> None:
    failed = call_result(25, "error", code="agent_timeout")
    kept = with_call_times(failed)
    assert (kept.called_at, kept.ended_at) == (BEGAN, after(BEGAN, timedelta(milliseconds=25)))
    assert (kept.outcome, kept.error_code) == ("error", "agent_timeout")


def test_an_answer_that_is_not_the_end_has_only_its_beginning() -> None:
    working = call_result(25, "working")
    working.answer = msgspec.structs.replace(working.answer, poll_at=BEGAN)
    kept = with_call_times(working)
    assert (kept.called_at, kept.ended_at, kept.outcome) == (BEGAN, None, None)
