"""The example that writes until the review is good, as its README describes it."""

from __future__ import annotations

import signal
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from deploy.local.ports import free_port
from deploy.local.processes import ServiceProcess

from trunkline.testing import running_system
from trunkline.testing.system import step_of

pytestmark = pytest.mark.anyio

FOLDER = Path(__file__).parents[2] / "examples" / "write-and-review"


@pytest.fixture
def addresses(tmp_path: Path) -> Generator[dict[str, str]]:
    running: dict[str, tuple[int, ServiceProcess]] = {}
    for name in ("writer", "reviewer"):
        port = free_port()
        command = [sys.executable, str(FOLDER / "agents.py"), name, str(port)]
        running[name] = port, ServiceProcess(command, tmp_path / f"{name}.log")
    for name, (port, process) in running.items():
        process.wait_until(lambda log=process.log, port=port: str(port) in log.read_text(), 30.0, name)
    yield {name: f"http://127.0.0.1:{port}" for name, (port, _) in running.items()}
    for _, process in running.values():
        process.end(signal.SIGTERM, 30.0)


async def test_a_text_is_improved_until_its_review_is_good(tmp_path: Path, addresses: dict[str, str]) -> None:
    async with running_system(tmp_path / "data") as system:
        await system.register("Writer", addresses["writer"])
        await system.register("Reviewer", addresses["reviewer"])
        await system.save((FOLDER / "workflow.yaml").read_text())
        run = await system.run("write-and-review", {"topic": "Owls"})
    assert (run["status"], run["output"]) == ("COMPLETED", "Owls, with detail 1, with detail 2")
    assert step_of(run, "write")["round"] == 3
