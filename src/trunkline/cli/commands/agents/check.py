"""`trunkline agents check`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter, validators

from trunkline.cli.agent_secrets import AuthType, auth_config
from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import CliError, explained
from trunkline.cli.inputs import parse_pairs
from trunkline.cli.lazy_imports import lazy_module
from trunkline.cli.options import HERE, Flag, InputPairs, Pairs, Server
from trunkline.cli.rendering.check_report import Form, print_report
from trunkline.cli.rendering.output import note

if TYPE_CHECKING:
    from trunkline.agents.check_reports import AgentCheckReport
    from trunkline.cli.commands.agents import local_check
    from trunkline.jsontypes import JsonObject
else:
    local_check = lazy_module("trunkline.cli.commands.agents.local_check")

DEFAULT_SECONDS = 10.0


def check(
    agent: Annotated[
        str, Parameter(name="URL|NAME", help="The agent's address, or its name or id in the registry.")
    ],
    /,
    *,
    protocol: str | None = None,
    active: Flag = False,
    inputs: InputPairs = (),
    text: str | None = None,
    config: Pairs = (),
    junit: Flag = False,
    md: Flag = False,
    timeout: Annotated[float | None, Parameter(validator=validators.Number(gt=0, lte=600))] = None,
    auth_type: AuthType = "none",
    auth_env: str | None = None,
    auth_file: str | None = None,
    server: Server = HERE,
) -> int:
    """
    Check whether an agent does what its protocol asks for, with evidence.

    An address is checked from here, without a server; an agent of the registry by the server, with the agent's own
    credentials, and the report is kept there. Nothing is sent that a correct agent takes for work, unless --active
    says so. Exits with 7 when a check has failed, and with 8 when only --active can tell; what each asks, and how to
    mend it: docs/reference/checks.md.

    Parameters
    ----------
    protocol
        What to check it in. Default: what its card offers, or what it is registered with.
    active
        Send real messages, too: only they show how it answers.
    inputs
        What the messages say, key=value as often as needed, for an agent that can do nothing with the usual query.
    text
        What the messages say that are plain text.
    config
        A setting of the protocol (method=message/send), as often as needed; for an address only.
    junit
        Print JUnit XML.
    md
        Print Markdown, with the checklist of the migration guide.
    timeout
        How many seconds to wait for one answer, 10 unless told; for an address only.
    auth_type
        How the agent knows us; for an address only.
    auth_env
        The environment variable with the secret.
    auth_file
        The file with the secret.
    """
    form = _form(server, junit=junit, md=md)
    _check_protocol(protocol)
    if "://" in agent:
        credentials = auth_config(auth_type, env=auth_env, file=auth_file)
        with explained():
            report = asyncio.run(
                local_check.check_address(
                    local_check.UnregisteredAgent(
                        agent, protocol, parse_pairs(config), auth_type, credentials
                    ),
                    parse_pairs(inputs),
                    text,
                    timeout or DEFAULT_SECONDS,
                    active=active,
                )
            )
    else:
        if config or auth_env or auth_file or auth_type != "none" or timeout is not None:
            raise CliError(
                "--config, --auth-… and --timeout are for an address: what is registered has its own",
                fix=f"Change the agent instead, or name its address in place of {agent}",
                exit_code=Exit.USAGE,
            )
        note(f"Checking {agent} ...")
        report = _checked_there(agent, protocol, parse_pairs(inputs), text, server, active=active)
    print_report(report, form)
    if not report.is_conclusive:
        return Exit.INCONCLUSIVE
    return Exit.OK if report.passed else Exit.INVALID


def _check_protocol(protocol: str | None) -> None:
    if protocol is None:
        return
    if protocol not in local_check.CHECKED_PROTOCOLS:
        raise CliError(
            f"There are no checks for the protocol {protocol}",
            fix=f"Choose one of {', '.join(local_check.CHECKED_PROTOCOLS)}",
            exit_code=Exit.USAGE,
        )


def _form(server: Server, *, junit: bool, md: bool) -> Form:
    flags: tuple[tuple[Form, bool], ...] = (("json", server.json), ("junit", junit), ("md", md))
    wanted: list[Form] = [form for form, is_wanted in flags if is_wanted]
    if len(wanted) > 1:
        raise CliError(
            f"--{wanted[0]} and --{wanted[1]} cannot both be printed",
            fix="Choose one of --json, --junit and --md",
            exit_code=Exit.USAGE,
        )
    return wanted[0] if wanted else "table"


def _checked_there(
    agent: str, protocol: str | None, given: JsonObject, text: str | None, server: Server, *, active: bool
) -> AgentCheckReport:
    wish: JsonObject = {"active": active, "protocol": protocol, "input": given or None, "text": text}
    return local_check.read_report(server.client().check_agent(agent, wish))
