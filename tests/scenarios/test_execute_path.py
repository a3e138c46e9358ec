"""ARCHITECTURE.md follows one `execute` through the files that matter: each of them runs."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

import pytest
from tests.public.test_architecture import SOURCE, table_paths

from trunkline.testing import RunningSystem, ScriptedAgent, simple_success

pytestmark = [pytest.mark.anyio, pytest.mark.embedded_only]

WORKFLOW = "one-call"


@contextmanager
def files_that_run(found: dict[str, None]) -> Generator[None]:
    """The files of the package in the order in which this thread enters them."""

    def enter(frame: FrameType, event: str, argument: object) -> None:
        del argument
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(f"{SOURCE}/"):
            found[path[len(f"{SOURCE}/") :]] = None

    before = sys.getprofile()
    sys.setprofile(enter)
    try:
        yield
    finally:
        sys.setprofile(before)


async def test_a_run_passes_through_the_documented_files(system: RunningSystem) -> None:
    async with ScriptedAgent(simple_success({"text": "done"})) as agent:
        await system.register("Worker", agent.url, protocol="simple-a2a")
        await system.save(
            {"name": WORKFLOW, "steps": {"work": {"agent": "Worker", "input": {"q": "${ input.q }"}}}}
        )
        found: dict[str, None] = {}
        with files_that_run(found):
            answer = await system.call("POST", f"/workflows/{WORKFLOW}/execute?wait=30", {"q": "x"})
    assert answer.json["status"] == "COMPLETED"
    documented = table_paths("One execute, file by file")
    assert [path for path in documented if path not in found] == []
