"""
The Writer: an agent that speaks Simple A2A.

    request   {"task_id": "…", "input": {"topic": "…", …}}
    answer    {"task_id": "…", "status": "success", "output": {"text": "…"}, "error": null}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from trunkline.cli.demo.agent_server import DemoReply, DemoRequest, serve


def write(notes: Mapping[str, object]) -> str:
    """What this agent is for. A real one would ask a language model."""
    lines = [f"{notes.get('topic', 'Something')}: a short report", ""]
    lines += [f"- {notes[name]}" for name in ("findings", "figures", "verdict") if notes.get(name)]
    return "\n".join(lines)


def answer(request: DemoRequest, headers: Mapping[str, str]) -> DemoReply:
    del headers
    task_id = request.get("task_id")
    notes = request.get("input")
    if not isinstance(notes, dict):
        return DemoReply(200, _failed(task_id, "The input must be an object"))
    text = write(cast("Mapping[str, object]", notes))
    return DemoReply(200, {"task_id": task_id, "status": "success", "output": {"text": text}, "error": None})


def _failed(task_id: object, error: str) -> dict[str, object]:
    return {"task_id": task_id, "status": "error", "output": None, "error": error}


if __name__ == "__main__":
    serve(answer)
