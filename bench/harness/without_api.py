"""
Trunkline without its API, in a worker process: what the API costs is the difference.

    python -m bench.harness.without_api AGENT_URL DATA [--sync-delay SECONDS]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import apsw
import msgspec
import uvloop

from bench.harness.job import AGENT, DEFINITION, RUN_INPUT, WORKFLOW
from bench.harness.load import take_orders
from trunkline.api.services import Services
from trunkline.services.agents.registry import AgentSpec
from trunkline.serving import tune_garbage_collector
from trunkline.settings import load_settings
from trunkline.telemetry.logs import configure_logs
from trunkline.wiring import open_system

# By its name: the slow one becomes the default.
_DISK = "unix"


class _SlowFile(apsw.VFSFile):
    """A file whose every sync takes a given time longer."""

    def __init__(self, filename: str, flags: list[int], delay: float) -> None:
        super().__init__(_DISK, filename, flags)
        self._delay = delay

    def xSync(self, flags: int) -> None:  # noqa: N802 - the driver's name
        time.sleep(self._delay)
        super().xSync(flags)


class SlowDisk(apsw.VFS):
    def __init__(self, delay: float) -> None:
        super().__init__("slow-disk", _DISK, makedefault=True)
        self._delay = delay

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - as above
        return _SlowFile(name, flags, self._delay)  # pyright: ignore[reportArgumentType] - taken as it is given


async def _execute(services: Services, run_input: object) -> None:
    started = await services.runs.execute(WORKFLOW, None, run_input, correlation_id="bench")  # pyright: ignore[reportArgumentType] - JSON
    if not await services.run_queries.wait(started.run_id, 30):
        raise RuntimeError("The run did not end in 30 s.")


async def _main(agent_url: str, data: Path) -> None:
    async with open_system(load_settings({"data": data})) as system:
        services = system.api
        await services.registry.create(AgentSpec(name=AGENT, url=agent_url, protocol="jsonrpc-2.0"))
        await services.workflows.save(DEFINITION.encode())
        # As the server does it when it is ready: otherwise this would pay for the collector instead of the API.
        tune_garbage_collector()

        def slot(number: int) -> Callable[[], Awaitable[None]]:
            del number
            # Decoded for each run, as the API does it.
            return lambda: _execute(services, msgspec.json.decode(RUN_INPUT))

        await take_orders(slot)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("agent_url")
    parser.add_argument("data", type=Path)
    parser.add_argument("--sync-delay", type=float, default=None)
    options = parser.parse_args()
    disk = None if options.sync_delay is None else SlowDisk(options.sync_delay)
    configure_logs("info", "json")
    uvloop.run(_main(options.agent_url, options.data))
    del disk


if __name__ == "__main__":
    main()
