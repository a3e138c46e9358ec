"""All safety rules; `docs/sabotage.md` is generated from this list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from tests.sabotage.rule import Rule
from tests.sabotage.rules_by_area.agents.agent_kit import AGENT_KIT
from tests.sabotage.rules_by_area.agents.checks import CHECKS
from tests.sabotage.rules_by_area.agents.detached_calls import DETACHED_CALLS
from tests.sabotage.rules_by_area.agents.dialects import DIALECTS
from tests.sabotage.rules_by_area.agents.importing import IMPORTING
from tests.sabotage.rules_by_area.agents.migration_routing import MIGRATION_ROUTING
from tests.sabotage.rules_by_area.agents.migration_stages import MIGRATION_STAGES
from tests.sabotage.rules_by_area.calls.agent_limits import AGENT_LIMITS
from tests.sabotage.rules_by_area.calls.answers import ANSWERS
from tests.sabotage.rules_by_area.calls.callbacks import CALLBACKS
from tests.sabotage.rules_by_area.calls.claims import CLAIMS
from tests.sabotage.rules_by_area.calls.delivery import DELIVERY
from tests.sabotage.rules_by_area.calls.messaging import MESSAGING
from tests.sabotage.rules_by_area.calls.remote_tasks import REMOTE_TASKS
from tests.sabotage.rules_by_area.calls.subscriptions import SUBSCRIPTIONS
from tests.sabotage.rules_by_area.runs.actions import ACTIONS
from tests.sabotage.rules_by_area.runs.agent_choice import AGENT_CHOICE
from tests.sabotage.rules_by_area.runs.blocks import BLOCKS
from tests.sabotage.rules_by_area.runs.branches import BRANCHES
from tests.sabotage.rules_by_area.runs.child_runs import CHILD_RUNS
from tests.sabotage.rules_by_area.runs.compensations import COMPENSATIONS
from tests.sabotage.rules_by_area.runs.human_tasks import HUMAN_TASKS
from tests.sabotage.rules_by_area.runs.jobs import JOBS
from tests.sabotage.rules_by_area.runs.output_cache import OUTPUT_CACHE
from tests.sabotage.rules_by_area.runs.output_schemas import OUTPUT_SCHEMAS
from tests.sabotage.rules_by_area.runs.payloads import PAYLOADS
from tests.sabotage.rules_by_area.runs.published_tasks import PUBLISHED_TASKS
from tests.sabotage.rules_by_area.runs.received_events import RECEIVED_EVENTS
from tests.sabotage.rules_by_area.runs.run_labels import RUN_LABELS
from tests.sabotage.rules_by_area.runs.transitions import TRANSITIONS
from tests.sabotage.rules_by_area.runs.triggers import TRIGGERS
from tests.sabotage.rules_by_area.security.api_access import API_ACCESS
from tests.sabotage.rules_by_area.security.connections import CONNECTIONS
from tests.sabotage.rules_by_area.security.secrets import SECRETS
from tests.sabotage.rules_by_area.transports.aws_agentcore import AWS_AGENTCORE
from tests.sabotage.rules_by_area.transports.http import HTTP
from tests.sabotage.rules_by_area.transports.stdio_programs import STDIO_PROGRAMS
from tests.sabotage.rules_by_area.zones.access import ZONE_ACCESS
from tests.sabotage.rules_by_area.zones.calls import ZONE_CALLS
from tests.sabotage.rules_by_area.zones.requests import ZONE_REQUESTS
from tests.sabotage.rules_by_area.zones.work import ZONE_WORK

GROUPS: Mapping[str, Sequence[Rule]] = MappingProxyType(
    {
        "One transition, one transaction": TRANSITIONS,
        "Branches, loops and the deadlines of steps": BRANCHES,
        "Child runs": CHILD_RUNS,
        "Blocks": BLOCKS,
        "Published tasks": PUBLISHED_TASKS,
        "Triggers": TRIGGERS,
        "Actions": ACTIONS,
        "Compensations": COMPENSATIONS,
        "Human tasks": HUMAN_TASKS,
        "Received events": RECEIVED_EVENTS,
        "Labels": RUN_LABELS,
        "Bulk operations": JOBS,
        "Large payloads": PAYLOADS,
        "Output schemas": OUTPUT_SCHEMAS,
        "Choosing the agent": AGENT_CHOICE,
        "Cached outputs": OUTPUT_CACHE,
        "Claims and results": CLAIMS,
        "Agent limits": AGENT_LIMITS,
        "Messages can be lost, doubled and late": MESSAGING,
        "Calls": DELIVERY,
        "Callbacks": CALLBACKS,
        "Subscriptions": SUBSCRIPTIONS,
        "Remote tasks, second calls and files": REMOTE_TASKS,
        "Choosing a dialect": DIALECTS,
        "Migration stages": MIGRATION_STAGES,
        "Routes during a migration": MIGRATION_ROUTING,
        "Answers": ANSWERS,
        "Access to the REST interface": API_ACCESS,
        "Connections and file descriptors": CONNECTIONS,
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
        "`make sabotage` removes each of these rules, one at a time, in a copy of the working tree that includes",
        "uncommitted changes. Every test in the last column must then fail with an assertion of its own, and must pass",
        "in an unchanged copy. `make test` checks that this list still matches the code.",
        "",
        f"{len(RULES)} rules. Tests that end in `[sqlite]`, `[postgres]` and so on run with that backend.",
    ]
    for title, rules in GROUPS.items():
        lines += ["", f"## {title}", "", "| rule | without it | in | caught by |", "|---|---|---|---|"]
        lines += [_row(rule) for rule in rules]
    return "\n".join(lines) + "\n"


def _row(rule: Rule) -> str:
    tests = "<br>".join(f"`{test}`" for test in rule.caught_by)
    return f"| `{rule.name}` | {rule.breaks} | `{rule.symbol}` | {tests} |"
