"""Agents written with the kit do everything that is asked of them, in every dialect that they speak."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest
from tests.scenarios.kit_server import served

from trunkline.agentkit import Agent, Task
from trunkline.agents.check_reports import AgentCheckReport, CheckSample
from trunkline.checker import CheckedAgent, Checker, CheckLimits
from trunkline.system_clock import SystemClock
from trunkline.transports.address_policy import AddressPolicy
from trunkline.transports.https import HttpTransport

pytestmark = pytest.mark.anyio

FORECASTER = Path(__file__).parents[2] / "examples/agents/python-kit/agent.py"


@pytest.fixture(scope="module")
async def url() -> AsyncGenerator[str]:
    agent = Agent("Kit", description="Says what it heard.")

    @agent
    async def answer(task: Task) -> dict[str, str]:  # pyright: ignore[reportUnusedFunction] - the agent calls it
        return {"result": f"Processed: {task.text}"}

    async with served(agent) as address:
        yield address


@pytest.fixture(scope="module")
async def forecaster() -> AsyncGenerator[str]:
    """The example, which knows two cities and nothing else."""
    with pytest.MonkeyPatch.context() as patch:
        # Its own arguments, not those of the tests.
        patch.setattr(sys, "argv", [str(FORECASTER)])
        found: dict[str, Any] = run_path(str(FORECASTER))
    async with served(found["agent"]) as address:
        yield address


@pytest.mark.parametrize("protocol", ["simple-a2a", "jsonrpc-2.0", "a2a-0.2", "a2a-0.3", "a2a-1.0", "auto"])
async def test_the_kit_gets_an_a(url: str, protocol: str) -> None:
    report = await check(CheckedAgent(url=url, protocol=protocol))
    assert [(found.id, found.seen) for found in report.findings if found.verdict != "passed"] == []
    assert report.grade == "A"


async def test_an_agent_that_cannot_do_what_it_is_asked_makes_no_mistake_of_form(forecaster: str) -> None:
    report = await check(CheckedAgent(url=forecaster, protocol="jsonrpc-2.0"))
    assert report.failures() == []
    (state,) = [found for found in report.findings if found.id == "result-state"]
    assert (state.verdict, "--input" in state.seen) == ("skipped", True)


@pytest.mark.parametrize("protocol", ["simple-a2a", "jsonrpc-2.0", "a2a-0.3", "a2a-1.0"])
async def test_an_agent_for_one_thing_is_given_that(forecaster: str, protocol: str) -> None:
    sample = CheckSample(input={"text": "Rome", "days": 2}, text="Rome")
    report = await check(CheckedAgent(url=forecaster, protocol=protocol, sample=sample))
    assert report.failures() == []
    assert {found.id for found in report.findings if found.verdict == "skipped"} <= {"input-unicode"}


async def check(subject: CheckedAgent) -> AgentCheckReport:
    async with HttpTransport(AddressPolicy(allow_loopback=True)) as transport:
        checker = Checker(transport, SystemClock(), CheckLimits(request_seconds=30.0))
        return await checker.check(subject, active=True)
