"""A zone whose module and handlers write where they should not, for a process that is spoken to in lines."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

from trunkline.jsontypes import JsonObject
from trunkline.zones import Zone

sys.stdout.write("imported\n")
zone = Zone("chatty", accept_after=30.0, max_body_bytes=10_000)


@zone.method("execute_task")
def execute_task(params: JsonObject) -> JsonObject:
    sys.stdout.write("a print\n")
    os.write(1, b"a library\n")
    subprocess.run(["cat"], check=True)
    subprocess.run(["echo", "a program"], check=True)
    return {"params": params}


@zone.method("wait")
async def wait(params: JsonObject) -> JsonObject:
    """Until there is such a file."""
    while not Path(str(params["file"])).exists():
        await asyncio.sleep(0.01)
    return {"params": params}
