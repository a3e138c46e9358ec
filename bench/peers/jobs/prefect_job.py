"""
The job as a flow of Prefect: each call is a task whose result is kept. The server is another process.

    PREFECT_API_URL=http://... python -m bench.peers.jobs.prefect_job AGENT_URL
"""
# The library is in another environment.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUntypedFunctionDecorator=false

from __future__ import annotations

import sys

import uvloop
from prefect import flow, task

from bench.harness.job import STEPS, TEXT
from bench.harness.load import take_orders
from bench.peers.jobs.agent_call import AgentCaller, agent_caller, check_text

_caller: AgentCaller | None = None


@task(persist_result=True)
async def call_agent(text: str) -> str:
    assert _caller is not None
    return await _caller.call(text)


@flow(persist_result=True, log_prints=False)
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
    uvloop.run(_main(sys.argv[1]))
