"""
The job as a workflow of Temporal: each call is an activity. The dev server is another process.

    python -m bench.peers.jobs.temporal_job AGENT_URL SERVER_ADDRESS
"""
# The library is in another environment.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUntypedFunctionDecorator=false, reportUntypedClassDecorator=false, reportUnknownArgumentType=false

from __future__ import annotations

import asyncio
import sys
import uuid
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from bench.harness.job import STEPS, TEXT
from bench.harness.load import take_orders
from bench.peers.jobs.agent_call import AgentCaller, agent_caller, check_text

_QUEUE = "bench"
_caller: AgentCaller | None = None


@activity.defn
async def call_agent(text: str) -> str:
    assert _caller is not None
    return await _caller.call(text)


@workflow.defn
class Job:
    @workflow.run
    async def run(self, text: str) -> str:
        for _ in range(STEPS):
            text = await workflow.execute_activity(
                call_agent, text, start_to_close_timeout=timedelta(seconds=30)
            )
        return text


async def _main(agent_url: str, address: str) -> None:
    global _caller
    client = await Client.connect(address)
    worker = Worker(
        client,
        task_queue=_QUEUE,
        workflows=[Job],
        activities=[call_agent],
        workflow_runner=UnsandboxedWorkflowRunner(),
    )
    async with agent_caller(agent_url) as _caller, worker:

        async def run_workflow() -> None:
            check_text(await client.execute_workflow(Job.run, TEXT, id=str(uuid.uuid4()), task_queue=_QUEUE))

        await take_orders(lambda _: run_workflow)


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], sys.argv[2]))
