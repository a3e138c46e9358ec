"""What a check is: what it expects, why, and where the documentation explains it."""

from __future__ import annotations

from typing import Literal

import msgspec

GUIDE = "docs/guides/migrating-agents.md"
REFERENCE = "docs/reference/checks.md"

CheckGroup = Literal[
    "Transport", "Agent card", "Request handling", "Response format", "Error handling", "Input", "Tasks"
]

# The headings of the eight common issues in the guide.
ISSUES = {
    1: "issue-1-input-extraction-fails",
    2: "issue-2-response-missing-required-fields",
    3: "issue-3-empty-artifacts-array",
    4: "issue-4-status-state-not-recognized",
    5: "issue-5-error-responses-not-formatted-correctly",
    6: "issue-6-history-array-format-issues",
    7: "issue-7-content-type-header-issues",
    8: "issue-8-id-mismatch",
}


class CheckDefinition(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    group: CheckGroup
    title: str
    expected: str
    why: str
    fix: str
    # Whether it sends messages that the agent treats as work: --active.
    active: bool = False
    # The number of the common issue that it finds.
    issue: int | None = None

    @property
    def guide(self) -> str:
        return f"{REFERENCE}#{self.id}" if self.issue is None else f"{GUIDE}#{ISSUES[self.issue]}"
