"""`trunkline agents migrate`: from one protocol or address to another, and back."""

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
from trunkline.cli.options import HERE, AgentArgument, Flag, Pairs, Server
from trunkline.cli.rendering.migration import (
    print_agent_events,
    print_blockers,
    print_change,
    print_outcome,
    print_plan,
    print_status,
)
from trunkline.cli.rendering.output import Cell, note, print_json, print_table

if TYPE_CHECKING:
    from trunkline.api.resources.migration import MigrationEntry, MigrationOutcome
    from trunkline.cli.client import Client
    from trunkline.jsontypes import Json, JsonObject

OneName = Annotated[str | None, Parameter(name="AGENT", show_default=False)]

_CHECKS_AT_A_TIME = 8
_SHOWN_DIFFERENCES = 20
# A side that could not be checked at all.
_NOT_CHECKED = "-"
OneOrAll = Annotated[str | None, Parameter(name="AGENT", show_default=False, help="The agent's name or id.")]
All = Annotated[bool, Parameter(name="--all", negative="", show_default=False)]
Why = Annotated[str, Parameter(show_default=False)]
Percent = Annotated[float, Parameter(help="Of the runs that begin from now on: more than 0, up to 100.")]

app = App(
    name="migrate",
    help="Move agents to another protocol or address: plan, check, shadow, canary, cutover, rollback, finish.",
    version_flags=[],
)


@app.command(name="plan")
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


@app.command(name="check")
def check(
    *agents: Annotated[str, Parameter(name="AGENT")], active: Flag = False, server: Server = HERE
) -> int:
    """
    Check where agents are to move to, several at a time, without giving them work.

    An agent that moves nowhere is checked where it is. The reports are kept. Exits with 7 when a check has failed.

    Parameters
    ----------
    agents
        Only these. Default: all.
    active
        Send real messages, too: only they show how the agent answers, and which form of the input it reads.
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


@app.command(name="history")
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


@Parameter(name="*")
@dataclass(frozen=True)
class TargetFlags:
    """Where an agent is to move to."""

    to: Annotated[
        str | None,
        Parameter(
            help="A URL or a protocol. Default: as named before, or jsonrpc-2.0 at the agent's own URL."
        ),
    ] = None
    protocol: Annotated[str | None, Parameter(help="What is spoken there, if --to is a URL.")] = None
    config: Annotated[
        Pairs, Parameter(help="key=value of the new side's protocol_config, as often as needed.")
    ] = ()

    def given(self) -> JsonObject:
        is_url = self.to is not None and ":" in self.to
        if self.to is not None and not is_url and self.protocol is not None:
            raise CliError(
                "--to names a protocol, and so does --protocol",
                fix="Give a URL with --to, or leave --protocol out",
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
    """When the new side is not good enough; what is left out stays as it is."""

    disagreement: Annotated[
        float | None, Parameter(help="The share of compared answers that may disagree. First: 0.01.")
    ] = None
    comparisons: Annotated[
        int | None, Parameter(help="Answers to compare before a cutover, while it is shadowed. First: 20.")
    ] = None
    error_rate: Annotated[
        float | None, Parameter(help="Roll back when more than this share of calls fails. First: 0.1.")
    ] = None
    window: Annotated[int | None, Parameter(help="Of the last so many calls. First: 50.")] = None
    calls: Annotated[int | None, Parameter(help="Of so many at least. First: 10.")] = None
    slowdown: Annotated[
        float | None, Parameter(help="Roll back when it is so many times as slow. First: 3.")
    ] = None
    slowest_ms: Annotated[
        int | None, Parameter(help="Roll back when 95 % of the calls take longer than this. First: never.")
    ] = None

    def given(self) -> JsonObject:
        limits: dict[str, Json] = {name: value for name, value in vars(self).items() if value is not None}
        for name, value in limits.items():
            if isinstance(value, float) and not math.isfinite(value):
                raise CliError(
                    f"--{name.replace('_', '-')} is {value:g}, which is no limit",
                    fix="Give a number, or leave it out",
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
    note: str,
    target: TargetFlags = NO_TARGET,
    why: Why = "",
    server: Server = HERE,
) -> int:
    """
    Attest what no program can check: deployed, documented, team told.

    May also say where the agent is to move to, for those that are cut over without shadow or canary.

    Parameters
    ----------
    note
        What was done, and by whom.
    why
        For those who read it later. Default: the note.
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
    why: Why = "",
    server: Server = HERE,
) -> int:
    """
    Send the input of some runs beside to the new side, and compare what it answers.

    No run notices: its answers come from the old side. Only for agents that are registered as repeatable.

    Parameters
    ----------
    why
        For those who read it later.
    """
    return _one(agent, "shadow", _share(percent, target, limits, why), server)


@app.command(name="canary")
def canary(
    agent: AgentArgument,
    /,
    *,
    percent: Percent,
    target: TargetFlags = NO_TARGET,
    limits: MigrationLimitFlags = NO_LIMITS,
    why: Why = "",
    server: Server = HERE,
) -> int:
    """
    Let a share of the runs call the new side, and no other.

    A run keeps the side that it has begun with. When calls fail or get slow beyond the limits, the agent is rolled back
    by itself.

    Parameters
    ----------
    why
        For those who read it later.
    """
    return _one(agent, "canary", _share(percent, target, limits, why), server)


@app.command(name="cutover")
def cutover(
    agent: OneOrAll = None, /, *, all_: All = False, force: Flag = False, why: Why = "", server: Server = HERE
) -> int:
    """
    Let all runs that begin from now on call the new side.

    Exits with 4, and every reason, while the new side is not ready: its check fails, the two sides disagree, nobody has
    attested it.

    Parameters
    ----------
    all_
        Every agent that speaks Simple A2A or is in the middle of a migration: all of them, or none.
    force
        Do it all the same; --why must say why.
    why
        For those who read it later.
    """
    body: JsonObject = {"force": force, **_signed(why)}
    return _one_or_all("cutover", agent, body, server, all_=all_)


@app.command(name="rollback")
def rollback(agent: OneOrAll = None, /, *, why: str, all_: All = False, server: Server = HERE) -> int:
    """
    Let all runs that begin from now on call the old side again.

    Runs under way stay where they have begun. The new side has to be attested again (ready) before the next cutover.
    Exits with 4 where the old side is gone: the migration was finished.

    Parameters
    ----------
    why
        For those who read it later.
    all_
        Every agent that still has an old side. Those that are finished are named and left alone; exits with 4 only
        when there is no other.
    """
    return _one_or_all("rollback", agent, _signed(why), server, all_=all_)


@app.command(name="finish")
def finish(agent: OneOrAll = None, /, *, all_: All = False, why: Why = "", server: Server = HERE) -> int:
    """
    Register an agent as its new side; there is no way back from there.

    Exits with 4 while runs that were accepted before the cutover are unfinished.

    Parameters
    ----------
    all_
        Every agent that has been cut over, and no other. Exits with 4 when one of them has to wait.
    why
        For those who read it later.
    """
    return _one_or_all("finish", agent, _signed(why), server, all_=all_)


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
    """One that cannot be checked keeps nobody from checking the others."""
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
            f"--percent is {percent:g}, which is no share of the runs",
            fix="Give a number that is more than 0, up to 100",
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
            f"{action} is for one agent or for --all, not both"
            if all_
            else f"{action} needs an agent, or --all",
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
