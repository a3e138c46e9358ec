"""The example that cancels a flight because there is no room, as its README describes it."""

from __future__ import annotations

import signal
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from deploy.local.ports import free_port
from deploy.local.processes import ServiceProcess

from trunkline.testing import running_system

pytestmark = pytest.mark.anyio

FOLDER = Path(__file__).parents[2] / "examples" / "book-flight-and-hotel"


@pytest.fixture
def addresses(tmp_path: Path) -> Generator[dict[str, str]]:
    running: dict[str, tuple[int, ServiceProcess]] = {}
    for name in ("flights", "hotels"):
        port = free_port()
        command = [sys.executable, str(FOLDER / "agents.py"), name, str(port)]
        running[name] = port, ServiceProcess(command, tmp_path / f"{name}.log")
    for name, (port, process) in running.items():
        process.wait_until(lambda log=process.log, port=port: str(port) in log.read_text(), 30.0, name)
    yield {name: f"http://127.0.0.1:{port}" for name, (port, _) in running.items()}
    for _, process in running.values():
        process.end(signal.SIGTERM, 30.0)


async def test_the_flight_is_cancelled_because_there_is_no_room(
    tmp_path: Path, addresses: dict[str, str]
) -> None:
    async with running_system(tmp_path / "data") as system:
        await system.register("Flights", addresses["flights"])
        await system.register("Hotels", addresses["hotels"])
        await system.save((FOLDER / "workflow.yaml").read_text())
        run = await system.run("book-flight-and-hotel", {"city": "Oslo"})
    compensation = run["compensation"]
    assert isinstance(compensation, dict)
    assert isinstance(compensation["steps"], list)
    (undo,) = compensation["steps"]
    assert isinstance(undo, dict)
    assert isinstance(undo["output"], dict)
    assert (run["status"], compensation["status"], undo["name"]) == (
        "FAILED",
        "COMPLETED",
        "compensate:flight",
    )
    assert undo["output"]["data"] == {
        "cancelled": "flight to Oslo",
        "because": "Task state: failed: There is no room left in Oslo.",
    }
