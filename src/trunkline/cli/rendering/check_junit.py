"""A report of `agents check` as JUnit XML: one test case for each check, so that a CI shows them like tests."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree as Xml

if TYPE_CHECKING:
    from trunkline.agents.check_reports import AgentCheckReport, AgentFinding, AttestationItem, Evidence

# XML has no way to write these, escaped or not; an agent's answer may hold any of them.
_UNWRITABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(report: AgentCheckReport) -> str:
    cases = [_case(found) for found in report.findings] + [_attested(one) for one in report.attestations]
    skipped = sum(1 for case in cases if case.find("skipped") is not None)
    counts = {
        "tests": str(len(cases)),
        "failures": str(report.count("failed")),
        "errors": "0",
        "skipped": str(skipped),
        "time": _seconds(report.duration_ms),
    }
    suites = Xml.Element("testsuites", {"name": "trunkline agents check", **counts})
    name = f"{report.agent or report.url} ({report.protocol})"
    suite = Xml.SubElement(
        suites, "testsuite", {"name": _writable(name), "timestamp": report.started_at, **counts}
    )
    properties = Xml.SubElement(suite, "properties")
    for key, value in (("url", report.url), ("protocol", report.protocol), ("grade", report.grade)):
        Xml.SubElement(properties, "property", {"name": key, "value": _writable(value)})
    suite.extend(cases)
    Xml.indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{Xml.tostring(suites, encoding="unicode")}'


def _case(found: AgentFinding) -> Xml.Element:
    milliseconds = sum(evidence.duration_ms for evidence in found.evidence)
    case = Xml.Element(
        "testcase",
        {"classname": found.group, "name": f"{found.id}: {found.title}", "time": _seconds(milliseconds)},
    )
    match found.verdict:
        case "failed":
            failure = Xml.SubElement(case, "failure", {"type": found.id, "message": _writable(found.seen)})
            failure.text = _details(found)
        case "skipped":
            Xml.SubElement(case, "skipped", {"message": _writable(found.seen)})
        case "warning":
            # JUnit has no warnings; a case that passes may still say something.
            Xml.SubElement(case, "system-out").text = f"warning\n{_details(found)}"
        case "passed":
            pass
    return case


def _attested(one: AttestationItem) -> Xml.Element:
    case = Xml.Element(
        "testcase", {"classname": "Attested", "name": f"{one.id}: {one.title}", "time": "0.000"}
    )
    if not one.attested:
        Xml.SubElement(case, "skipped", {"message": f"Not confirmed yet: {one.how}"})
    return case


def _details(found: AgentFinding) -> str:
    lines = [
        f"expected: {found.expected}",
        f"seen: {found.seen}",
        f"fix: {found.fix}",
        f"guide: {found.guide}",
    ]
    return _writable("\n".join([*lines, *(line for each in found.evidence for line in _exchange(each))]))


def _exchange(evidence: Evidence) -> list[str]:
    request, response = evidence.request, evidence.response
    lines = ["", f"> {request.method} {request.url}", f"> {request.body}"]
    if response is not None:
        lines += [f"< HTTP {response.status}", f"< {response.body}"]
    return lines if evidence.error is None else [*lines, f"< {evidence.error}"]


def _seconds(milliseconds: float) -> str:
    return f"{milliseconds / 1000:.3f}"


def _writable(text: str) -> str:
    return _UNWRITABLE.sub("\N{REPLACEMENT CHARACTER}", text)
