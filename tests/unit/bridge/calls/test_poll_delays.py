"""How soon an agent is asked again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from trunkline.bridge.calls.results import poll_delay, poll_delay_with_push


@pytest.mark.parametrize(
    ("pause", "first", "longest"),
    [
        (poll_delay, timedelta(milliseconds=200), timedelta(seconds=5)),
        (poll_delay_with_push, timedelta(seconds=1), timedelta(minutes=5)),
    ],
)
def test_pauses_grow_to_the_longest_and_stay_there_for_days(
    pause: Callable[[int], timedelta], first: timedelta, longest: timedelta
) -> None:
    pauses = [pause(polls) for polls in range(1_000)]
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1], pause(1_000_000)) == (first, longest, longest)
