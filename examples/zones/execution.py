"""
The execution zone: does the work that the verification zone has authorized.

    trunkline zone serve execution:zone --data execution-data
"""

import asyncio

from trunkline.jsontypes import JsonObject
from trunkline.protocols.zone.params_profiles import find_profile
from trunkline.zones import Zone

# Simulates a model at work.
RESEARCH_SECONDS = 3.0

zone = Zone("execution", accept_after=0.5)


@zone.method("execute_task", params=find_profile("slack").schema)
async def execute_task(params: JsonObject) -> JsonObject:
    text = str(params["text"])
    if text.startswith("research "):
        topic = text.removeprefix("research ")
        await asyncio.sleep(RESEARCH_SECONDS)
        return {
            "status": "success",
            "response_text": f"I have looked into {topic}: it is worth a closer look.",
        }
    return {"status": "success", "response_text": f"You said: {text}"}
