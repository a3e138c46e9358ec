"""`trunkline agents check URL`: its exit codes, and the forms in which it prints a report."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Generator
from xml.etree import ElementTree as Xml

import pytest
from tests.checker.broken_agents import AgentServer, broken_agents

from trunkline.agents.check_reports import (
    DEFAULT_SAMPLE,
    AgentCheckReport,
    AgentFinding,
    Evidence,
    EvidenceRequest,
    EvidenceResponse,
    Verdict,
)
from trunkline.checker import PROTOCOLS
from trunkline.checker.check import plan_for
from trunkline.checker.checklist import attestations
from trunkline.checker.dialect_choice import ChosenDialect
from trunkline.cli.app import run_command_line
from trunkline.cli.exit_codes import Exit
from trunkline.cli.rendering.check_junit import junit_xml
from trunkline.cli.rendering.check_markdown import markdown
from trunkline.errors import Invalid


@pytest.fixture(scope="module")
def server() -> Generator[AgentServer]:
    """The agents in a thread of their own: a command has its own loop."""
    started, found = threading.Event(), list[AgentServer]()
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serve() -> None:
        async with broken_agents() as running:
            found.append(running)
            started.set()
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    started.wait()
    yield found[0]
    loop.call_soon_threadsafe(stop.set)
    thread.join()
    loop.close()


def check(server: AgentServer, name: str, *options: str) -> int:
    return run_command_line(["agents", "check", server.agent(name), *options])


def test_an_agent_that_passes_ends_with_0_and_its_grade(
    server: AgentServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(server, "good-jsonrpc-2.0", "--active") == Exit.OK
    printed = capsys.readouterr()
    assert "Grade A: 0 failed, 0 warnings" in printed.out
    assert "Checking http" in printed.err
    assert "agents migrate ready" in printed.err


def test_a_password_in_an_address_is_refused_and_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["agents", "check", "http://ann:open-sesame@127.0.0.1/agent"]) == Exit.INVALID
    printed = capsys.readouterr()
    assert "it contains a user name or password" in printed.err
    assert "open-sesame" not in printed.out + printed.err


def test_a_check_that_fails_ends_with_7_and_says_how_to_mend_it(
    server: AgentServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(server, "state-success", "--active", "--protocol", "jsonrpc-2.0") == Exit.INVALID
    printed = capsys.readouterr().out
    assert "failed: The task state is recognized (result-state)" in printed
    assert "docs/guides/migrating-agents.md#issue-4-status-state-not-recognized" in printed
    assert '"state":"success"' in printed


def test_an_agent_that_is_away_is_a_failed_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["agents", "check", "http://127.0.0.1:1/agent"]) == Exit.INVALID
    assert "failed: The agent can be reached" in capsys.readouterr().out


def test_json_is_the_whole_report(server: AgentServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(server, "ids-are-cut", "--json", "--protocol", "jsonrpc-2.0") == Exit.INVALID
    report = json.loads(capsys.readouterr().out)
    assert (report["grade"], report["passed"], report["protocol"]) == ("D", False, "jsonrpc-2.0")
    (found,) = [finding for finding in report["findings"] if finding["verdict"] == "failed"]
    assert found["id"] == "error-id"
    assert found["seen"].startswith("Response ID mismatch: expected")
    assert found["evidence"][0]["request"]["method"] == "POST"


def test_junit_has_a_case_for_each_check(server: AgentServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(server, "ids-are-cut", "--junit", "--protocol", "jsonrpc-2.0") == Exit.INVALID
    suite = Xml.fromstring(capsys.readouterr().out)[0]  # noqa: S314 - our own
    cases = suite.findall("testcase")
    assert int(suite.attrib["tests"]) == len(cases)
    assert [case.attrib["name"] for case in cases if case.find("failure") is not None] == [
        "error-id: Errors echo the request's id"
    ]
    assert int(suite.attrib["skipped"]) == len([case for case in cases if case.find("skipped") is not None])


def test_markdown_has_the_checklist_of_the_guide(
    server: AgentServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(server, "state-success", "--md", "--active", "--protocol", "jsonrpc-2.0") == Exit.INVALID
    printed = capsys.readouterr().out
    assert '- [ ] Result includes `status.state: "completed"`' in printed
    assert "- [x] Agent handles plain text input data" in printed
    assert "- [ ] Agent works in workflow system\n" in printed


@pytest.mark.parametrize(
    ("options", "told", "code"),
    [
        (("--json", "--junit"), "--json and --junit cannot be combined", Exit.USAGE),
        (("--auth-type", "oauth2", "--auth-env", "CHECK_SECRET"), "needs a server", Exit.USAGE),
        (("--protocol", "carrier-pigeon"), "Choose one of: auto, simple-a2a, jsonrpc-2.0", Exit.USAGE),
        (("--protocol", "a2a-0.1-paths"), "No checks for the protocol a2a-0.1-paths", Exit.USAGE),
        (("--protocol", "jsonrpc-2.0", "--config", "input_mode=telepathy"), "input_mode", Exit.INVALID),
    ],
    ids=["two forms", "a token", "no protocol", "no checks", "no such setting"],
)
def test_what_makes_no_sense_is_refused(
    options: tuple[str, ...],
    told: str,
    code: Exit,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CHECK_SECRET", '{"token_url": "http://a/", "client_id": "a", "client_secret": "b"}')
    assert run_command_line(["agents", "check", "http://127.0.0.1:1/agent", *options]) == code
    printed = capsys.readouterr()
    assert told in printed.err + printed.out


def report_of(body: str, verdict: Verdict = "failed") -> AgentCheckReport:
    evidence = Evidence(
        request=EvidenceRequest(method="POST", url="http://a/"),
        response=EvidenceResponse(status=200, body=body),
        duration_ms=1.0,
    )
    found = AgentFinding(
        id="error-id",
        title="Errors echo the request's id",
        group="Error handling",
        level="required",
        verdict=verdict,
        expected="The id.",
        seen=f"got {body}",
        fix="Echo it.",
        guide="docs/reference/checks.md#error-id",
        evidence=[evidence],
    )
    return AgentCheckReport(
        url="http://a/",
        protocol="jsonrpc-2.0",
        chosen="It was requested.",
        active=False,
        started_at="2026-03-01T12:00:00.000000Z",
        duration_ms=1.0,
        grade="D",
        passed=False,
        findings=[found],
        attestations=attestations("Agent", "All done."),
    )


@pytest.mark.parametrize("verdict", ["failed", "warning", "skipped"])
def test_junit_stays_xml_whatever_an_agent_answers(verdict: Verdict) -> None:
    body = "\x00\x1b[31m ]]> <boom/> & \ufffe \ud800"
    text = junit_xml(report_of(body, verdict)).encode(errors="surrogatepass")
    assert Xml.fromstring(text).tag == "testsuites"  # noqa: S314 - our own


def test_an_answer_cannot_leave_its_block_of_markdown() -> None:
    lines = markdown(report_of("```\n# Owned\n````")).splitlines()
    assert "`````http" in lines
    assert lines.index("`````http") < lines.index("# Owned") < lines.index("`````")
    # In a sentence it has no power.
    assert "- seen: got \\`\\`\\` \\# Owned \\`\\`\\`\\`" in lines


def test_every_protocol_that_can_be_named_has_a_plan() -> None:
    for protocol in PROTOCOLS:
        assert plan_for(
            ChosenDialect(protocol=protocol, url="http://a/", config={}, chosen=""), "n", DEFAULT_SAMPLE
        ).probes
    with pytest.raises(Invalid, match="has no checks"):
        plan_for(
            ChosenDialect(protocol="a2a-0.1-paths", url="http://a/", config={}, chosen=""),
            "n",
            DEFAULT_SAMPLE,
        )


def test_what_people_have_attested_is_ticked() -> None:
    assert "- [x] Team notified of migration" in markdown(report_of("x"))
