"""The figures of a chaos run, in a file of its own."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from math import ceil
from pathlib import Path

from tests.crash.chaos import ChaosPlan, ChaosRun
from tests.crash.history_checker import SystemHistory, recoveries, second_calls, violations


def write_report(plan: ChaosPlan, chaos: ChaosRun, history: SystemHistory) -> Path:
    """Its path; outside the tree."""
    folder = Path(tempfile.gettempdir())
    file = folder / f"trunkline-chaos-{plan.runs}-runs-{plan.kills}-kills-seed-{plan.seed}.md"
    file.write_text("\n".join(_lines(plan, chaos, history)) + "\n")
    return file


def _lines(plan: ChaosPlan, chaos: ChaosRun, history: SystemHistory) -> Iterator[str]:
    yield f"# Chaos: {plan.runs} runs, seed {plan.seed}"
    yield ""
    yield "| what | number |"
    yield "|---|---|"
    yield from (f"| {name} | {number} |" for name, number in _figures(plan, chaos, history).items())
    wrong = violations(history)
    yield ""
    yield "## Violations"
    yield from (wrong or ["none"])


def _figures(plan: ChaosPlan, chaos: ChaosRun, history: SystemHistory) -> dict[str, int | float]:
    ends = Counter(str(run.run["status"]) for run in history.runs)
    sends = [call for call in history.calls if call.kind == "send"]
    return {
        "runs accepted": history.accepted,
        "runs begun by others": len(history.runs) - history.accepted,
        **{f"runs {status}": number for status, number in sorted(ends.items())},
        "events": sum(len(run.events) for run in history.runs),
        **{f"kill -9 of {role}": number for role, number in sorted(chaos.kills.items())},
        "kill -9 of the broker": plan.broker_kills,
        "crashes of the database": plan.database_crashes,
        **{f"pauses of {role}": number for role, number in sorted(chaos.pauses.items())},
        "calls of agents": len(sends),
        **{f"second calls: {reason}": number for reason, number in sorted(second_calls(history).items())},
        **_recovery(recoveries(history)),
        "rows without a wake reason": int(history.without_wake_reason),
        "violations": len(violations(history)),
    }


def _recovery(seconds: Sequence[float]) -> dict[str, float]:
    if not seconds:
        return {}
    shares = {"half": 0.5, "99 %": 0.99, "all": 1.0}
    return {
        f"seconds from a death to the call made again: {name} within": round(
            seconds[ceil(share * len(seconds)) - 1], 1
        )
        for name, share in shares.items()
    }
