"""
A zone whose work takes no time: what is left is the price of the contract.

    trunkline zone serve bench.figures.instant_zone:zone
"""

from __future__ import annotations

from bench.harness.job import TEXT
from trunkline.jsontypes import JsonObject
from trunkline.protocols import find_profile
from trunkline.zones import Zone

zone = Zone("bench")


@zone.method("execute_task", params=find_profile("slack").schema)
async def execute_task(params: JsonObject) -> JsonObject:
    return {"status": "success", "response_text": TEXT, "channel": params["channel"]}
