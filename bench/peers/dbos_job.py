"""
The job as a workflow of DBOS: three steps, each one POST to the agent.

Runs in the peers' own virtual environment, so it imports nothing of Trunkline.

    python -m bench.peers.dbos_job AGENT_URL DATABASE_URL
"""
# The library is in another environment.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUntypedFunctionDecorator=false

from __future__ import annotations

import sys
import uuid
from collections.abc import Awaitable, Callable

import aiohttp
import msgspec
import uvloop
from dbos import DBOS, DBOSConfig

from bench.harness.job import STEPS, TEXT, request_body
from bench.harness.load import take_orders

_agent_url = ""
_session: aiohttp.ClientSession | None = None


@DBOS.step()
async def call_agent(text: str) -> str:
    assert _session is not None
    body = msgspec.json.encode(request_body(str(uuid.uuid4()), text))
    async with _session.post(_agent_url, data=body) as response:
        answer = msgspec.json.decode(await response.read())
    return answer["result"]["artifacts"][0]["parts"][0]["text"]


@DBOS.workflow()
async def job(text: str) -> str:
    for _ in range(STEPS):
        text = await call_agent(text)
    return text


async def _run_workflow() -> None:
    if await job(TEXT) != TEXT:
        raise RuntimeError("The workflow ended with another text.")


async def _main() -> None:
    global _session
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0), headers={"Content-Type": "application/json"}
    ) as _session:

        def slot(number: int) -> Callable[[], Awaitable[None]]:
            del number
            return _run_workflow

        await take_orders(slot)


if __name__ == "__main__":
    _agent_url = sys.argv[1]
    config: DBOSConfig = {"name": "bench", "system_database_url": sys.argv[2], "log_level": "WARNING"}
    DBOS(config=config)
    DBOS.launch()
    try:
        uvloop.run(_main())
    finally:
        DBOS.destroy()
