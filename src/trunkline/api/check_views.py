"""What the API shows of checks; `schemas.checks` describes the same shapes."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from trunkline.agents.check_reports import AgentFinding, Verdict
from trunkline.api.views import page_json
from trunkline.clock import rfc3339
from trunkline.jsontypes import decode, encode
from trunkline.stores.port.agent_events import CheckRecord


class _Findings(msgspec.Struct):
    """What a summary needs of a report."""

    findings: list[AgentFinding]


_reports = msgspec.json.Decoder(_Findings)


def check_json(record: CheckRecord) -> bytes:
    report = decode(record.report)
    return encode({"id": record.id, **report} if isinstance(report, dict) else {"id": record.id})


def checks_json(records: Sequence[CheckRecord], next_cursor: str | None) -> bytes:
    return page_json([_summary(record) for record in records], next_cursor)


def _summary(record: CheckRecord) -> dict[str, object]:
    findings = _reports.decode(record.report).findings

    def ids(verdict: Verdict) -> list[str]:
        return [found.id for found in findings if found.verdict == verdict]

    return {
        "id": record.id,
        "at": rfc3339(record.at),
        "url": record.url,
        "protocol": record.protocol,
        "active": record.active,
        "grade": record.grade,
        "passed": record.passed,
        "failed": ids("failed"),
        "warnings": ids("warning"),
    }
