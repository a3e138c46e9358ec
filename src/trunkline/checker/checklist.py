"""
The validation checklist of the migration guide, and which checks cover each item.

An item is done if at least one of its checks ran and all that ran have passed. A person attests the items that no
check can cover.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from trunkline.agents.check_reports import AgentCheckReport, AttestationItem

ItemState = Literal["done", "not done", "not asked"]


class ChecklistItem(msgspec.Struct, frozen=True):
    text: str
    # Ids of checks, or of attestations.
    checks: tuple[str, ...]


_SCRIPT = (
    "result-status",
    "result-jsonrpc",
    "result-id",
    "result-present",
    "result-state",
    "result-artifacts",
)

CHECKLIST: Mapping[str, Sequence[ChecklistItem]] = {
    "Request Handling": (
        ChecklistItem("Agent accepts JSON-RPC 2.0 requests", ("accepts-json", "speaks-protocol")),
        ChecklistItem('Agent validates `jsonrpc` field equals "2.0"', ("version-checked",)),
        ChecklistItem(
            'Agent validates `method` field equals "message/send"', ("method-checked", "method-required")
        ),
        ChecklistItem("Agent extracts input from `params.message.parts[]`", ("input-extracted",)),
        ChecklistItem("Agent handles JSON-serialized input data", ("input-json",)),
        ChecklistItem("Agent handles plain text input data", ("input-text",)),
    ),
    "Response Format": (
        ChecklistItem('Response includes `jsonrpc: "2.0"`', ("result-jsonrpc", "error-jsonrpc")),
        ChecklistItem(
            "Response includes `id` matching request", ("result-id-present", "result-id", "error-id")
        ),
        ChecklistItem("Success responses include `result` object", ("result-present",)),
        ChecklistItem('Result includes `status.state: "completed"`', ("result-state",)),
        ChecklistItem("Result includes `artifacts` array with parts", ("result-artifacts",)),
        ChecklistItem("Result includes `history` array with user and agent messages", ("result-history",)),
        ChecklistItem("Each part has `kind` and `text` fields", ("result-parts",)),
        ChecklistItem("Error responses use `error` object instead of `result`", ("error-object",)),
        ChecklistItem("Error object includes `code` and `message`", ("error-code-and-message",)),
    ),
    "Error Handling": (
        ChecklistItem("Invalid `jsonrpc` version returns error code -32600", ("version-checked",)),
        ChecklistItem("Invalid `method` returns error code -32601", ("method-checked",)),
        ChecklistItem("Invalid `params` returns error code -32602", ("params-checked",)),
        ChecklistItem("Internal errors return error code -32603", ("internal-error",)),
        ChecklistItem("All errors include descriptive messages", ("error-message",)),
    ),
    "Testing": (
        ChecklistItem("Manual curl test passes", ("input-json", *_SCRIPT)),
        ChecklistItem("Automated test script passes", (*_SCRIPT, "version-checked", "method-checked")),
        ChecklistItem("Agent works in workflow system", ("works-in-workflow",)),
        ChecklistItem(
            "Error scenarios handled correctly",
            ("parse-error", "object-required", "internal-error", "refusals-whole"),
        ),
        ChecklistItem("Logs show proper JSON-RPC format", ("logs",)),
    ),
    "Documentation": (
        ChecklistItem("Agent documentation updated", ("documentation",)),
        ChecklistItem("API examples updated to JSON-RPC 2.0", ("examples",)),
        ChecklistItem("Team notified of migration", ("team",)),
    ),
}


def state_of(item: ChecklistItem, report: AgentCheckReport) -> ItemState:
    verdicts = {found.id: found.verdict for found in report.findings}
    verdicts |= {one.id: "passed" if one.attested else "failed" for one in report.attestations}
    found = [verdicts[name] for name in item.checks if name in verdicts]
    if "failed" in found or "warning" in found:
        return "not done"
    # If only some of the checks ran, the result is unknown.
    return "done" if "passed" in found and "skipped" not in found else "not asked"


# The items of the migration guide's checklist that no program can check.
ATTESTED_ITEMS = {
    "deployed": "The updated agent is deployed",
    "logs": "Logs show proper JSON-RPC format",
    "documentation": "Agent documentation updated",
    "examples": "API examples updated to JSON-RPC 2.0",
    "team": "Team notified of migration",
}


def attestations(agent: str | None, note: str | None = None) -> list[AttestationItem]:
    """`note`: the note of the attestation; None: not attested."""
    how = f"trunkline agents migrate ready {agent or 'NAME'} --note '…'"
    return [
        AttestationItem(id=name, title=title, attested=note is not None, note=note, how=how)
        for name, title in ATTESTED_ITEMS.items()
    ]
