"""
A weather agent written with the agent kit: one function, at one address for every protocol.

    {"text": "Rome", "days": 2}   ->  reports its status, then streams its answer
    {"days": 2}                   ->  asks for the city first
    {"text": "Atlantis"}          ->  fails with an error message
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator

from trunkline.agentkit import Agent, AgentError, Message, Question, Status, Task

PORT = int(sys.argv[1]) if len(sys.argv) > 1 else 8080

SKIES = {"Rome": ("sunny", "clear"), "Oslo": ("snowy", "grey")}

agent = Agent("Forecaster", description="Forecasts the weather in a city.")


@agent
async def forecast(task: Task) -> AsyncGenerator[object, Message]:
    request = task.data if isinstance(task.data, dict) else {"text": task.text}
    city = request.get("text")
    if not city:
        reply = yield Question("Which city?")
        city = reply.text
    yield Status(f"Looking at the sky over {city}")
    skies = SKIES.get(str(city))
    if skies is None:
        raise AgentError(f"No station in {city}. There are some in {' and '.join(SKIES)}.")
    days = request.get("days", 1)
    yield f"{city}: "
    yield ", ".join(skies[: days if isinstance(days, int) else 1])


if __name__ == "__main__":
    agent.run(port=PORT)
