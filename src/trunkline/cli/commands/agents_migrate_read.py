"""`trunkline agents migrate plan`, `check`, `status` and `history`: how agents stand, and how they came there."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import ApiError
from trunkline.cli.options import HERE, Server
from trunkline.cli.rendering.migration import print_agent_events, print_blockers, print_plan, print_status
from trunkline.cli.rendering.output import Cell, note, print_json, print_table

if TYPE_CHECKING:
    from trunkline.cli.client import Client
    from trunkline.cli.migration_answers import PlanEntry
    from trunkline.jsontypes import JsonObject

Names = Annotated[tuple[str, ...], Parameter(name="AGENT", negative="", show_default=False)]
OneName = Annotated[str | None, Parameter(name="AGENT", show_default=False)]

_CHECKS_AT_A_TIME = 8
_SHOWN_DIFFERENCES = 20
# A side that could not be checked at all.
_NOT_CHECKED = "-"


def plan(*agents: Annotated[str, Parameter(name="AGENT")], server: Server = HERE) -> int:
    """
    List agents: what each speaks and offers, where its migration stands, and what is in its way.

    Below the table: the expressions of workflows that would read something else after the migration.

    Parameters
    ----------
    agents
        Only these. Default: all.
    """
    client = server.client()
    entries = _entries(client, agents)
    if server.json:
        print_json({"items": entries, "next_cursor": None})
        return Exit.OK
    print_plan(entries)
    if len(agents) == 1:
        print_blockers(entries[0])
    elif any(entry["blockers"] for entry in entries):
        note("What is in the way of one, and what to do about it: trunkline agents migrate plan AGENT")
    return Exit.OK


def check(*agents: Annotated[str, Parameter(name="AGENT")], server: Server = HERE) -> int:
    """
    Check where agents are to move to, several at a time, without giving them work.

    An agent that moves nowhere is checked where it is. The reports are kept. Exits with 7 when a check has failed.

    Parameters
    ----------
    agents
        Only these. Default: all.
    """
    client = server.client()
    names = list(agents) or [entry["agent"] for entry in client.migration_plan().items]
    reports = _checked(client, names)
    if server.json:
        print_json({"items": [{"agent": name, **reports[name]} for name in names]})
    else:
        print_table(
            ("AGENT", "GRADE", "PROTOCOL", "URL", "FAILED"), [_row(name, reports[name]) for name in names]
        )
    return Exit.OK if all(report.get("passed") for report in reports.values()) else Exit.INVALID


def status(agent: OneName = None, /, *, server: Server = HERE) -> int:
    """
    Show how an agent's migration stands: its target and limits, calls of both sides, and how their answers differ.

    Without AGENT: all agents that move, or have moved.

    Parameters
    ----------
    agent
        The agent's name or id.
    """
    client = server.client()
    if agent is None:
        moving = [entry for entry in client.migration_plan().items if entry["migration"] is not None]
        if server.json:
            print_json({"items": moving, "next_cursor": None})
        else:
            print_plan(moving)
        return Exit.OK
    found = client.migration(agent)
    comparisons = [
        comparison
        for verdict in ("differ", "new_failed")
        for comparison in client.comparisons(agent, verdict=verdict, limit=_SHOWN_DIFFERENCES).items
    ]
    if server.json:
        print_json({**found, "differences": comparisons})
    else:
        print_status(found, comparisons)
    return Exit.OK


def history(agent: OneName = None, /, *, limit: int = 100, server: Server = HERE) -> int:
    """
    Show what has happened to agents, newest first: every change of a migration with who and why, cards, grades.

    Parameters
    ----------
    agent
        Only of this one, by its name or id; it may be removed.
    limit
        At most this many.
    """
    page = server.client().agent_events(agent, limit=limit)
    if server.json:
        print_json(page.answer())
    else:
        print_agent_events(page.items)
    return Exit.OK


def _entries(client: Client, agents: tuple[str, ...]) -> list[PlanEntry]:
    if not agents:
        return client.migration_plan().items
    return [client.migration(agent) for agent in agents]


def _checked(client: Client, names: list[str]) -> dict[str, JsonObject]:
    reports: dict[str, JsonObject] = {}
    with ThreadPoolExecutor(_CHECKS_AT_A_TIME) as pool:
        running = {pool.submit(_report, client, name): name for name in names}
        for done in as_completed(running):
            name = running[done]
            reports[name] = done.result()
            note(f"[{len(reports)}/{len(names)}] {name}: {reports[name]['grade']}")
    return reports


def _report(client: Client, name: str) -> JsonObject:
    """One that cannot be checked keeps nobody from checking the others."""
    try:
        return client.check_migration(name)
    except ApiError as error:
        return {"grade": _NOT_CHECKED, "passed": False, "error": error.what, "fix": error.fix}


def _row(name: str, report: JsonObject) -> list[str | Cell]:
    passed = report.get("passed") is True
    findings = report.get("findings")
    failed = [
        str(found["id"])
        for found in (findings if isinstance(findings, list) else [])
        if isinstance(found, dict) and found.get("verdict") == "failed"
    ]
    return [
        name,
        Cell(str(report["grade"]), "green" if passed else "red"),
        str(report.get("protocol", "")),
        str(report.get("url", "")),
        ", ".join(failed) or str(report.get("error", "")),
    ]
