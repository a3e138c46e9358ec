"""Where something can be put between two parts: the crash tests end the process there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from trunkline.bridge.transports.base import Transport
from trunkline.brokers.base import Broker, Producer, Source
from trunkline.stores.base import Store, Transaction


@dataclass(frozen=True, kw_only=True)
class Seams:
    store: Callable[[Store], Store] = lambda store: store
    broker: Callable[[Broker[Transaction]], Broker[Transaction]] = lambda broker: broker
    transport: Callable[[Transport], Transport] = lambda transport: transport
    producer: Callable[[Producer], Producer] = lambda producer: producer
    source: Callable[[Source], Source] = lambda source: source
