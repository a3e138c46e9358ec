"""
The zone that every transport is tried with: `trunkline zone serve served_zone:zone` in this folder.

It writes down what has reached it and what it has answered, before the answer leaves, in the file that ZONE_RECORD
names.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter

from trunkline.jsontypes import JsonObject, encode
from trunkline.protocols.zone.params_profiles import find_profile
from trunkline.zones import Zone, ZoneFault
from trunkline.zones.access.policy import ANYBODY, ZoneCaller
from trunkline.zones.jsonrpc import ZoneReply


class RecordedZone(Zone):
    asked = asyncio.Event()

    async def answer(self, body: bytes, caller: ZoneCaller = ANYBODY) -> ZoneReply:
        reply = await super().answer(body, caller)
        line = encode([body.decode("latin-1"), reply.body.decode("latin-1")]) + b"\n"
        record = os.open(os.environ["ZONE_RECORD"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(record, line)
        os.close(record)
        if b'"get_task_result"' in body:
            self.asked.set()
        return reply


zone = RecordedZone("contract", accept_after=0.5)
runs: Counter[str] = Counter()
waiting: dict[str, list[asyncio.Event]] = {}

TEXT: JsonObject = {
    "type": "object",
    "required": ["text"],
    "properties": {"text": {"type": "string"}, "times": {"type": "integer", "minimum": 1}},
}


@zone.method("execute_task", params=TEXT)
async def execute_task(params: JsonObject) -> JsonObject:
    text = str(params["text"])
    runs[text] += 1
    return {"response_text": f"did {text}", "runs": runs[text]}


@zone.method("slow")
async def slow(params: JsonObject) -> JsonObject:
    """Ends when it has been asked for once."""
    zone.asked.clear()
    await zone.asked.wait()
    return {"response_text": f"did {params['text']} at last"}


@zone.method("slow_failure")
async def slow_failure(params: JsonObject) -> JsonObject:
    zone.asked.clear()
    await zone.asked.wait()
    raise ZoneFault(-32050, "The printer is out of paper.", {"printer": params["text"]})


@zone.method("fail")
async def fail(params: JsonObject) -> JsonObject:
    raise ZoneFault(-32050, "The printer is out of paper.", {"printer": params["text"]})


@zone.method("crash")
async def crash(params: JsonObject) -> JsonObject:
    raise RuntimeError(f"a bug with {params['text']}")


@zone.method("late", deadline=0.1)
async def late(params: JsonObject) -> JsonObject:
    await asyncio.Event().wait()
    return params


@zone.method("post", params=find_profile("slack").schema)
async def post(params: JsonObject) -> JsonObject:
    return {
        "response_text": f"posted to {params['channel']}",
        "attachments": len(str(params.get("attachments", ""))),
    }


@zone.method("meet")
async def meet(params: JsonObject) -> JsonObject:
    """Ends when three are there, the last one first."""
    others = waiting.setdefault(str(params["place"]), [])
    mine = asyncio.Event()
    others.append(mine)
    if len(others) == 3:
        mine.set()
    await mine.wait()
    others.remove(mine)
    if others:
        others[-1].set()
    return {"response_text": f"{params['text']} was there"}
