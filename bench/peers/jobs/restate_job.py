"""
The job as a handler of Restate: each call is a durable side effect. The server is another process.

Serves the handler, registers it with the server, and calls it through the server's ingress.

    python -m bench.peers.jobs.restate_job AGENT_URL ADMIN_URL INGRESS_URL PORT
"""
# The library is in another environment.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUntypedFunctionDecorator=false, reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import asyncio
import sys

import aiohttp
import restate
import uvloop
from hypercorn.asyncio import serve
from hypercorn.config import Config

from bench.harness.job import STEPS, TEXT
from bench.harness.load import take_orders
from bench.peers.jobs.agent_call import AgentCaller, agent_caller, check_text

_caller: AgentCaller | None = None
_service = restate.Service("bench")


@_service.handler()
async def job(context: restate.Context, text: str) -> str:
    assert _caller is not None
    for number in range(STEPS):
        text = await context.run_typed(f"call {number}", _caller.call, text=text)
    return text


async def _register(session: aiohttp.ClientSession, admin_url: str, port: int) -> None:
    """The handler's server may not listen yet when it is registered; the admin API tries it itself."""
    deployment = {"uri": f"http://127.0.0.1:{port}"}
    async with session.post(f"{admin_url}/deployments", json=deployment) as response:
        if response.status >= 300:
            raise RuntimeError(f"HTTP {response.status}: {await response.text()}")


async def _main(agent_url: str, admin_url: str, ingress_url: str, port: int) -> None:
    global _caller
    config = Config()
    config.bind = [f"127.0.0.1:{port}"]
    stopped = asyncio.Event()
    async with (
        agent_caller(agent_url) as _caller,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session,
        asyncio.TaskGroup() as group,
    ):
        # Hypercorn, because the server speaks HTTP/2 with its handlers.
        group.create_task(serve(restate.app([_service]), config, shutdown_trigger=stopped.wait))
        await _register(session, admin_url, port)

        async def run_workflow() -> None:
            async with session.post(f"{ingress_url}/bench/job", json=TEXT) as response:
                check_text(await response.json())

        await take_orders(lambda _: run_workflow)
        stopped.set()


if __name__ == "__main__":
    uvloop.run(_main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
