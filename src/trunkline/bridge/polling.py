"""How soon an agent that works on a task is asked how it stands: soon at first, then ever more rarely."""

from __future__ import annotations

from datetime import timedelta

_FIRST = timedelta(milliseconds=200)
_GROWTH = 1.5
_LONGEST = timedelta(seconds=5)
# From there on every pause is the longest; without an end the growth would be more than a pause can hold.
_GROWN = 9
# One that rings is asked all the same, in case that a ring is lost.
_FIRST_OF_RINGING = timedelta(seconds=1)
_GROWTH_OF_RINGING = 3
_LONGEST_OF_RINGING = timedelta(minutes=5)


def poll_delay(polls: int) -> timedelta:
    return min(_FIRST * _GROWTH ** min(polls, _GROWN), _LONGEST)


def poll_delay_with_push(polls: int) -> timedelta:
    return min(_FIRST_OF_RINGING * _GROWTH_OF_RINGING ** min(polls, _GROWN), _LONGEST_OF_RINGING)
