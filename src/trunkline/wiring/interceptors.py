"""Where tests wrap a part of the system, and how soon a process counts as dead: crash tests stop the process there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import NamedTuple

from trunkline.bridge.lease_heartbeat import Lease
from trunkline.brokers.base import Broker, Producer, RecordSource
from trunkline.executor.bulk_jobs import CLAIM_LASTS as JOB_CLAIM_LASTS
from trunkline.services.callbacks.sender import CLAIM_LASTS, LOOK_EVERY
from trunkline.stores.base import Store, Transaction
from trunkline.transports.base import Transport


class LivenessTimeouts(NamedTuple):
    """How long it takes until a process counts as dead, or a message as lost."""

    lease: Lease = Lease()
    # None: the broker's own.
    session: timedelta | None = None
    resend_after: timedelta | None = None
    callback_claim: timedelta = CLAIM_LASTS
    callback_look: timedelta = LOOK_EVERY
    job_claim: timedelta = JOB_CLAIM_LASTS


@dataclass(frozen=True, kw_only=True)
class Interceptors:
    """Each wraps the object of its name; by default it returns the object itself."""

    timeouts: LivenessTimeouts = field(default_factory=LivenessTimeouts)
    store: Callable[[Store], Store] = lambda store: store
    broker: Callable[[Broker[Transaction]], Broker[Transaction]] = lambda broker: broker
    transport: Callable[[Transport], Transport] = lambda transport: transport
    producer: Callable[[Producer], Producer] = lambda producer: producer
    source: Callable[[RecordSource], RecordSource] = lambda source: source
