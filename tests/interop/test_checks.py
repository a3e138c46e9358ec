"""Agents of other people's frameworks pass the check, in whatever their cards say that they speak."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest
from tests.interop.agents import Agent

from trunkline.agents.check_reports import AgentCheckReport
from trunkline.checker import CheckedAgent, Checker, CheckLimits
from trunkline.system_clock import SystemClock
from trunkline.transports.address_policy import AddressPolicy
from trunkline.transports.base import Transport
from trunkline.transports.https import HttpTransport

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def transport() -> AsyncGenerator[Transport]:
    async with HttpTransport(AddressPolicy(allow_loopback=True)) as opened:
        yield opened


def failures(report: AgentCheckReport) -> list[tuple[str, str]]:
    return [(found.id, found.seen) for found in report.failures()]


@pytest.mark.parametrize("active", [False, True], ids=["passive", "active"])
async def test_a_real_agent_passes(transport: Transport, agent: Agent, *, active: bool) -> None:
    checker = Checker(transport, SystemClock(), CheckLimits(request_seconds=60.0))
    report = await checker.check(CheckedAgent(url=agent.url), active=active)
    assert failures(report) == []
    assert report.protocol == agent.kind.dialect
    # What is executed without a message has no text; whoever else uses this agent always says something.
    assert agent.executions("") == []
