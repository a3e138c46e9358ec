"""The figures of a chaos test, as JSON: `full_size.py` collects them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from math import ceil
from pathlib import Path

import msgspec
from tests.crash.history_checker import SystemHistory, recoveries, second_calls, violations

# The file for the figures; without it, none are written.
FIGURES_FILE = "TRUNKLINE_CHAOS_FIGURES"

Figures = Mapping[str, int | float]


def write_figures(figures: Figures) -> None:
    if file := os.environ.get(FIGURES_FILE):
        Path(file).write_bytes(msgspec.json.format(msgspec.json.encode(figures)) + b"\n")


def figures_of(history: SystemHistory, harm: Mapping[str, int]) -> Figures:
    """`harm` is what was done to the system: kills, crashes, pauses."""
    ends = Counter(str(run.run["status"]) for run in history.runs)
    sends = [call for call in history.calls if call.kind == "send"]
    return {
        "runs accepted": history.accepted,
        "child runs": len(history.runs) - history.accepted,
        **{f"runs {status}": number for status, number in sorted(ends.items())},
        "events": sum(len(run.events) for run in history.runs),
        **harm,
        "agent calls": len(sends),
        **{f"second calls: {reason}": number for reason, number in sorted(second_calls(history).items())},
        **_recovery_seconds(recoveries(history)),
        "rows without a wake reason": int(history.without_wake_reason),
        "violations": len(violations(history)),
    }


def _recovery_seconds(seconds: Sequence[float]) -> Figures:
    """From the kill of a process to the repeated call of another one."""
    if not seconds:
        return {}
    shares = {"p50": 0.5, "p99": 0.99, "max": 1.0}
    return {
        f"recovery seconds, {name}": round(seconds[ceil(share * len(seconds)) - 1], 1)
        for name, share in shares.items()
    }
