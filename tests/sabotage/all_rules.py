"""All safety rules that can be taken away; `docs/sabotage.md` is made from this list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from tests.sabotage.all_rules.agents.agent_kit import AGENT_KIT
from tests.sabotage.all_rules.agents.checks import CHECKS
from tests.sabotage.all_rules.agents.detached_calls import DETACHED_CALLS
from tests.sabotage.all_rules.agents.dialects import DIALECTS
from tests.sabotage.all_rules.agents.importing import IMPORTING
from tests.sabotage.all_rules.agents.migration_routing import MIGRATION_ROUTING
from tests.sabotage.all_rules.agents.migration_stages import MIGRATION_STAGES
from tests.sabotage.all_rules.calls.agent_limits import AGENT_LIMITS
from tests.sabotage.all_rules.calls.answers import ANSWERS
from tests.sabotage.all_rules.calls.claims import CLAIMS
from tests.sabotage.all_rules.calls.delivery import DELIVERY
from tests.sabotage.all_rules.calls.messaging import MESSAGING
from tests.sabotage.all_rules.calls.remote_tasks import REMOTE_TASKS
from tests.sabotage.all_rules.runs.branches import BRANCHES
from tests.sabotage.all_rules.runs.child_runs import CHILD_RUNS
from tests.sabotage.all_rules.runs.transitions import TRANSITIONS
from tests.sabotage.all_rules.security.api_access import API_ACCESS
from tests.sabotage.all_rules.security.secrets import SECRETS
from tests.sabotage.all_rules.transports.aws_agentcore import AWS_AGENTCORE
from tests.sabotage.all_rules.transports.http import HTTP
from tests.sabotage.all_rules.transports.stdio_programs import STDIO_PROGRAMS
from tests.sabotage.all_rules.zones.access import ZONE_ACCESS
from tests.sabotage.all_rules.zones.calls import ZONE_CALLS
from tests.sabotage.all_rules.zones.requests import ZONE_REQUESTS
from tests.sabotage.all_rules.zones.work import ZONE_WORK
from tests.sabotage.rule import Rule

GROUPS: Mapping[str, Sequence[Rule]] = MappingProxyType(
    {
        "One transition, one transaction": TRANSITIONS,
        "Branches, loops and the deadlines of steps": BRANCHES,
        "Child runs": CHILD_RUNS,
        "Claims and results": CLAIMS,
        "Agent limits": AGENT_LIMITS,
        "Messages can be lost, doubled and late": MESSAGING,
        "Calls": DELIVERY,
        "Remote tasks, second calls and files": REMOTE_TASKS,
        "Choosing a dialect": DIALECTS,
        "Migration stages": MIGRATION_STAGES,
        "Routes during a migration": MIGRATION_ROUTING,
        "Answers": ANSWERS,
        "Access to the REST interface": API_ACCESS,
        "Named secrets": SECRETS,
        "HTTP transport": HTTP,
        "AWS AgentCore transport": AWS_AGENTCORE,
        "Local programs as agents": STDIO_PROGRAMS,
        "Requests to a zone": ZONE_REQUESTS,
        "Access to a zone": ZONE_ACCESS,
        "The work of a zone": ZONE_WORK,
        "Calls of zones": ZONE_CALLS,
        "Agent kit": AGENT_KIT,
        "Agent checks": CHECKS,
        "Test calls and agent cards": DETACHED_CALLS,
        "Import of other systems' definitions": IMPORTING,
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
