"""The examples do everything that the checker asks for; the guide's own agents do what Trunkline needs of them."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from deploy.local.ports import free_port
from deploy.local.processes import ServiceProcess
from tests.examples.processes import GUIDE_AGENTS, Side
from tests.services import shared

from trunkline.agents.check_reports import AgentCheckReport
from trunkline.checker import CheckedAgent, Checker, CheckLimits
from trunkline.cli.exit_codes import Exit
from trunkline.jsontypes import JsonObject
from trunkline.system_clock import SystemClock
from trunkline.transports.address_policy import AddressPolicy
from trunkline.transports.https import HttpTransport

pytestmark = pytest.mark.anyio

LONG_LIMITS = CheckLimits(request_seconds=30.0)


@pytest.mark.parametrize(("side", "protocol"), [("before", "simple-a2a"), ("after", "jsonrpc-2.0")])
async def test_the_checker_finds_nothing(url_of: Callable[[Side], str], side: Side, protocol: str) -> None:
    async with HttpTransport(AddressPolicy(allow_loopback=True)) as transport:
        checker = Checker(transport, SystemClock(), LONG_LIMITS)
        report = await checker.check(CheckedAgent(url=url_of(side)), active=True)
    assert [found.id for found in report.findings if found.verdict != "passed"] == ["card-readable"]
    assert (report.grade, report.protocol) == ("A", protocol)


async def check(subject: CheckedAgent, *, active: bool) -> AgentCheckReport:
    async with HttpTransport(AddressPolicy(allow_loopback=True)) as transport:
        return await Checker(transport, SystemClock(), LONG_LIMITS).check(subject, active=active)


def verdicts(report: AgentCheckReport) -> dict[str, str]:
    return {found.id: found.verdict for found in report.findings}


@pytest.mark.parametrize(("side", "protocol"), [("before", "simple-a2a"), ("after", "jsonrpc-2.0")])
@pytest.mark.parametrize("name", GUIDE_AGENTS)
async def test_the_guides_own_agents_pass_without_messages(
    request: pytest.FixtureRequest, name: str, side: Side, protocol: str
) -> None:
    url = str(shared(name, request.config)[side])
    report = await check(CheckedAgent(url=url, protocol=protocol), active=False)
    assert report.failures() == []
    assert report.passed
    # How they reject requests that Trunkline never sends is told all the same.
    assert "warning" in verdicts(report).values()


@pytest.mark.parametrize("name", ["guide-python", "guide-node"])
async def test_the_guides_own_agents_pass_with_messages(request: pytest.FixtureRequest, name: str) -> None:
    url = str(shared(name, request.config)["after"])
    subject = CheckedAgent(url=url, protocol="jsonrpc-2.0", protocol_config={"input_mode": "json"})
    report = await check(subject, active=True)
    assert report.failures() == []
    assert verdicts(report)["works-in-workflow"] == "passed"
    assert (verdicts(report)["input-form"], report.input_modes) == ("passed", ["json"])


@pytest.mark.parametrize("name", GUIDE_AGENTS)
async def test_an_agent_that_would_miss_its_input_is_found_out(
    request: pytest.FixtureRequest, name: str
) -> None:
    url = str(shared(name, request.config)["after"])
    cases: list[tuple[JsonObject, str]] = [({}, "warning"), ({"input_mode": "text"}, "failed")]
    for config, verdict in cases:
        subject = CheckedAgent(url=url, protocol="jsonrpc-2.0", protocol_config=config)
        report = await check(subject, active=True)
        (found,) = [finding for finding in report.findings if finding.id == "input-form"]
        assert (found.verdict, report.input_modes) == (verdict, ["json"])
        assert "whole input as JSON text (input_mode: json), but not" in found.seen


async def test_a_failure_does_not_hide_that_the_agent_works_in_a_workflow(
    request: pytest.FixtureRequest,
) -> None:
    """The guide's agent in Go crashes when a text is not the JSON that it expects."""
    url = str(shared("guide-go", request.config)["after"])
    subject = CheckedAgent(url=url, protocol="jsonrpc-2.0", protocol_config={"input_mode": "json"})
    report = await check(subject, active=True)
    assert [found.id for found in report.failures()] == ["answers-whole"]
    assert verdicts(report)["works-in-workflow"] == "passed"
    # What has to be done comes first.
    ordered = [("failed", "warning", "passed", "skipped").index(found.verdict) for found in report.findings]
    assert ordered == sorted(ordered)


@pytest.fixture
def first_agent(tmp_path: Path) -> Generator[str]:
    """The agent of the README, which answers only what it can work on."""
    program = Path(__file__).parents[2] / "examples" / "first-workflow" / "agent.py"
    port = free_port()
    running = ServiceProcess([sys.executable, str(program), str(port)], tmp_path / "agent.log")
    running.wait_until(lambda: "listens" in running.log.read_text(), 30.0, "the first agent")
    yield f"http://127.0.0.1:{port}/agent"
    running.end(signal.SIGTERM, 30.0)


def checked(*arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "trunkline", "agents", "check", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_a_check_that_learns_nothing_has_not_failed(first_agent: str) -> None:
    code, printed = checked(first_agent)
    assert code == Exit.INCONCLUSIVE
    assert "Not enough evidence; run with --active" in printed
    assert "failed:" not in printed
    code, printed = checked(first_agent, "--active", "--input", "text=Ann")
    assert code == Exit.OK, printed
    assert "Grade B" in printed
