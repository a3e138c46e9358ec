"""`trunkline agents migrate ready`, `shadow`, `canary`, `cutover`, `rollback` and `finish`: steps of a migration."""

from __future__ import annotations

import getpass
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import CliError
from trunkline.cli.inputs import parse_pairs
from trunkline.cli.options import HERE, AgentArgument, Flag, Pairs, Server
from trunkline.cli.rendering.migration import print_change, print_outcome
from trunkline.cli.rendering.output import print_json

if TYPE_CHECKING:
    from trunkline.cli.migration_answers import Outcome
    from trunkline.jsontypes import Json, JsonObject

OneOrAll = Annotated[str | None, Parameter(name="AGENT", show_default=False, help="The agent's name or id.")]
All = Annotated[bool, Parameter(name="--all", negative="", show_default=False)]
Why = Annotated[str, Parameter(show_default=False)]
Percent = Annotated[float, Parameter(help="Of the runs that begin from now on: more than 0, up to 100.")]


@Parameter(name="*")
@dataclass(frozen=True)
class Aim:
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

    def target(self) -> JsonObject:
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
class LimitFlags:
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


HERE_AND_NOW = Aim()
AS_BEFORE = LimitFlags()


def ready(
    agent: AgentArgument, /, *, note: str, aim: Aim = HERE_AND_NOW, why: Why = "", server: Server = HERE
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
    named = aim != HERE_AND_NOW
    body: JsonObject = {"note": note, **({"target": aim.target()} if named else {}), **_signed(why)}
    return _one(agent, "ready", body, server)


def shadow(
    agent: AgentArgument,
    /,
    *,
    percent: Percent,
    aim: Aim = HERE_AND_NOW,
    limits: LimitFlags = AS_BEFORE,
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
    return _one(agent, "shadow", _trial(percent, aim, limits, why), server)


def canary(
    agent: AgentArgument,
    /,
    *,
    percent: Percent,
    aim: Aim = HERE_AND_NOW,
    limits: LimitFlags = AS_BEFORE,
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
    return _one(agent, "canary", _trial(percent, aim, limits, why), server)


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


def _trial(percent: float, aim: Aim, limits: LimitFlags, why: str) -> JsonObject:
    if not 0 < percent <= 100:
        raise CliError(
            f"--percent is {percent:g}, which is no share of the runs",
            fix="Give a number that is more than 0, up to 100",
            exit_code=Exit.USAGE,
        )
    return {"percent": percent, "target": aim.target(), "limits": limits.given(), **_signed(why)}


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
    outcome: Outcome = server.client().migrate_all(action, body)
    if server.json:
        print_json(outcome)
    else:
        print_outcome(outcome)
    nothing = outcome["left_alone"] and not outcome["changed"]
    return Exit.CONFLICT if outcome["refused"] or nothing else Exit.OK
