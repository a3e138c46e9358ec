"""
Two booking agents with the agent kit, for the workflow next to this file. The hotel has no room left.

    python agents.py flights 8086
    python agents.py hotels 8087
"""

from __future__ import annotations

import sys

from trunkline.agentkit import Agent, AgentError, Task

flights = Agent("Flights", description="Books flights, and cancels them.")
hotels = Agent("Hotels", description="Books rooms.")


@flights
def flight(task: Task) -> dict[str, object]:
    request = task.data if isinstance(task.data, dict) else {}
    if "cancel" in request:
        return {"cancelled": request["cancel"], "because": request.get("because")}
    return {"booking": f"flight to {request.get('city')}"}


@hotels
def hotel(task: Task) -> dict[str, object]:
    request = task.data if isinstance(task.data, dict) else {}
    raise AgentError(f"There is no room left in {request.get('city')}.")


if __name__ == "__main__":
    agent = {"flights": flights, "hotels": hotels}[sys.argv[1]]
    agent.run(port=int(sys.argv[2]))
