"""The work of the agent, which is the same before and after the migration."""

from __future__ import annotations

from typing import Any


def process_task(task_input: dict[str, Any]) -> dict[str, Any]:
    query = task_input.get("query", task_input.get("text", ""))
    if not isinstance(query, str):
        raise TypeError("query must be a string")
    # Your processing logic here.
    return {"result": f"Processed: {query}"}
