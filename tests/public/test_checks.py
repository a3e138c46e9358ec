"""The page of all checks says what the program asks, and leads to guides that are there. Write it again: make docs."""

from __future__ import annotations

import re
from pathlib import Path

from trunkline.agents.check_reports import Verdict, grade_of
from trunkline.checker import CHECKS, CheckDefinition
from trunkline.checker.checklist import ATTESTED_ITEMS, CHECKLIST

ROOT = Path(__file__).parents[2]
CHECKS_FILE = ROOT / "docs/reference/checks.md"

_OPENING = """# Checks

Written by `make docs` from `src/trunkline/checker/check_definitions.py`.

```bash
trunkline agents check http://localhost:8080/agent --protocol jsonrpc-2.0
trunkline agents check Researcher --active --junit > report.xml
```

`agents check` runs the checks on this page and prints a finding for each, with the request, the response, and how
to fix the problem. If you give an address, the command itself calls the agent and needs no server. If you give a name,
the server checks the registered agent with its credentials ([REST](rest.md)). The exit code is 0, 7 if a check
failed, or 8 if there was not enough evidence.

Without `--active`, the check sends nothing that a correct agent treats as work. It reads the agent card and sends
invalid requests without a message, which the agent must reject. Checks marked *active* send real messages, so use
`--active` only with an agent that you may call. An agent that answers none of the invalid requests, for example because
it crashes, has neither passed nor failed. Its grade is `?`, and only `--active` shows whether it works.

A finding is **passed**, **failed**, a **warning** (a recommendation is not met) or **skipped** (the check did not run,
does not apply, or another finding reports the same problem). The protocol determines which checks run and which of
them are required. Failed checks come first in the report, then warnings. An agent with `jsonrpc-2.0` must meet the
checklist of the migration guide, but a finding about a request that Trunkline never sends, such as a body that is not
JSON or a message without parts, is only a warning. An A2A agent must
meet the A2A specification. For `a2a-0.1`, `jsonrpc-call` and zones, only the JSON-RPC format is checked.

A specialised agent may not understand the default test query. Use `--input key=value` and `--text` to set the content
of the messages that `--active` sends. Zones receive no messages without these options.

| grade | |
|---|---|
| A | no failed check, no warning |
| B | no failed check, at most three warnings |
| C | no failed check, more than three warnings |
| D | one or two failed checks |
| F | more failed checks, or the agent was unreachable, rejected the credentials, or spoke another protocol |
| ? | not enough evidence: run the check with `--active` |

The grades A, B and C pass.

## The validation checklist

The checklist of the migration guide, and the checks that cover each item. `agents check --md` prints it with ticked
boxes.
"""

_ATTESTED = """
No check can cover these items, so a person attests them with `trunkline agents migrate ready NAME --note …`. The
attestation is part of the report:
"""


def checks_page() -> str:
    lines = [_OPENING]
    for section, items in CHECKLIST.items():
        lines += [f"| {section} | checks |", "|---|---|"]
        lines += [f"| {item.text} | {', '.join(map(_named, item.checks))} |" for item in items]
        lines.append("")
    lines[-1] = _ATTESTED
    lines += [f"- {title}" for title in ATTESTED_ITEMS.values()]
    for group in dict.fromkeys(check.group for check in CHECKS.values()):
        lines += ["", f"## {group}"]
        for check in CHECKS.values():
            if check.group == group:
                lines += _section(check)
    return "\n".join(lines) + "\n"


def _named(check: str) -> str:
    return f"[`{check}`](#{check})" if check in CHECKS else "attested"


def _section(check: CheckDefinition) -> list[str]:
    lines = ["", f"### {check.id}", "", f"{check.title}{' (*active*)' if check.active else ''}.", ""]
    lines += [f"- expected: {check.expected}", f"- why: {check.why}", f"- fix: {check.fix}"]
    if check.issue is not None:
        page = check.guide.removeprefix("docs/")
        lines.append(f"- more: [common issue {check.issue}](../{page})")
    return lines


def test_the_page_of_checks_is_that_of_the_program() -> None:
    assert CHECKS_FILE.read_text() == checks_page()


def test_every_check_leads_to_a_heading_that_is_there() -> None:
    for check in CHECKS.values():
        page, _, anchor = check.guide.partition("#")
        headings = re.findall(r"^#+ (.+)$", (ROOT / page).read_text(), re.MULTILINE)
        anchors = {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}
        assert anchor in anchors, check.guide


def test_the_grades_on_the_page_are_those_that_are_given() -> None:
    def kept_but(*others: Verdict) -> list[Verdict]:
        return ["passed", "passed", *others]

    assert grade_of(kept_but()) == "A"
    assert grade_of(kept_but("warning", "warning", "warning")) == "B"
    assert grade_of(kept_but("warning", "warning", "warning", "warning")) == "C"
    assert grade_of(kept_but("failed", "failed", "warning")) == "D"
    assert grade_of(kept_but("failed", "failed", "failed")) == "F"
    assert grade_of(["skipped"]) == "F"
    assert grade_of(kept_but(), gates_passed=False) == "F"


def test_every_item_of_the_checklist_has_checks_that_exist() -> None:
    named = {check for items in CHECKLIST.values() for item in items for check in item.checks}
    assert named <= CHECKS.keys() | ATTESTED_ITEMS.keys()
