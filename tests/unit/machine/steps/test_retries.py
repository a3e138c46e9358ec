"""When a call is made again, after which delay, and under which task id."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.unit.machine.machine_harness import MachineHarness, error

from trunkline.clock import after
from trunkline.machine.retry import delay_before, is_worth_retrying
from trunkline.messages import ERROR_CODES, StepError
from trunkline.retry_policy import RetryCondition, RetryPolicy

ONE = "{name: w, steps: {s: {agent: A}}}"
TIMEOUT = error("agent_timeout")


def seconds(policy: RetryPolicy, attempts: int = 5, failure: StepError = TIMEOUT) -> list[float]:
    """The delays before the second attempt and those after it."""
    return [
        delay_before(policy, attempt, failure, salt="s").total_seconds() for attempt in range(2, attempts + 2)
    ]


def policy_of(**fields: object) -> RetryPolicy:
    return RetryPolicy(**{"jitter": False, "first_delay": timedelta(seconds=2), **fields})  # pyright: ignore[reportArgumentType] - checked by the tests that name the fields


def test_a_fixed_delay_stays_the_same() -> None:
    assert seconds(policy_of(backoff="fixed")) == [2, 2, 2, 2, 2]


def test_a_linear_delay_grows_by_the_first() -> None:
    assert seconds(policy_of(backoff="linear")) == [2, 4, 6, 8, 10]


def test_an_exponential_delay_doubles_up_to_the_longest() -> None:
    assert seconds(policy_of(backoff="exponential", max_delay=timedelta(seconds=15))) == [2, 4, 8, 15, 15]


def test_the_delay_before_a_very_late_attempt_is_still_the_longest() -> None:
    policy = policy_of(backoff="exponential", max_delay=timedelta(days=365))
    assert delay_before(policy, 1_000_000, TIMEOUT, salt="s") == timedelta(days=365)


def test_jitter_takes_up_to_half_away_and_is_the_same_for_the_same_task() -> None:
    policy = policy_of(jitter=True, backoff="fixed")
    delays = {delay_before(policy, 2, TIMEOUT, salt=f"task-{n}") for n in range(50)}
    assert len(delays) > 40
    assert all(timedelta(seconds=1) <= delay <= timedelta(seconds=2) for delay in delays)
    assert seconds(policy) == seconds(policy)
    assert len(set(seconds(policy))) > 1


@pytest.mark.parametrize(
    ("asked_ms", "waited"), [(500, 2.0), (90_000, 90.0), (86_400_000, 3600.0)]
)  # fmt: skip
def test_retry_after_is_honoured_when_it_asks_for_longer_and_within_an_hour(
    asked_ms: int, waited: float
) -> None:
    busy = error("agent_http_error", http_status=429, retry_after_ms=asked_ms)
    assert seconds(policy_of(backoff="fixed", max_delay=timedelta(seconds=5)), 1, busy) == [waited]


@pytest.mark.parametrize(
    ("condition", "code", "fields", "expected"),
    [
        ("no_answer", "agent_timeout", {}, True),
        ("no_answer", "agent_unreachable", {}, True),
        ("no_answer", "agent_task_failed", {}, False),
        (429, "agent_http_error", {"http_status": 429}, True),
        (429, "agent_http_error", {"http_status": 428}, False),
        ("5xx", "agent_http_error", {"http_status": 503}, True),
        ("5xx", "agent_http_error", {"http_status": 404}, False),
        ("5xx", "agent_timeout", {}, False),
        ("4xx", "agent_http_error", {"http_status": 404}, True),
        (-32000, "agent_jsonrpc_error", {"jsonrpc_code": -32000}, True),
        (-32000, "agent_jsonrpc_error", {"jsonrpc_code": -32001}, False),
        (-32000, "agent_timeout", {}, False),
        ("agent_task_failed", "agent_task_failed", {}, True),
        ("agent_task_failed", "agent_jsonrpc_error", {}, False),
        ("any", "agent_task_failed", {}, True),
        ("any", "expression_failed", {}, False),
        ("no_answer", "request_not_encodable", {}, False),
    ],
)
def test_a_policy_names_what_is_worth_another_attempt(
    condition: RetryCondition, code: str, fields: dict[str, int], expected: bool
) -> None:
    assert is_worth_retrying(RetryPolicy(on=(condition,)), error(code, **fields)) is expected


def test_without_conditions_nothing_is_worth_another_attempt() -> None:
    assert not any(is_worth_retrying(RetryPolicy(on=()), error(code)) for code in ERROR_CODES)


def test_a_call_without_an_answer_is_made_again_under_the_same_task_id() -> None:
    play = MachineHarness(ONE)
    play.start()
    play.fail("s", "agent_timeout")
    waiting = play.step("s").waiting_for
    assert (play.step("s").status, play.state.status) == ("WAITING", "RUNNING")
    assert waiting is not None
    assert (waiting.kind, waiting.until) == ("retry", play.timers["retry/s/1"].due)
    play.pass_time(timedelta(seconds=1))
    first, second = play.calls("s")
    assert (first.task_id, first.attempt) == (second.task_id, 1)
    assert (second.attempt, second.input_data) == (2, first.input_data)
    assert play.step("s").waiting_for is None


def test_an_answered_failure_gives_the_next_attempt_a_new_task_id() -> None:
    play = MachineHarness(ONE)
    play.start()
    play.fail("s", "agent_http_error", http_status=503)
    play.pass_time(timedelta(seconds=1))
    play.fail("s", "agent_timeout")
    play.pass_time(timedelta(seconds=2))
    assert [task.task_id for task in play.calls("s")] == [f"{play.state.id}/s/{n}" for n in (0, 1, 1)]


def test_after_the_last_attempt_the_step_has_failed() -> None:
    play = MachineHarness(ONE)
    play.start()
    for _ in range(3):
        play.fail("s", "agent_timeout")
        play.pass_time(timedelta(minutes=1))
    assert len(play.calls("s")) == 3
    assert play.state.status == "FAILED"
    failure = play.step("s").error
    assert failure is not None
    assert failure.attempt == 3


def test_the_steps_policy_counts_before_the_agents_and_the_agents_before_the_default() -> None:
    agents = RetryPolicy(max_attempts=1)
    play = MachineHarness("""
name: w
steps:
  s: {agent: A, retry: {max_attempts: 2, first_delay: 7s, jitter: false}}
  t: {agent: A, on_error: continue}
""")
    play.start()
    for step in ("s", "t"):
        play.answer(play.task(step), "error", error=error("agent_timeout"), retry=agents)
    assert play.statuses == {"s": "WAITING", "t": "FAILED"}
    assert play.timers["retry/s/1"].due == after(play.now, timedelta(seconds=7))


def test_a_retried_step_begins_where_it_began_first() -> None:
    play = MachineHarness(ONE)
    play.start()
    began = play.step("s").started_at
    play.fail("s", "agent_timeout")
    play.pass_time(timedelta(seconds=5))
    play.succeed("s")
    assert (play.step("s").started_at, play.step("s").attempts) == (began, 2)
    assert play.step("s").error is None


def test_a_retry_timer_that_fires_twice_calls_once() -> None:
    play = MachineHarness(ONE)
    play.start()
    play.fail("s", "agent_timeout")
    item = play.timers["retry/s/1"].item
    play.take(item, item)
    play.take(item)
    assert len(play.calls("s")) == 2


def test_a_retry_timer_of_an_earlier_attempt_does_not_shorten_the_wait_for_the_next() -> None:
    play = MachineHarness(ONE)
    play.start()
    play.fail("s", "agent_timeout")
    earlier = play.timers["retry/s/1"].item
    play.pass_time(timedelta(seconds=1))
    play.fail("s", "agent_timeout")
    assert play.take(earlier).events == []
    assert play.step("s").status == "WAITING"
