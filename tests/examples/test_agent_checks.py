"""The examples do everything that the checker asks for, and only the lack of a card keeps a question open."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.examples.processes import Side

from trunkline.checker import CheckedAgent, Checker, CheckLimits
from trunkline.system_clock import SystemClock
from trunkline.transports.address_policy import AddressPolicy
from trunkline.transports.https import HttpTransport

pytestmark = pytest.mark.anyio

PATIENT = CheckLimits(request_seconds=30.0)


@pytest.mark.parametrize(("side", "protocol"), [("before", "simple-a2a"), ("after", "jsonrpc-2.0")])
async def test_the_checker_finds_nothing(url_of: Callable[[Side], str], side: Side, protocol: str) -> None:
    async with HttpTransport(AddressPolicy(allow_loopback=True)) as transport:
        checker = Checker(transport, SystemClock(), PATIENT)
        report = await checker.check(CheckedAgent(url=url_of(side)), active=True)
    assert [found.id for found in report.findings if found.verdict != "passed"] == ["card-readable"]
    assert (report.grade, report.protocol) == ("A", protocol)
