"""Building requests and reading answers, without any I/O."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import msgspec

from bench.harness.environment import BenchEnvironment
from bench.harness.table import FigureRow
from trunkline.messages import AgentTask
from trunkline.protocols import AgentAnswer, ProtocolAdapterFactory, Succeeded

_SMALL = 1_000
_LARGE = 5_000_000
_LARGE_ARTIFACTS = 50
_TASK_ID = "01890000-0000-7000-8000-000000000000/step/0"


async def protocol_translation(environment: BenchEnvironment) -> list[FigureRow]:
    rows: list[FigureRow] = []
    for protocol in ("jsonrpc-2.0", "simple-a2a"):
        adapter = ProtocolAdapterFactory.create_adapter(protocol)
        small_task = AgentTask(task_id=_TASK_ID, input_data={"text": "x" * _SMALL})
        small = AgentAnswer(200, {"content-type": "application/json"}, _answer(protocol, _SMALL, 1))
        large = AgentAnswer(
            200, {"content-type": "application/json"}, _answer(protocol, _LARGE, _LARGE_ARTIFACTS)
        )
        assert isinstance(adapter.decode(large, small_task), Succeeded)
        repeats = environment.runs(4_000)
        build = _microseconds(lambda a=adapter, t=small_task: a.encode(t), repeats)
        read = _microseconds(lambda a=adapter, t=small_task, s=small: a.decode(s, t), repeats)
        read_large = _microseconds(lambda a=adapter, t=small_task, s=large: a.decode(s, t), 15)
        rows += [
            FigureRow(f"{protocol}: build a request, 1 kB", f"{build:.1f} us", "", "", "20 us"),
            FigureRow(f"{protocol}: read an answer, 1 kB", f"{read:.1f} us", "", "", "30 us"),
            FigureRow(f"{protocol}: read an answer, 5 MB", f"{read_large / 1_000:.1f} ms", "", "", "5 ms"),
        ]
    return rows


def _answer(protocol: str, size: int, artifacts: int) -> bytes:
    text = "x" * (size // artifacts)
    if protocol == "simple-a2a":
        output = [{"text": text} for _ in range(artifacts)]
        return msgspec.json.encode(
            {"task_id": _TASK_ID, "status": "success", "output": output, "error": None}
        )
    parts = [{"kind": "text", "text": text}]
    task = {
        "kind": "task",
        "id": "task-1",
        "contextId": "context-1",
        "status": {"state": "completed"},
        "artifacts": [{"artifactId": f"a{number}", "parts": parts} for number in range(artifacts)],
    }
    return msgspec.json.encode({"jsonrpc": "2.0", "id": _TASK_ID, "result": task})


def _microseconds(work: Callable[[], object], repeats: int) -> float:
    """The median of each call's time."""
    times: list[int] = []
    for _ in range(repeats):
        began = time.perf_counter_ns()
        work()
        times.append(time.perf_counter_ns() - began)
    return median(times) / 1_000
