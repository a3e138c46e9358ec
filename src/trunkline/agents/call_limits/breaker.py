"""
The circuit breaker of an agent. Deterministic, no I/O: every store computes the same state.

Closed, calls are made and their ends are counted. Open, none begins until `retry_at`; nothing that ends meanwhile
counts, since it began before. Then half-open lets a few probes through: one that succeeds closes it, one that fails
opens it again. Probes without a result by the next `retry_at`, because their bridge has died, are replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Literal

import msgspec

from trunkline.agents.model import BreakerPolicy
from trunkline.clock import Instant, after

BreakerStatus = Literal["closed", "open", "half_open"]

# Enough for an error's first sentences.
_MAX_REASON_CHARACTERS = 500


class CallEnd(msgspec.Struct, frozen=True):
    """How a call has ended, as far as it tells about its agent. `failed` is None where it tells nothing."""

    failed: bool | None
    # What went wrong, in words.
    error: str = ""


class Breaker(msgspec.Struct, frozen=True, kw_only=True):
    status: BreakerStatus = "closed"
    # In a row.
    failures: int = 0
    # The last calls from the first failure on, oldest first; 1: failed. What succeeded before it changes nothing.
    recent: str = ""
    # Calls let through since it is half-open.
    probing: int = 0
    opened_at: Instant | None = None
    # When probes may begin.
    retry_at: Instant | None = None
    reason: str | None = None


CLOSED = Breaker()


def calls_allowed(breaker: Breaker, policy: BreakerPolicy, now: Instant) -> int | None:
    """How many calls may begin now; None: as many as there are."""
    if breaker.status == "closed":
        return None
    if _is_due(breaker, now):
        return policy.probes
    return max(0, policy.probes - breaker.probing) if breaker.status == "half_open" else 0


def after_begun(breaker: Breaker, policy: BreakerPolicy, calls: int, now: Instant) -> Breaker:
    if breaker.status == "closed" or not calls:
        return breaker
    if not _is_due(breaker, now):
        return msgspec.structs.replace(breaker, probing=breaker.probing + calls)
    return msgspec.structs.replace(
        breaker, status="half_open", probing=calls, retry_at=_when_to_retry(policy, now)
    )


def after_ended(breaker: Breaker, policy: BreakerPolicy, ends: Sequence[CallEnd], now: Instant) -> Breaker:
    for end in ends:
        match breaker.status:
            case "closed":
                breaker = _counted(breaker, policy, end, now)
            case "half_open":
                breaker = _probed(breaker, policy, end, now)
            case "open":
                pass
    return breaker


def _counted(breaker: Breaker, policy: BreakerPolicy, end: CallEnd, now: Instant) -> Breaker:
    if end.failed is None:
        return breaker
    failures = breaker.failures + 1 if end.failed else 0
    recent = (breaker.recent + ("1" if end.failed else "0"))[-policy.window :].lstrip("0")
    failed = recent.count("1")
    if failures >= policy.failures:
        how = f"{failures} consecutive failures"
    elif end.failed and failed >= policy.rate * policy.window:
        how = f"{failed} failures in the last {policy.window} calls"
    else:
        return Breaker(failures=failures, recent=recent)
    return _opened(policy, failures, recent, f"{how}, the last one: {end.error}", now)


def _probed(breaker: Breaker, policy: BreakerPolicy, end: CallEnd, now: Instant) -> Breaker:
    if end.failed is None:
        return msgspec.structs.replace(breaker, probing=max(0, breaker.probing - 1))
    if end.failed:
        failures = breaker.failures + 1
        return _opened(policy, failures, breaker.recent, f"the probe failed: {end.error}", now)
    return CLOSED


def _opened(policy: BreakerPolicy, failures: int, recent: str, reason: str, now: Instant) -> Breaker:
    return Breaker(
        status="open",
        failures=failures,
        recent=recent,
        opened_at=now,
        retry_at=_when_to_retry(policy, now),
        reason=reason[:_MAX_REASON_CHARACTERS],
    )


def _is_due(breaker: Breaker, now: Instant) -> bool:
    return breaker.retry_at is None or breaker.retry_at <= now


def _when_to_retry(policy: BreakerPolicy, now: Instant) -> Instant:
    return after(now, timedelta(milliseconds=policy.open_ms))
