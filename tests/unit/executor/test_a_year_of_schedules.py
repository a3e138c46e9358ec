"""A year of schedules in three time zones, with an executor that ends at random moments: each firing exactly once."""

from __future__ import annotations

import random
from calendar import monthrange
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.unit.executor.trigger_harness import WORKFLOW, TriggerHarness, open_triggers

from trunkline.clock import Instant
from trunkline.jsontypes import encode

pytestmark = pytest.mark.anyio

DAYS = 365
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
# By trigger: its zone and its expression.
TRIGGERS = {
    "berlin": ("Europe/Berlin", "30 2 * * *"),
    "new-york": ("America/New_York", "30 2 * * MON-FRI"),
    "tokyo": ("Asia/Tokyo", "0 9 L * *"),
}
# Local times that the clocks skip or show twice, as the instants that count for them.
CHANGES = {
    ("berlin", "2026-03-29"): "2026-03-29T01:00:00+00:00",
    ("berlin", "2026-10-25"): "2026-10-25T00:30:00+00:00",
}


def expected(name: str) -> Iterator[Instant]:
    """Worked out from the calendar, without any cron library. New York changes its clocks on Sundays."""
    for number in range(-1, DAYS + 1):
        day = BEGIN + timedelta(days=number)
        weekday, last = day.weekday(), monthrange(day.year, day.month)[1]
        if (name, day.date().isoformat()) in CHANGES:
            moment = datetime.fromisoformat(CHANGES[name, day.date().isoformat()])
        elif name == "berlin":
            summer = datetime(2026, 3, 29, tzinfo=UTC) < day < datetime(2026, 10, 25, tzinfo=UTC)
            moment = day + timedelta(minutes=150) - timedelta(hours=2 if summer else 1)
        elif name == "new-york" and weekday < 5:
            summer = datetime(2026, 3, 8, tzinfo=UTC) < day < datetime(2026, 11, 1, tzinfo=UTC)
            moment = day + timedelta(minutes=150) + timedelta(hours=4 if summer else 5)
        elif name == "tokyo" and day.day == last:
            moment = day + timedelta(hours=9) - timedelta(hours=9)
        else:
            continue
        if BEGIN < moment <= BEGIN + timedelta(days=DAYS):
            yield Instant(int(moment.timestamp()) * 1_000_000)


async def prepare(harness: TriggerHarness) -> None:
    await harness.workflows.save(WORKFLOW.encode())
    for name, (zone, cron) in TRIGGERS.items():
        schedule = {
            "cron": cron,
            "timezone": zone,
            "overlap": "allow",
            "catch_up": "all",
            "catch_up_window": "5d",
        }
        await harness.triggers.save(name, encode({"name": name, "workflow": "report", "schedule": schedule}))


@pytest.mark.parametrize("seed", [1, 2])
async def test_each_firing_happens_exactly_once_at_the_right_instant(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    async with open_triggers(tmp_path) as harness:
        await prepare(harness)
        end = Instant(harness.clock.now() + DAYS * 86_400_000_000)
        while harness.clock.now() < end:
            due = harness.part.next_wake()
            now = harness.clock.now()
            draw = chance.random()
            if draw < 0.05:
                # It is away, up to two days.
                harness.restart()
                pause = chance.randrange(2 * 86_400_000_000)
            elif due is not None and due > now and draw < 0.9:
                pause = due - now
            else:
                pause = chance.randrange(6 * 3_600_000_000)
            harness.clock.advance(timedelta(microseconds=min(pause, end - now)))
            if chance.random() < 0.1:
                # The process ends in the middle of its transaction.
                await harness.crash()
            await harness.look()
        for name in TRIGGERS:
            wanted = list(expected(name))
            firings = await harness.firings(name)
            assert [firing.scheduled_at for firing in firings] == wanted
            assert {firing.outcome for firing in firings} == {"started"}
            assert all(firing.at >= (firing.scheduled_at or 0) for firing in firings)
            assert len({firing.run_id for firing in firings}) == len(wanted)
        runs = await harness.started()
        assert len(runs) == sum(len(list(expected(name))) for name in TRIGGERS)
