"""Every defect is found by the one finding that names it; agents without defects pass."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest
from tests.checker.broken_agents import AgentServer, broken_agents
from tests.checker.defects import DEFECTS, WARNED, Defect
from tests.checker.good_agents import GOOD

from trunkline.agents.check_reports import AgentCheckReport
from trunkline.checker import CHECKS, CheckedAgent, Checker, CheckLimits
from trunkline.system_clock import SystemClock
from trunkline.transports.address_policy import AddressPolicy
from trunkline.transports.base import Transport
from trunkline.transports.https import HttpTransport

pytestmark = pytest.mark.anyio

# More than any agent here takes, but for the one that hangs.
LONG_LIMITS = CheckLimits(request_seconds=30.0)
SHORT_LIMITS = CheckLimits(request_seconds=0.5, most_timeouts=1)
MOST_ANSWER_BYTES = 256 * 1024


@pytest.fixture(scope="module")
async def server() -> AsyncGenerator[AgentServer]:
    async with broken_agents() as running:
        yield running


@pytest.fixture(scope="module")
async def transport() -> AsyncGenerator[Transport]:
    policy = AddressPolicy(allow_loopback=True)
    async with HttpTransport(policy, max_answer_bytes=MOST_ANSWER_BYTES) as opened:
        yield opened


@pytest.fixture(scope="module")
def checker(transport: Transport) -> Checker:
    return Checker(transport, SystemClock(), LONG_LIMITS)


async def check(checker: Checker, server: AgentServer, name: str, defect: Defect) -> AgentCheckReport:
    subject = CheckedAgent(url=server.agent(name), protocol=defect.asked_for or defect.protocol)
    return await checker.check(subject, active=defect.active)


@pytest.mark.parametrize("name", [name for name in DEFECTS if name != "hangs"])
async def test_a_defect_fails_by_the_finding_that_names_it(
    checker: Checker, server: AgentServer, name: str
) -> None:
    defect = DEFECTS[name]
    report = await check(checker, server, name, defect)
    failures = {found.id: found for found in report.failures()}
    # What the bridge would have said of it is told, too.
    assert failures.keys() - {"works-in-workflow"} <= {defect.found_by}, report.failures()
    assert not report.passed
    found = failures[defect.found_by]
    assert found.seen
    assert found.evidence
    if defect.issue is not None:
        assert f"#issue-{defect.issue}-" in found.guide


async def test_nothing_that_needs_an_answer_passes_without_one(checker: Checker, server: AgentServer) -> None:
    name = "every-request-crashes-it"
    report = await check(checker, server, name, DEFECTS[name])
    passed = {found.id for found in report.findings if found.verdict == "passed"}
    groups = {CHECKS[id_].group for id_ in passed - {"json-plain"}}
    assert groups == {"Transport"}
    assert [found.seen for found in report.findings if "--active" in found.seen] == []


async def test_an_agent_that_hangs_is_found_out_and_left_alone(
    transport: Transport, server: AgentServer
) -> None:
    report = await check(Checker(transport, SystemClock(), SHORT_LIMITS), server, "hangs", DEFECTS["hangs"])
    assert [found.id for found in report.failures()] == ["answers-in-time"]
    # It hangs at the last but two, and is not asked those.
    assert "batch-answered" in {found.id for found in report.findings if found.verdict == "skipped"}


@pytest.mark.parametrize("name", WARNED)
async def test_what_is_recommended_only_is_a_warning(
    checker: Checker, server: AgentServer, name: str
) -> None:
    report = await check(checker, server, name, WARNED[name])
    assert report.failures() == []
    warnings = [found.id for found in report.findings if found.verdict == "warning"]
    assert warnings == [WARNED[name].found_by]
    assert (report.passed, report.grade) == (True, "B")


@pytest.mark.parametrize("active", [False, True], ids=["passive", "active"])
@pytest.mark.parametrize("protocol", GOOD)
async def test_an_agent_without_defects_passes(
    checker: Checker, server: AgentServer, protocol: str, *, active: bool
) -> None:
    report = await checker.check(
        CheckedAgent(url=server.agent(f"good-{protocol}"), protocol=protocol), active=active
    )
    wrong = [(found.id, found.seen) for found in report.findings if found.verdict in ("failed", "warning")]
    assert wrong == []
    assert (report.passed, report.grade) == (True, "A")


@pytest.mark.parametrize("protocol", GOOD)
async def test_what_an_agent_speaks_is_found_out(
    checker: Checker, server: AgentServer, protocol: str
) -> None:
    report = await checker.check(CheckedAgent(url=server.agent(f"good-{protocol}")))
    assert (report.protocol, report.grade) == (protocol, "A")


async def test_without_active_no_message_is_sent(checker: Checker, server: AgentServer) -> None:
    for protocol in GOOD:
        before = len(server.asked.get(f"good-{protocol}", []))
        await checker.check(CheckedAgent(url=server.agent(f"good-{protocol}"), protocol=protocol))
        asked = server.asked[f"good-{protocol}"][before:]
        assert asked
        assert [request for request in asked if request.text or "input" in request.object] == []


async def test_an_agent_that_is_not_there_fails_and_is_left_alone(checker: Checker) -> None:
    report = await checker.check(CheckedAgent(url="http://127.0.0.1:1/agent", protocol="jsonrpc-2.0"))
    assert [found.id for found in report.failures()] == ["reachable"]
    assert report.grade == "F"


def test_there_are_forty_defects_and_all_eight_issues_among_them() -> None:
    assert len(DEFECTS) >= 40
    assert {defect.issue for defect in DEFECTS.values()} >= set(range(1, 9))


def test_every_check_has_an_agent_that_does_not_pass_it() -> None:
    found = {defect.found_by for defect in (*DEFECTS.values(), *WARNED.values())}
    # The first needs no server.
    assert CHECKS.keys() - found == {"reachable", "method-required"}
