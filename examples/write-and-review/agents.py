"""
A writer and a reviewer with the agent kit, for the workflow next to this file. The reviewer wants two more details.

    python agents.py writer 8080
    python agents.py reviewer 8081
"""

from __future__ import annotations

import sys

from trunkline.agentkit import Agent, Task

writer = Agent("Writer", description="Writes a text, and improves it as advised.")
reviewer = Agent("Reviewer", description="Scores a text, and says what is missing.")


@writer
def write(task: Task) -> str:
    request = task.data if isinstance(task.data, dict) else {}
    details = f", with {request['advice']}" if request.get("advice") else ""
    return f"{request.get('last') or request.get('topic')}{details}"


@reviewer
def review(task: Task) -> dict[str, object]:
    request = task.data if isinstance(task.data, dict) else {}
    details = str(request.get("text")).count(", with ")
    return {"score": details / 2, "advice": f"detail {details + 1}"}


if __name__ == "__main__":
    agent = {"writer": writer, "reviewer": reviewer}[sys.argv[1]]
    agent.run(port=int(sys.argv[2]))
