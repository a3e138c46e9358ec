"""
Decides when a migration is rolled back, from how the last calls of its endpoints have ended.

A window holds the last calls of one endpoint in one rollout. Calls of an earlier rollout, made by runs that were
accepted before it was rolled back, are not counted. Deterministic, no I/O: all bridges decide alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from trunkline.agents.migration.model import RolloutLimits

# Milliseconds. Below this no run waits noticeably, and a busy machine makes such numbers three times as long.
_NOT_SLOW = 250
# Of a hundred calls, so many are at most as slow as the number that is compared.
_PERCENTILE = 95


class EndpointCallEnd(NamedTuple):
    """How one call of one endpoint has ended."""

    failed: bool
    ms: int


class CallWindow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    # The event that began the rollout (`MigrationRevision.rollout_since`); stored under its former name.
    rollout_since: int = msgspec.field(name="trial", default=0)
    # Oldest first.
    ends: tuple[EndpointCallEnd, ...] = ()


EMPTY_WINDOW = CallWindow()


def after_calls(
    window: CallWindow, rollout_since: int, ends: Sequence[EndpointCallEnd], limits: RolloutLimits
) -> CallWindow:
    if rollout_since < window.rollout_since:
        return window
    before = window.ends if rollout_since == window.rollout_since else ()
    return CallWindow(rollout_since=rollout_since, ends=(*before, *ends)[-limits.window :])


def reason_to_roll_back(source: CallWindow, target: CallWindow, limits: RolloutLimits) -> str | None:
    """The reason as text; None: the target is good enough, or has too few calls to decide."""
    calls = len(target.ends)
    failed = sum(end.failed for end in target.ends)
    if calls >= limits.calls and failed > limits.error_rate * calls:
        return f"{failed} of the last {calls} calls to the target failed, and the limit is {limits.error_rate:.0%}"
    slow = _slowness(target, limits)
    if slow is None:
        return None
    if limits.slowest_ms is not None and slow > limits.slowest_ms:
        return (
            f"{_PERCENTILE} % of the calls to the target take up to {slow} ms,"
            f" and the limit is {limits.slowest_ms} ms"
        )
    usual = _slowness(source, limits) if source.rollout_since == target.rollout_since else None
    if usual is not None and slow > _NOT_SLOW and slow > usual * limits.slowdown:
        return (
            f"{_PERCENTILE} % of the calls to the target take up to {slow} ms, to the source up to {usual} ms,"
            f" and the limit is {limits.slowdown:g} times as long"
        )
    return None


def _slowness(window: CallWindow, limits: RolloutLimits) -> int | None:
    """Of the calls that have succeeded, if there are enough: a failure may be as quick as it likes."""
    times = sorted(end.ms for end in window.ends if not end.failed)
    if len(times) < max(limits.calls, 1):
        return None
    return times[min(len(times) - 1, len(times) * _PERCENTILE // 100)]


_windows: msgspec.json.Decoder[CallWindow] = msgspec.json.Decoder(CallWindow)


def encode_window(window: CallWindow) -> bytes:
    return msgspec.json.encode(window)


def decode_window(encoded: bytes | None) -> CallWindow:
    return EMPTY_WINDOW if encoded is None else _windows.decode(encoded)
