"""Which of several agents is called, by what is known of them."""

from __future__ import annotations

import pytest

from trunkline.clock import Instant
from trunkline.machine.candidates import Candidate, choose
from trunkline.workflow import Select


def chosen(select: Select, *candidates: Candidate) -> str | None:
    choice = choose(candidates, select)
    return None if choice.chosen is None else choice.chosen.agent


A, B = Candidate(agent="A"), Candidate(agent="B")


@pytest.mark.parametrize(
    ("select", "first", "second", "expected"),
    [
        ("first", A, B, "A"),
        ("round_robin", B, A, "B"),
        ("least_busy", Candidate(agent="A", busy=2, slots=9), Candidate(agent="B", busy=1, slots=9), "B"),
        ("cheapest", Candidate(agent="A", cost=2), Candidate(agent="B", cost=0.5), "B"),
        ("cheapest", Candidate(agent="A"), Candidate(agent="B", cost=5), "B"),
        ("cheapest", Candidate(agent="A"), Candidate(agent="B", cost=0), "B"),
        ("fastest", Candidate(agent="A", average_ms=90), Candidate(agent="B", average_ms=30), "B"),
        # An agent that has not been measured gets one call, not all of them.
        ("fastest", Candidate(agent="A", average_ms=90), Candidate(agent="B", slots=9), "B"),
        ("fastest", Candidate(agent="A", average_ms=90), Candidate(agent="B", slots=9, busy=1), "A"),
    ],
)
def test_each_way_to_select_compares_its_own_fact(
    select: Select, first: Candidate, second: Candidate, expected: str
) -> None:
    assert chosen(select, first, second) == expected


@pytest.mark.parametrize(
    "unusable",
    [
        Candidate(agent="A", cost=0, breaker_open=True),
        Candidate(agent="A", cost=0, busy=5, slots=5),
        Candidate(agent="A", cost=0, is_limited=True),
        Candidate(agent="A", cost=0, calls=3, failures=3),
    ],
    ids=["breaker", "slots", "rate", "health"],
)
def test_an_agent_that_cannot_take_the_call_is_passed_over(unusable: Candidate) -> None:
    assert chosen("cheapest", unusable, Candidate(agent="B", cost=9)) == "B"


def test_a_call_queues_where_the_fewest_wait_if_all_agents_are_full() -> None:
    full = Candidate(agent="A", cost=0, busy=20, slots=5)
    assert chosen("cheapest", full, Candidate(agent="B", cost=9, busy=6, slots=5)) == "B"


def test_an_unhealthy_agent_is_called_if_there_is_no_other() -> None:
    failing = Candidate(agent="A", calls=5, failures=5)
    assert chosen("first", failing, Candidate(agent="B", breaker_open=True)) == "A"


def test_nothing_is_called_if_all_breakers_are_open() -> None:
    open_ = Candidate(agent="A", breaker_open=True, retry_at=Instant(1_000_000))
    choice = choose([open_], "first")
    assert choice.chosen is None
    assert [(each.agent, each.status, each.reason) for each in choice.considered] == [
        ("A", "breaker_open", "circuit breaker open until 1970-01-01T00:00:01.000000Z")
    ]


def test_every_candidate_is_shown_with_its_reason() -> None:
    choice = choose([Candidate(agent="A", cost=2), Candidate(agent="B", cost=0.25)], "cheapest")
    assert [(each.agent, each.status, each.reason) for each in choice.considered] == [
        ("B", "chosen", "cost 0.25"),
        ("A", "available", "cost 2"),
    ]
