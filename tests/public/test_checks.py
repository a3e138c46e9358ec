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

`agents check` asks an agent what stands below and prints a finding for each, with the request, the response, and
what to do. An address is checked from where the command runs, and needs no server; a name of the registry by the
server, with the agent's own credentials ([REST](rest.md)). The exit code is 0, or 7 when a check has failed.

Without `--active` nothing is sent that a correct agent takes for work: cards are read, and requests are sent that
it must refuse, none of which holds a message. What is marked *active* sends real messages, so give it to an agent
that may be called.

A finding is **passed**, **failed**, a **warning** (what is only recommended is not kept) or **skipped** (it was not
asked, does not apply, or another finding says it already). Which checks are asked, and which of them are required,
depends on the protocol: an agent of `jsonrpc-2.0` is held to the whole checklist of the migration guide, one of A2A
to what A2A promises. `a2a-0.1`, `jsonrpc-call` and zones are checked as far as JSON-RPC goes.

An agent that is for one thing only can do nothing with the usual test query: `--input key=value` and `--text` say what
the messages of `--active` hold, and zones get none without them.

| grade | |
|---|---|
| A | nothing failed, no warning |
| B | nothing failed, up to three warnings |
| C | nothing failed, more warnings |
| D | one or two checks failed |
| F | more failed, or the agent was not there, let nobody in, or spoke something else |

A, B and C pass.

## The validation checklist

The checklist of the migration guide, and what stands for each item. `agents check --md` prints it with its boxes
ticked.
"""

_ATTESTED = """
What no program can see is attested by whoever knows: `trunkline agents migrate ready NAME --note …`. It is also
part of a report:
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
    lines += [f"- asks for: {check.expected}", f"- why: {check.why}", f"- mend it: {check.fix}"]
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
    assert grade_of(kept_but(), heard=False) == "F"


def test_every_item_of_the_checklist_has_checks_that_exist() -> None:
    named = {check for items in CHECKLIST.values() for item in items for check in item.checks}
    assert named <= CHECKS.keys() | ATTESTED_ITEMS.keys()
