"""Which of the runs behind a gate start, for every limit, and for generated ones."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from trunkline.clock import Instant, after
from trunkline.triggers.flow_control import (
    MAX_STARTS,
    MAX_WAITING,
    Gate,
    GateDecision,
    GatePolicy,
    WaitingStart,
    decide_gate,
)
from trunkline.workflow.flow_control.definition import ON_LIMITS, OnLimit, StartRate

NOW = Instant(1_000_000_000)
MINUTE = timedelta(minutes=1)


def waiting(*names: str, priority: int = 0, not_before: Instant = NOW) -> list[WaitingStart]:
    return [WaitingStart(run_id=name, priority=priority, not_before=not_before) for name in names]


def decide(policy: GatePolicy, starts: list[WaitingStart], *running: str) -> GateDecision:
    return decide_gate(Gate(policy=policy, running=running, waiting=starts), NOW)


def test_as_many_run_as_the_limit_allows_and_the_others_wait_in_their_order() -> None:
    decision = decide(GatePolicy(limit=2), waiting("a", "b", "c"), "r")
    assert (decision.start, decision.wait, decision.reason) == (["a"], ["b", "c"], "concurrency")
    assert decision.look_at is None


def test_the_highest_priority_starts_first() -> None:
    decision = decide(GatePolicy(limit=1), [*waiting("a", "b"), *waiting("c", "d", priority=1)])
    assert (decision.start, decision.wait) == (["c"], ["d", "a", "b"])


def test_what_is_above_the_limit_is_dropped_with_the_reason() -> None:
    decision = decide(GatePolicy(limit=2, on_limit="drop"), waiting("a", "b"), "r")
    assert decision.start == ["a"]
    assert decision.drop == {
        "b": "As many runs with the same key as the limit, 2, had not ended (on_limit: drop)."
    }


def test_the_oldest_is_cancelled_for_a_newer_one_which_waits_for_its_end() -> None:
    policy = GatePolicy(limit=2, on_limit="cancel_oldest")
    decision = decide(policy, waiting("a", "b", "c"), "r", "s")
    assert (decision.cancel, list(decision.drop), decision.start) == (["r", "s"], ["a"], [])
    assert (decision.wait, decision.reason) == (["b", "c"], "concurrency")
    assert decide(policy, waiting("a"), "r").start == ["a"]


def test_a_rate_lets_its_burst_start_and_then_one_at_a_time() -> None:
    policy = GatePolicy(throttle=StartRate(count=2, per=MINUTE))
    first = decide(policy, waiting("a", "b", "c"))
    assert (first.start, first.wait, first.reason) == (["a", "b"], ["c"], "throttle")
    assert first.look_at == after(NOW, MINUTE / 2)
    gate = Gate(policy=policy, running=(), waiting=waiting("c", "d"), bucket=first.bucket)
    second = decide_gate(gate, after(NOW, MINUTE / 2))
    assert (second.start, second.wait) == (["c"], ["d"])


def test_only_the_last_of_several_starts_when_it_was_quiet_for_long_enough() -> None:
    policy = GatePolicy(debounce=MINUTE)
    due = after(NOW, MINUTE)
    decision = decide(policy, waiting("a", "b", not_before=due))
    assert list(decision.drop) == ["a"]
    assert (decision.start, decision.wait, decision.reason, decision.look_at) == ([], ["b"], "debounce", due)
    gate = Gate(policy=policy, running=(), waiting=waiting("b", not_before=due))
    assert decide_gate(gate, due).start == ["b"]


def test_a_start_whose_quiet_time_has_passed_is_not_replaced() -> None:
    policy = GatePolicy(limit=1, debounce=MINUTE)
    quiet, later, last = (after(NOW, MINUTE * minutes) for minutes in (0, 1.5, 2))
    starts = [
        *waiting("a", not_before=quiet),
        *waiting("b", not_before=later),
        *waiting("c", not_before=last),
    ]
    decision = decide(policy, starts, "r")
    assert (list(decision.drop), decision.start, decision.wait) == (["b"], [], ["a", "c"])
    assert decision.look_at == last
    assert decide(policy, starts).start == ["a"]


def test_the_oldest_is_cancelled_only_for_one_that_the_throttle_lets_start() -> None:
    policy = GatePolicy(limit=2, on_limit="cancel_oldest", throttle=StartRate(count=1, per=MINUTE))
    first = decide(policy, waiting("a", "b"), "r", "s")
    # There is one token.
    assert (first.cancel, first.start, first.wait) == (["r"], [], ["a", "b"])
    assert (first.reason, first.look_at) == ("throttle", after(NOW, MINUTE))
    empty = decide(policy, waiting("a")).bucket
    gate = Gate(policy=policy, running=("r", "s"), waiting=waiting("b"), bucket=empty)
    held = decide_gate(gate, NOW)
    assert (held.cancel, held.wait, held.reason) == ([], ["b"], "throttle")
    assert held.look_at == after(NOW, MINUTE)
    assert decide_gate(gate, after(NOW, MINUTE)).cancel == ["r"]


def test_the_number_of_those_that_wait_is_limited() -> None:
    starts = waiting(*(str(number) for number in range(MAX_WAITING + 2)))
    decision = decide(GatePolicy(limit=1), starts, "r")
    assert list(decision.drop) == [str(MAX_WAITING), str(MAX_WAITING + 1)]
    assert len(decision.wait) == MAX_WAITING


def test_many_that_may_start_are_spread_over_turns() -> None:
    decision = decide(GatePolicy(limit=1_000), waiting(*(str(number) for number in range(MAX_STARTS + 1))))
    assert len(decision.start) == MAX_STARTS
    assert (len(decision.wait), decision.look_at) == (1, NOW)


@given(
    st.one_of(st.none(), st.integers(1, 4)),
    st.sampled_from(ON_LIMITS),
    st.one_of(st.none(), st.integers(1, 4)),
    st.booleans(),
    st.lists(st.tuples(st.integers(-2, 2), st.integers(-5, 5)), max_size=8),
    st.integers(0, 5),
)
def test_each_run_has_one_fate_and_none_is_forgotten(
    limit: int | None,
    on_limit: OnLimit,
    count: int | None,
    debounces: bool,
    starts: list[tuple[int, int]],
    running: int,
) -> None:
    policy = GatePolicy(
        limit=limit,
        on_limit=on_limit,
        throttle=None if count is None else StartRate(count=count, per=MINUTE),
        debounce=MINUTE if debounces else None,
    )
    runs = [
        WaitingStart(run_id=str(place), priority=priority, not_before=Instant(NOW + wait))
        for place, (priority, wait) in enumerate(starts)
    ]
    decision = decide(policy, runs, *(f"r{number}" for number in range(running)))
    decided = [*decision.start, *decision.drop, *decision.wait]
    assert sorted(decided) == sorted(run.run_id for run in runs)
    if limit is not None:
        assert len(decision.start) <= max(0, limit - running)
    if count is not None:
        assert len(decision.start) <= count
        assert len(decision.cancel) <= count
    if decision.wait and limit is None:
        # Nothing that ends would wake it.
        assert decision.look_at is not None
    if decision.wait and running == 0:
        assert decision.look_at is not None or decision.start
