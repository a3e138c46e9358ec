"""`trunkline agents migrate`: move agents to another protocol or URL, and back."""

from __future__ import annotations

import getpass
import math
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import ApiError, CliError
from trunkline.cli.inputs import parse_pairs
from trunkline.cli.options import HERE, AgentArgument, Cursor, Duration, Flag, Hidden, Limit, Pairs, Server
from trunkline.cli.rendering.migration import (
    print_agent_events,
    print_blockers,
    print_change,
    print_outcome,
    print_plan,
    print_status,
)
from trunkline.cli.rendering.output import Cell, note, note_next_page, print_json, print_table

if TYPE_CHECKING:
    from trunkline.api.resources.agents.migration import MigrationEntry, MigrationOutcome
    from trunkline.cli.rest.client import Client
    from trunkline.jsontypes import Json, JsonObject

OneName = Annotated[str | None, Parameter(name="AGENT", show_default=False)]

_CHECKS_AT_A_TIME = 8
_SHOWN_DIFFERENCES = 20
# An endpoint that could not be checked at all.
_NOT_CHECKED = "-"
OneOrAll = Annotated[str | None, Parameter(name="AGENT", show_default=False, help="Name or ID of the agent.")]
All = Annotated[bool, Parameter(name="--all", negative="", show_default=False)]
Note = Annotated[
    str, Parameter(name="--note", show_default=False, help="Reason for the change, shown in the history.")
]
# The name of --note in earlier versions.
Why = Annotated[str, Parameter(name="--why"), Hidden]
Percent = Annotated[
    float, Parameter(help="Share of the runs that start from now on: more than 0, up to 100.")
]

app = App(
    name="migrate",
    help="Migrate agents to another protocol or URL.",
    version_flags=[],
)


@app.command(name="plan")
def plan(*agents: Annotated[str, Parameter(name="AGENT")], server: Server = HERE) -> int:
    """
    Show the protocol of each agent, its migration, and what blocks it.

    Below the table are the expressions in workflows whose values would change with the migration.

    Parameters
    ----------
    agents
        Names or IDs of agents. Default: all.
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
        note("To see what blocks an agent, and how to fix it: trunkline agents migrate plan AGENT")
    return Exit.OK


@app.command(name="check")
def check(
    *agents: Annotated[str, Parameter(name="AGENT")], active: Flag = False, server: Server = HERE
) -> int:
    """
    Check the migration targets of agents.

    Without --active, the agents receive no work. An agent without a migration target is checked as it is registered.
    The reports are stored. Exits with 7 if a check fails.

    Parameters
    ----------
    agents
        Names or IDs of agents. Default: all.
    active
        Also send real messages, to check the responses and which form of the input the agent reads.
    """
    client = server.client()
    names = list(agents) or [entry["agent"] for entry in client.migration_plan().items]
    reports = _checked(client, names, active=active)
    if server.json:
        print_json({"items": [{"agent": name, **reports[name]} for name in names]})
    else:
        print_table(
            ("AGENT", "GRADE", "PROTOCOL", "URL", "FAILED"), [_row(name, reports[name]) for name in names]
        )
    return Exit.OK if all(report.get("passed") for report in reports.values()) else Exit.INVALID


@app.command(name="status")
def status(agent: OneName = None, /, *, server: Server = HERE) -> int:
    """
    Show the status of a migration.

    Shows its target, its limits, the calls to source and target, and how their responses differ.

    Parameters
    ----------
    agent
        Name or ID of the agent. Default: all agents with a migration.
    """
    client = server.client()
    if agent is None:
        migrating = [entry for entry in client.migration_plan().items if entry["migration"] is not None]
        if server.json:
            print_json({"items": migrating, "next_cursor": None})
        else:
            print_plan(migrating)
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


@app.command(name="history")
def history(
    agent: OneName = None,
    /,
    *,
    limit: Limit = 50,
    cursor: Cursor = None,
    server: Server = HERE,
) -> int:
    """
    Show the history of migrations, newest first.

    Shows who made each change and why, new agent cards, and check results.

    Parameters
    ----------
    agent
        Name or ID of the agent, which can be deleted. Default: all agents.
    """
    page = server.client().agent_events(agent, limit=limit, cursor=cursor)
    if server.json:
        print_json(page.answer())
        return Exit.OK
    print_agent_events(page.items)
    command = ("agents", "migrate", "history") if agent is None else ("agents", "migrate", "history", agent)
    note_next_page(command, {}, page.next_cursor)
    return Exit.OK


@Parameter(name="*")
@dataclass(frozen=True)
class TargetFlags:
    """The target of a migration."""

    to: Annotated[
        str | None,
        Parameter(
            help="Target URL or protocol. Default: the earlier target, or jsonrpc-2.0 at the agent's URL."
        ),
    ] = None
    protocol: Annotated[str | None, Parameter(help="Protocol of the target, if --to is a URL.")] = None
    config: Annotated[
        Pairs, Parameter(help="key=value in the protocol configuration of the target. Can be repeated.")
    ] = ()

    def given(self) -> JsonObject:
        is_url = self.to is not None and ":" in self.to
        if self.to is not None and not is_url and self.protocol is not None:
            raise CliError(
                "--to is a protocol, so it cannot be combined with --protocol",
                fix="Use a URL with --to, or leave out --protocol",
                exit_code=Exit.USAGE,
            )
        named: JsonObject = {
            "url": self.to if is_url else None,
            "protocol": self.protocol if is_url or self.to is None else self.to,
            "protocol_config": parse_pairs(self.config) or None,
        }
        return {key: value for key, value in named.items() if value is not None}


@Parameter(name="*")
@dataclass(frozen=True)
class MigrationLimitFlags:
    """The limits of a migration; what is left out stays as it is."""

    disagreement: Annotated[
        float | None, Parameter(help="Maximum share of compared responses that differ. Initially 0.01.")
    ] = None
    comparisons: Annotated[
        int | None, Parameter(help="Responses to compare before a cutover. Initially 20.")
    ] = None
    error_rate: Annotated[
        float | None, Parameter(help="Roll back if a larger share of calls fails. Initially 0.1.")
    ] = None
    window: Annotated[
        int | None, Parameter(help="Number of recent calls for --error-rate. Initially 50.")
    ] = None
    calls: Annotated[
        int | None, Parameter(help="Minimum number of calls for --error-rate. Initially 10.")
    ] = None
    slowdown: Annotated[
        float | None, Parameter(help="Roll back if the target is this many times slower. Initially 3.")
    ] = None
    slowest: Annotated[
        Duration,
        Parameter(help="Roll back if the 95th percentile is above this, such as 2s. Initially none."),
    ] = None
    # The name of --slowest in earlier versions, in milliseconds.
    slowest_ms: Annotated[int | None, Hidden] = None

    def given(self) -> JsonObject:
        limits: dict[str, Json] = {
            name: value for name, value in vars(self).items() if value is not None and name != "slowest"
        }
        if self.slowest is not None:
            limits["slowest_ms"] = round(self.slowest.total_seconds() * 1000)
        for name, value in limits.items():
            if isinstance(value, float) and not math.isfinite(value):
                raise CliError(
                    f"--{name.replace('_', '-')} {value:g} is not a limit",
                    fix="Use a finite number, or leave it out",
                    exit_code=Exit.USAGE,
                )
        return limits


NO_TARGET = TargetFlags()
NO_LIMITS = MigrationLimitFlags()


@app.command(name="ready")
def ready(
    agent: AgentArgument,
    /,
    *,
    note: Annotated[str, Parameter(name="--note")],
    target: TargetFlags = NO_TARGET,
    why: Why = "",
    server: Server = HERE,
) -> int:
    """
    Confirm what no program can check: deployed, documented, announced.

    Can also set the target, for a cutover without shadow or canary.

    Parameters
    ----------
    note
        What was done, and by whom.
    """
    named = target != NO_TARGET
    body: JsonObject = {"note": note, **({"target": target.given()} if named else {}), **_signed(why)}
    return _one(agent, "ready", body, server)


@app.command(name="shadow")
def shadow(
    agent: AgentArgument,
    /,
    *,
    percent: Percent,
    target: TargetFlags = NO_TARGET,
    limits: MigrationLimitFlags = NO_LIMITS,
    note: Note = "",
    why: Why = "",
    server: Server = HERE,
) -> int:
    """
    Send the input of some runs to the target as well, and compare the responses.

    Runs use only the responses of the source. The agent must be repeatable, because it receives the same work twice.
    """
    return _one(agent, "shadow", _share(percent, target, limits, note or why), server)


@app.command(name="canary")
def canary(
    agent: AgentArgument,
    /,
    *,
    percent: Percent,
    target: TargetFlags = NO_TARGET,
    limits: MigrationLimitFlags = NO_LIMITS,
    note: Note = "",
    why: Why = "",
    server: Server = HERE,
) -> int:
    """
    Send a share of the runs to the target.

    A run keeps its route until it ends. If calls exceed the limits for failures or latency, the agent is rolled back
    automatically.
    """
    return _one(agent, "canary", _share(percent, target, limits, note or why), server)


@app.command(name="cutover")
def cutover(
    agent: OneOrAll = None,
    /,
    *,
    all_: All = False,
    force: Flag = False,
    note: Note = "",
    why: Why = "",
    server: Server = HERE,
) -> int:
    """
    Send all new runs to the target.

    Exits with 4, and every reason, if the target is not ready: its check fails, the responses differ, or it is not
    confirmed with agents migrate ready.

    Parameters
    ----------
    all_
        Cut over every agent that uses Simple A2A or has a migration. Either all are cut over, or none.
    force
        Cut over although the target is not ready. Needs --note.
    """
    body: JsonObject = {"force": force, **_signed(note or why)}
    return _one_or_all("cutover", agent, body, server, all_=all_)


@app.command(name="rollback")
def rollback(
    agent: OneOrAll = None,
    /,
    *,
    all_: All = False,
    force: Flag = False,
    note: Note = "",
    why: Why = "",
    server: Server = HERE,
) -> int:
    """
    Send all new runs to the source again.

    Runs in progress keep their route. Before the next cutover, confirm the target again with agents migrate ready.
    Exits with 4 if the source cannot be called, or no longer exists because the migration is finished.

    Parameters
    ----------
    all_
        Roll back every agent that still has a source. Finished migrations are listed and not changed. Exits with 4
        if all migrations are finished. If a source cannot be called, no agent is rolled back.
    force
        Roll back without checking whether the source can be called.
    """
    if not (note or why):
        raise CliError(
            "A rollback needs a reason", fix="Add it: --note 'Responses are wrong'", exit_code=Exit.USAGE
        )
    return _one_or_all("rollback", agent, {"force": force, **_signed(note or why)}, server, all_=all_)


@app.command(name="finish")
def finish(
    agent: OneOrAll = None,
    /,
    *,
    all_: All = False,
    note: Note = "",
    why: Why = "",
    server: Server = HERE,
) -> int:
    """
    Finish a migration and forget the source. This cannot be undone.

    Exits with 4 while runs from before the cutover are unfinished.

    Parameters
    ----------
    all_
        Finish every migration that has been cut over. Exits with 4 if one of them has to wait.
    """
    return _one_or_all("finish", agent, _signed(note or why), server, all_=all_)


def _entries(client: Client, agents: tuple[str, ...]) -> list[MigrationEntry]:
    if not agents:
        return client.migration_plan().items
    return [client.migration(agent) for agent in agents]


def _checked(client: Client, names: list[str], *, active: bool) -> dict[str, JsonObject]:
    reports: dict[str, JsonObject] = {}
    with ThreadPoolExecutor(_CHECKS_AT_A_TIME) as pool:
        running = {pool.submit(_report, client, name, active=active): name for name in names}
        for done in as_completed(running):
            name = running[done]
            reports[name] = done.result()
            note(f"[{len(reports)}/{len(names)}] {name}: {reports[name]['grade']}")
    return reports


def _report(client: Client, name: str, *, active: bool) -> JsonObject:
    """An agent that cannot be checked does not keep the others from being checked."""
    try:
        return client.check_migration(name, active=active)
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


def _share(percent: float, target: TargetFlags, limits: MigrationLimitFlags, why: str) -> JsonObject:
    if not 0 < percent <= 100:
        raise CliError(
            f"--percent {percent:g} is out of range",
            fix="Use a number greater than 0, up to 100",
            exit_code=Exit.USAGE,
        )
    return {"percent": percent, "target": target.given(), "limits": limits.given(), **_signed(why)}


def _signed(why: str) -> JsonObject:
    body: JsonObject = {"why": why}
    try:
        # Where keys are in use, the server knows better.
        body["who"] = getpass.getuser()
    except (OSError, KeyError, ImportError):
        # A process without a name, in a container say.
        return body
    return body


def _one(agent: str, action: str, body: JsonObject, server: Server) -> int:
    change = server.client().migrate(action, body, agent)
    if server.json:
        print_json(change)
    else:
        print_change(change)
    return Exit.OK


def _one_or_all(action: str, agent: str | None, body: JsonObject, server: Server, *, all_: bool) -> int:
    if all_ == (agent is not None):
        raise CliError(
            "AGENT and --all cannot be combined" if all_ else f"{action} needs an agent, or --all",
            fix=f"trunkline agents migrate {action} AGENT, or: trunkline agents migrate {action} --all",
            exit_code=Exit.USAGE,
        )
    if agent is not None:
        return _one(agent, action, body, server)
    outcome: MigrationOutcome = server.client().migrate_all(action, body)
    if server.json:
        print_json(outcome)
    else:
        print_outcome(outcome)
    nothing = outcome["left_alone"] and not outcome["changed"]
    return Exit.CONFLICT if outcome["refused"] or nothing else Exit.OK
