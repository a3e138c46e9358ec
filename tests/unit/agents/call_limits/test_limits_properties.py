"""Whatever calls do, in whatever order: an agent is called no faster than it may be, and never left alone forever."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from trunkline.agents import AgentOptions, BreakerPolicy, RateLimit
from trunkline.agents.call_limits.breaker import CallEnd, after_ended
from trunkline.agents.call_limits.limit_state import (
    INITIAL_STATE,
    AgentLimitState,
    after_calls_begun,
    allowed_calls,
    next_call_at,
)
from trunkline.clock import Instant, after

NOW = Instant(1_767_225_600_000_000)

policies = st.builds(
    BreakerPolicy,
    failures=st.integers(1, 4),
    rate=st.floats(0.1, 1.0),
    window=st.integers(1, 8),
    open_ms=st.integers(1, 5_000),
    probes=st.integers(1, 3),
)
rates = st.builds(RateLimit, per_second=st.floats(0.1, 200.0), burst=st.integers(1, 5))
options = st.builds(AgentOptions, rate=st.none() | rates, breaker=policies)
# So many want to begin, so many end like this, so many milliseconds pass.
moves = st.lists(
    st.tuples(
        st.integers(0, 5),
        st.lists(st.sampled_from([True, False, None]), max_size=4),
        st.integers(0, 2_000),
    ),
    max_size=40,
)
Moves = list[tuple[int, list[bool | None], int]]


def play(
    state: AgentLimitState, given_options: AgentOptions, made: Moves
) -> tuple[AgentLimitState, Instant, int]:
    """The state, the time and how many calls have begun after all moves."""
    now, calls = NOW, 0
    assert given_options.breaker is not None
    for wanted, ends, milliseconds in made:
        allowed = allowed_calls(state, given_options, now)
        number = wanted if allowed is None else min(wanted, allowed)
        state = after_calls_begun(state, given_options, number, now)
        calls += number
        ended = [CallEnd(failed, "why") for failed in ends]
        breaker = after_ended(state.breaker, given_options.breaker, ended, now)
        state = AgentLimitState(breaker=breaker, bucket=state.bucket)
        now = after(now, timedelta(milliseconds=milliseconds))
    return state, now, calls


@given(options, moves)
def test_no_state_is_the_last_one(given_options: AgentOptions, made: Moves) -> None:
    state, now, _ = play(INITIAL_STATE, given_options, made)
    allowed = allowed_calls(state, given_options, now)
    if allowed == 0:
        then = next_call_at(state, given_options, now)
        assert then is not None
        assert then > now
        assert allowed_calls(state, given_options, then) != 0
    else:
        assert next_call_at(state, given_options, now) is None


@given(options, moves)
def test_no_more_calls_begin_than_the_rate_allows(given_options: AgentOptions, made: Moves) -> None:
    _, now, calls = play(INITIAL_STATE, given_options, made)
    if (rate := given_options.rate) is not None:
        assert calls <= rate.burst + rate.per_second * (now - NOW) / 1_000_000 + 0.001


@given(options, moves)
def test_an_open_breaker_has_a_reason_and_a_time_and_a_closed_one_has_neither(
    given_options: AgentOptions, made: Moves
) -> None:
    state, _, _ = play(INITIAL_STATE, given_options, made)
    breaker = state.breaker
    told = (breaker.reason is not None, breaker.retry_at is not None, breaker.opened_at is not None)
    assert told == ((False,) * 3 if breaker.status == "closed" else (True,) * 3)
    assert given_options.breaker is not None
    assert len(breaker.recent) <= given_options.breaker.window
