"""An agent of the kit, behind a real server on a free port of this machine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager

import uvicorn

from trunkline.agentkit import Agent


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Signals are for the tests."""
        yield


@asynccontextmanager
async def served(agent: Agent) -> AsyncGenerator[str]:
    """Its address, as long as it is served."""
    config = uvicorn.Config(
        agent, host="127.0.0.1", port=0, log_config=None, lifespan="on", timeout_graceful_shutdown=1
    )
    server = _Server(config)
    serving = asyncio.create_task(server.serve())
    try:
        while not server.started:
            assert not serving.done(), serving.result()
            await asyncio.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}/agent"
    finally:
        server.should_exit = True
        await serving
