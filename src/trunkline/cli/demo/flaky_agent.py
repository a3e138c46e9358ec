"""
The FactChecker: a Simple A2A agent with a bad day.

It refuses the first two calls of every run with HTTP 503, then works: the retry policy sees it through.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from trunkline.cli.demo.agent_server import DemoReply, DemoRequest, serve

FAILURES = 2

# Calls by correlation id, which is the same for all calls of a run.
_calls: Counter[str] = Counter()


def answer(request: DemoRequest, headers: Mapping[str, str]) -> DemoReply:
    run = headers.get("X-Correlation-ID", "")
    _calls[run] += 1
    if _calls[run] <= FAILURES:
        return DemoReply(503, {"error": f"Overloaded, call {_calls[run]}"})
    output = {"text": f"The facts hold; it took {_calls[run]} calls to find out."}
    return DemoReply(
        200, {"task_id": request.get("task_id"), "status": "success", "output": output, "error": None}
    )


if __name__ == "__main__":
    serve(answer)
