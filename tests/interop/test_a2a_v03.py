"""Trunkline against an agent made with the A2A project's own SDK, found out by its card."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest

from trunkline.testing import RunningSystem, running_system
from trunkline.testing.system import step_of

pytestmark = pytest.mark.anyio

WORKFLOW = """
name: talk
steps:
  first: {agent: Parrot, input: {text: "${ input.words }"}}
output: ${ steps.first.output.text }
"""


@pytest.fixture(scope="module")
def parrot() -> Generator[str]:
    program = Path(__file__).with_name("a2a_v03_server.py")
    with subprocess.Popen([sys.executable, str(program)], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.kill()


@pytest.fixture
async def system(tmp_path: Path, parrot: str) -> AsyncGenerator[RunningSystem]:
    async with running_system(tmp_path / "data") as running:
        await running.register("Parrot", parrot)
        await running.save(WORKFLOW)
        yield running


async def test_the_card_tells_the_dialect_and_the_artifact_is_the_output(system: RunningSystem) -> None:
    run = await system.run("talk", {"words": "good morning"})
    assert run["status"] == "COMPLETED", run["error"]
    assert run["output"] == "Heard: good morning"
    assert step_of(run, "first")["protocol"] == "jsonrpc-2.0"
    agent = (await system.call("GET", "/agents/Parrot")).json
    assert isinstance(agent["dialect"], dict)
    assert "card" in str(agent["dialect"]["evidence"])


async def test_a_direct_message_is_an_answer_too(system: RunningSystem) -> None:
    run = await system.run("talk", {"words": "say: just this"})
    assert run["status"] == "COMPLETED", run["error"]
    output = step_of(run, "first")["output"]
    assert isinstance(output, dict)
    assert "just this" in (output.get("text"), output.get("response"))


async def test_a_failed_task_fails_the_step_with_the_agents_words(system: RunningSystem) -> None:
    run = await system.run("talk", {"words": "fail: no ink left"})
    assert run["status"] == "FAILED"
    assert isinstance(run["error"], dict)
    assert str(run["error"]["message"]).startswith("Task state: failed")
    assert "no ink left" in str(run["error"]["message"])


async def test_a_question_is_answered_on_the_same_task_and_context(system: RunningSystem) -> None:
    run_id = await system.start("talk", {"words": "ask: which city?"})
    waiting = await system.wait_for(run_id, {"WAITING", "FAILED", "COMPLETED"})
    waiting_for = step_of(waiting, "first")["waiting_for"]
    assert isinstance(waiting_for, dict)
    assert waiting_for["text"] == "which city?"
    await system.call("POST", f"/runs/{run_id}/steps/first/reply", {"text": "Rome"})
    run = await system.wait_for(run_id)
    assert run["status"] == "COMPLETED", run["error"]
    assert run["output"] == "Heard: Rome"


async def test_a_waiting_task_is_cancelled_at_the_agent(system: RunningSystem) -> None:
    run_id = await system.start("talk", {"words": "ask: which city?"})
    await system.wait_for(run_id, {"WAITING"})
    await system.call("POST", f"/runs/{run_id}/cancel")
    run = await system.wait_for(run_id)
    assert run["status"] == "CANCELLED"
