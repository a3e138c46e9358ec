"""The lease on what a bridge has claimed: who may take what the dead have left, and when."""

from __future__ import annotations

from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from trunkline.bridge.lease_heartbeat import RECLAIM_GRACE, Heartbeat, Lease
from trunkline.stores.base import Store
from trunkline.telemetry import log_events
from trunkline.testing import FakeClock

pytestmark = pytest.mark.anyio

LEASE = Lease()


@pytest.fixture
def heartbeat(store: Store) -> Heartbeat:
    return Heartbeat(store, "me", LEASE)


async def test_who_has_never_beaten_takes_nothing(heartbeat: Heartbeat, clock: FakeClock) -> None:
    assert not heartbeat.has_stable_lease(clock.now())
    await heartbeat.beat()
    assert heartbeat.has_stable_lease(clock.now())


async def test_who_has_not_renewed_its_own_lease_takes_nothing(
    heartbeat: Heartbeat, clock: FakeClock
) -> None:
    await heartbeat.beat()
    clock.advance(LEASE.lasts)
    assert heartbeat.has_stable_lease(clock.now())
    clock.advance(timedelta(milliseconds=1))
    assert not heartbeat.has_stable_lease(clock.now())


async def test_who_was_away_for_longer_than_its_lease_lets_the_others_come_back_first(
    heartbeat: Heartbeat, clock: FakeClock
) -> None:
    await heartbeat.beat()
    clock.advance(LEASE.lasts + timedelta(seconds=1))
    with capture_logs() as logs:
        await heartbeat.beat()
    assert [line["event"] for line in logs] == [log_events.LEASE_LOST]
    assert not heartbeat.has_stable_lease(clock.now())
    clock.advance(RECLAIM_GRACE)
    assert heartbeat.has_stable_lease(clock.now())
