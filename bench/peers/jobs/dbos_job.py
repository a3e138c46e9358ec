"""
The job as a workflow of DBOS: each call is a step.

    python -m bench.peers.jobs.dbos_job AGENT_URL DATABASE_URL
"""
# The library is in another environment.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUntypedFunctionDecorator=false

from __future__ import annotations

import sys

import uvloop
from dbos import DBOS, DBOSConfig

from bench.harness.job import STEPS, TEXT
from bench.harness.load import take_orders
from bench.peers.jobs.agent_call import AgentCaller, agent_caller, check_text

_caller: AgentCaller | None = None


@DBOS.step()
async def call_agent(text: str) -> str:
    assert _caller is not None
    return await _caller.call(text)


@DBOS.workflow()
async def job(text: str) -> str:
    for _ in range(STEPS):
        text = await call_agent(text)
    return text


async def _run_workflow() -> None:
    check_text(await job(TEXT))


async def _main(agent_url: str) -> None:
    global _caller
    async with agent_caller(agent_url) as _caller:
        await take_orders(lambda _: _run_workflow)


if __name__ == "__main__":
    config: DBOSConfig = {"name": "bench", "system_database_url": sys.argv[2], "log_level": "WARNING"}
    DBOS(config=config)
    DBOS.launch()
    try:
        uvloop.run(_main(sys.argv[1]))
    finally:
        DBOS.destroy()
