"""
The validation checklist of the migration guide, item by item: which checks stand for each.

An item is done when all of its checks that were asked have passed, and one was; what only people can see is attested.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from trunkline.agents.check_reports import AgentCheckReport

ItemState = Literal["done", "not done", "not asked"]


class Item(msgspec.Struct, frozen=True):
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

CHECKLIST: Mapping[str, Sequence[Item]] = {
    "Request Handling": (
        Item("Agent accepts JSON-RPC 2.0 requests", ("accepts-json", "speaks-protocol")),
        Item('Agent validates `jsonrpc` field equals "2.0"', ("version-checked",)),
        Item('Agent validates `method` field equals "message/send"', ("method-checked", "method-required")),
        Item("Agent extracts input from `params.message.parts[]`", ("input-extracted",)),
        Item("Agent handles JSON-serialized input data", ("input-json",)),
        Item("Agent handles plain text input data", ("input-text",)),
    ),
    "Response Format": (
        Item('Response includes `jsonrpc: "2.0"`', ("result-jsonrpc", "error-jsonrpc")),
        Item("Response includes `id` matching request", ("result-id-present", "result-id", "error-id")),
        Item("Success responses include `result` object", ("result-present",)),
        Item('Result includes `status.state: "completed"`', ("result-state",)),
        Item("Result includes `artifacts` array with parts", ("result-artifacts",)),
        Item("Result includes `history` array with user and agent messages", ("result-history",)),
        Item("Each part has `kind` and `text` fields", ("result-parts",)),
        Item("Error responses use `error` object instead of `result`", ("error-object",)),
        Item("Error object includes `code` and `message`", ("error-code-and-message",)),
    ),
    "Error Handling": (
        Item("Invalid `jsonrpc` version returns error code -32600", ("version-checked",)),
        Item("Invalid `method` returns error code -32601", ("method-checked",)),
        Item("Invalid `params` returns error code -32602", ("params-checked",)),
        Item("Internal errors return error code -32603", ("internal-error",)),
        Item("All errors include descriptive messages", ("error-message",)),
    ),
    "Testing": (
        Item("Manual curl test passes", ("input-json", *_SCRIPT)),
        Item("Automated test script passes", (*_SCRIPT, "version-checked", "method-checked")),
        Item("Agent works in workflow system", ("works-in-workflow",)),
        Item(
            "Error scenarios handled correctly",
            ("parse-error", "object-required", "internal-error", "refusals-whole"),
        ),
        Item("Logs show proper JSON-RPC format", ("logs",)),
    ),
    "Documentation": (
        Item("Agent documentation updated", ("documentation",)),
        Item("API examples updated to JSON-RPC 2.0", ("examples",)),
        Item("Team notified of migration", ("team",)),
    ),
}


def state_of(item: Item, report: AgentCheckReport) -> ItemState:
    verdicts = {found.id: found.verdict for found in report.findings}
    verdicts |= {one.id: "passed" if one.attested else "failed" for one in report.attestations}
    found = [verdicts[name] for name in item.checks if name in verdicts]
    if "failed" in found or "warning" in found:
        return "not done"
    # What was asked in part only is not known.
    return "done" if "passed" in found and "skipped" not in found else "not asked"
