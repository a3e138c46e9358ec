"""Where something can be put between two parts, and how long the living wait: the crash tests end the process there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import NamedTuple

from trunkline.bridge.heartbeat import Lease
from trunkline.brokers.base import Broker, Producer, Source
from trunkline.stores.base import Store, Transaction
from trunkline.transports.base import Transport


class Pace(NamedTuple):
    """How long it takes until somebody counts as dead, or something as lost."""

    lease: Lease = Lease()
    # None: the broker's own.
    session: timedelta | None = None
    resend_after: timedelta | None = None


@dataclass(frozen=True, kw_only=True)
class Seams:
    pace: Pace = field(default_factory=Pace)
    store: Callable[[Store], Store] = lambda store: store
    broker: Callable[[Broker[Transaction]], Broker[Transaction]] = lambda broker: broker
    transport: Callable[[Transport], Transport] = lambda transport: transport
    producer: Callable[[Producer], Producer] = lambda producer: producer
    source: Callable[[Source], Source] = lambda source: source
