"""
Flow control: which of the runs that wait behind a gate may start. Pure.

A gate stands before the runs of a trigger or a workflow that have the same key. Its policy limits how many run at the
same time, and how many start in a time, and lets only the last of several starts in a row through.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Literal

import msgspec

from trunkline.agents.call_limits.token_bucket import TokenBucket, next_token, refilled, whole_tokens, without
from trunkline.agents.model import RateLimit
from trunkline.clock import Instant, after
from trunkline.workflow.flow_control.definition import FlowControl, OnLimit, StartRate

# Why a run waits.
WaitReason = Literal["concurrency", "throttle", "debounce"]

# Behind one gate; more are cancelled.
MAX_WAITING = 1_000
# In one turn, so that a gate leaves time for the others.
MAX_STARTS = 64


class GatePolicy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """As the newest run behind the gate brings it."""

    # How many run at the same time; None: without limit.
    limit: int | None = None
    on_limit: OnLimit = "queue"
    throttle: StartRate | None = None
    debounce: timedelta | None = None


def gate_policy(flow: FlowControl) -> GatePolicy:
    return GatePolicy(
        limit=None if flow.concurrency is None else flow.concurrency.limit,
        on_limit="queue" if flow.concurrency is None else flow.concurrency.on_limit,
        throttle=flow.throttle,
        debounce=None if flow.debounce is None else flow.debounce.wait,
    )


class WaitingStart(msgspec.Struct, frozen=True, kw_only=True):
    run_id: str
    priority: int
    # Not earlier, because of `debounce`.
    not_before: Instant


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    policy: GatePolicy
    # Oldest first, like the waiting ones.
    running: Sequence[str]
    waiting: Sequence[WaitingStart]
    bucket: TokenBucket | None = None


class GateDecision(msgspec.Struct, kw_only=True):
    # In their order.
    start: list[str] = []
    # Runs that never start, with the reason.
    drop: dict[str, str] = {}
    # Runs that go on, and end for a newer one.
    cancel: list[str] = []
    # Those that wait on, and when to look again; None: when a run ends.
    wait: list[str] = []
    reason: WaitReason | None = None
    look_at: Instant | None = None
    bucket: TokenBucket | None = None


def decide_gate(gate: Gate, now: Instant) -> GateDecision:
    decision = GateDecision(bucket=gate.bucket)
    waiting = _not_superseded(gate, decision)
    ready = [start for start in waiting if start.not_before <= now]
    early = [start for start in waiting if start.not_before > now]
    if early:
        decision.reason = "debounce"
        decision.look_at = min(start.not_before for start in early)
    ready = _within_limit(gate, ready, decision)
    ready.sort(key=lambda start: -start.priority)
    room = len(ready) if gate.policy.limit is None else max(0, gate.policy.limit - len(gate.running))
    if room < len(ready):
        decision.reason = "concurrency"
    cancels = gate.policy.limit is not None and gate.policy.on_limit == "cancel_oldest"
    tokens = _tokens(gate, decision, now, len(ready) if cancels else min(len(ready), room))
    if cancels:
        # Only for those that can take the places now: without a token, a place would stay empty.
        places = min(len(ready), tokens)
        decision.cancel = list(gate.running[: max(0, places - room)])
    allowed = min(len(ready), room, tokens)
    if allowed > MAX_STARTS:
        allowed, decision.look_at = MAX_STARTS, now
    if gate.policy.throttle is not None and decision.bucket is not None:
        decision.bucket = without(decision.bucket, allowed)
    decision.start = [start.run_id for start in ready[:allowed]]
    decision.wait = [start.run_id for start in [*ready[allowed:], *early]]
    return decision


def _not_superseded(gate: Gate, decision: GateDecision) -> list[WaitingStart]:
    waiting = list(gate.waiting)
    debounce = gate.policy.debounce
    if debounce is not None:
        for start, later in pairwise(gate.waiting):
            # After its quiet time, a start waits only for another limit.
            if after(later.not_before, -debounce) < start.not_before:
                decision.drop[start.run_id] = "A later run with the same key replaced it (debounce)."
        waiting = [start for start in waiting if start.run_id not in decision.drop]
    for start in waiting[MAX_WAITING:]:
        decision.drop[start.run_id] = f"{MAX_WAITING:,} runs with the same key are waiting already."
    return waiting[:MAX_WAITING]


def _within_limit(gate: Gate, ready: list[WaitingStart], decision: GateDecision) -> list[WaitingStart]:
    limit = gate.policy.limit
    if limit is None or gate.policy.on_limit == "queue":
        return ready
    if gate.policy.on_limit == "drop":
        room = max(0, limit - len(gate.running))
        for start in ready[room:]:
            decision.drop[start.run_id] = (
                f"As many runs with the same key as the limit, {limit:,}, had not ended (on_limit: drop)."
            )
        return ready[:room]
    for start in ready[:-limit]:
        decision.drop[start.run_id] = "A later run with the same key replaced it (on_limit: cancel_oldest)."
    return ready[-limit:]


def _tokens(gate: Gate, decision: GateDecision, now: Instant, wanted: int) -> int:
    """How many the throttle allows."""
    if gate.policy.throttle is None:
        decision.bucket = None
        return wanted
    rate = gate.policy.throttle
    limit = RateLimit(per_second=rate.count / rate.per.total_seconds(), burst=rate.count)
    decision.bucket = refilled(gate.bucket, limit, now)
    tokens = whole_tokens(decision.bucket)
    if tokens < wanted:
        decision.reason = "throttle"
        token = next_token(without(decision.bucket, tokens), limit)
        decision.look_at = token if decision.look_at is None else min(decision.look_at, token)
    return tokens
