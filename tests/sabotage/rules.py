"""All safety rules that can be taken away; `docs/sabotage.md` is made from this list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from tests.sabotage.rule import Rule
from tests.sabotage.rules_of_agent_kit import AGENT_KIT
from tests.sabotage.rules_of_answers import ANSWERS
from tests.sabotage.rules_of_branches import BRANCHES
from tests.sabotage.rules_of_calls import CALLS
from tests.sabotage.rules_of_carriers import CARRIERS
from tests.sabotage.rules_of_checks import CHECKS
from tests.sabotage.rules_of_children import CHILDREN
from tests.sabotage.rules_of_dialects import DIALECTS
from tests.sabotage.rules_of_doors import DOORS
from tests.sabotage.rules_of_imports import IMPORTS
from tests.sabotage.rules_of_limits import LIMITS
from tests.sabotage.rules_of_lines import LINES
from tests.sabotage.rules_of_migration import MIGRATION
from tests.sabotage.rules_of_moves import MOVES
from tests.sabotage.rules_of_programs import PROGRAMS
from tests.sabotage.rules_of_runs import RUNS
from tests.sabotage.rules_of_secrets import SECRETS
from tests.sabotage.rules_of_tasks import TASKS
from tests.sabotage.rules_of_travel import TRAVEL
from tests.sabotage.rules_of_trials import TRIALS
from tests.sabotage.rules_of_way_out import WAY_OUT
from tests.sabotage.rules_of_zone_answers import ZONE_ANSWERS
from tests.sabotage.rules_of_zone_calls import ZONE_CALLS
from tests.sabotage.rules_of_zone_door import ZONE_DOOR
from tests.sabotage.rules_of_zone_work import ZONE_WORK

GROUPS: Mapping[str, Sequence[Rule]] = MappingProxyType(
    {
        "One transition, one transaction": RUNS,
        "Branches, loops and the deadlines of steps": BRANCHES,
        "Runs that begin runs": CHILDREN,
        "Who may call, and whose answer counts": TASKS,
        "How fast an agent may be called, and when it is left alone": LIMITS,
        "What travels can be lost, doubled and late": TRAVEL,
        "Calls": CALLS,
        "Long tasks, second calls and files": LINES,
        "Choosing a dialect": DIALECTS,
        "How agents are moved": MIGRATION,
        "Agents that move": MOVES,
        "Answers": ANSWERS,
        "Doors and secrets": DOORS,
        "Named secrets": SECRETS,
        "The way out": WAY_OUT,
        "Ways out that are not HTTP": CARRIERS,
        "Agents that are programs": PROGRAMS,
        "The answers of a zone": ZONE_ANSWERS,
        "The door of a zone": ZONE_DOOR,
        "The work of a zone": ZONE_WORK,
        "Calls of zones": ZONE_CALLS,
        "Agents written with the kit": AGENT_KIT,
        "Checks of agents": CHECKS,
        "Agents that people look at": TRIALS,
        "Definitions of other systems": IMPORTS,
    }
)
RULES: Sequence[Rule] = tuple(rule for rules in GROUPS.values() for rule in rules)


def page() -> str:
    """`docs/sabotage.md`."""
    lines = [
        "# Safety rules, and the test that guards each",
        "",
        "Written by `make docs` from `tests/sabotage/`.",
        "",
        "`make sabotage` takes each of these rules away, one at a time, in a copy of the working tree (with what is",
        "not committed yet), and demands that every test named beside it fails there, by an assertion of its own,",
        "while it passes on the untouched copy. `make test` checks that the list still fits the code.",
        "",
        f"{len(RULES)} rules. Tests that end in `[sqlite]`, `[postgres]` and so on are meant for that backend.",
    ]
    for title, rules in GROUPS.items():
        lines += ["", f"## {title}", "", "| rule | without it | in | caught by |", "|---|---|---|---|"]
        lines += [_row(rule) for rule in rules]
    return "\n".join(lines) + "\n"


def _row(rule: Rule) -> str:
    tests = "<br>".join(f"`{test}`" for test in rule.caught_by)
    return f"| `{rule.name}` | {rule.breaks} | `{rule.symbol}` | {tests} |"
