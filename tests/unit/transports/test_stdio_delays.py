"""How soon a program that dies at once is started again."""

from __future__ import annotations

from trunkline.transports.stdio import restart_delay


def test_delays_double_to_the_longest_and_stay_there_for_days() -> None:
    delays = [restart_delay(deaths) for deaths in range(1, 2_000)]
    assert delays == sorted(delays)
    assert (delays[0], delays[1], delays[-1]) == (0.1, 0.2, 5.0)
