"""The example that asks the cheapest translator, with and without that one."""

from __future__ import annotations

import signal
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from deploy.local.ports import free_port
from deploy.local.processes import ServiceProcess

from trunkline.testing import RunningSystem, running_system
from trunkline.testing.system import step_of

pytestmark = pytest.mark.anyio

FOLDER = Path(__file__).parents[2] / "examples" / "cheapest-translator"
COSTS = {"Economy": 0.01, "Premium": 0.05}


class Translators:
    """The example's agents, each in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.processes: dict[str, ServiceProcess] = {}
        self.urls: dict[str, str] = {}
        for name in COSTS:
            port = free_port()
            command = [sys.executable, str(FOLDER / "agents.py"), name.lower(), str(port)]
            process = self.processes[name] = ServiceProcess(command, folder / f"{name}.log")
            process.wait_until(lambda log=process.log, port=port: str(port) in log.read_text(), 30.0, name)
            self.urls[name] = f"http://127.0.0.1:{port}"

    def stop(self, name: str) -> None:
        self.processes.pop(name).end(signal.SIGTERM, 30.0)


@pytest.fixture
def translators(tmp_path: Path) -> Generator[Translators]:
    running = Translators(tmp_path)
    yield running
    for name in list(running.processes):
        running.stop(name)


async def prepare(system: RunningSystem, translators: Translators) -> None:
    for name, cost in COSTS.items():
        await system.register(name, translators.urls[name], skills=["translate"], cost=cost)
    await system.save((FOLDER / "workflow.yaml").read_text())


async def test_the_cheapest_translator_is_asked_and_the_next_one_if_it_is_gone(
    tmp_path: Path, translators: Translators
) -> None:
    async with running_system(tmp_path / "data") as system:
        await prepare(system, translators)
        cheap = await system.run("cheapest-translator", {"text": "The owl loves the night"})
        translators.stop("Economy")
        other = await system.run("cheapest-translator", {"text": "The owl loves the night"})
    assert (step_of(cheap, "translate")["agent"], cheap["output"]) == ("Economy", "die Eule liebt die Nacht")
    step = step_of(other, "translate")
    assert (step["agent"], step["attempts"]) == ("Premium", 1)
    assert other["output"] == "die Eule liebt die Nacht (premium)"
