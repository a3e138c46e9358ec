"""`trunkline agents check`."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from trunkline.cli.agent_secrets import AuthType, auth_config
from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import CliError, explained
from trunkline.cli.inputs import parse_pairs
from trunkline.cli.lazy_imports import lazy_module
from trunkline.cli.options import (
    HERE,
    Duration,
    FileText,
    Flag,
    InputPairs,
    Pairs,
    Server,
    Variable,
    check_at_most,
)
from trunkline.cli.rendering.check_report import Form, print_report
from trunkline.cli.rendering.output import note

if TYPE_CHECKING:
    import asyncio

    from trunkline.agents.check_reports import AgentCheckReport
    from trunkline.cli.commands.agents import local_check
    from trunkline.jsontypes import JsonObject
else:
    asyncio = lazy_module("asyncio")
    local_check = lazy_module("trunkline.cli.commands.agents.local_check")

DEFAULT_TIMEOUT = timedelta(seconds=10)
MAX_TIMEOUT = timedelta(minutes=10)


def check(
    agent: Annotated[
        str, Parameter(name="URL|NAME", help="URL of the agent, or name or ID of a registered agent.")
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
    timeout: Duration = None,
    auth_type: AuthType = "none",
    auth_env: Variable = None,
    auth_file: FileText = None,
    server: Server = HERE,
) -> int:
    """
    Check whether an agent implements its protocol.

    A URL is checked from here, without a server. A registered agent is checked by the server, with the agent's
    credentials, and the report is stored. Without --active, the agent receives no work. Exits with 7 if a check fails,
    and with 8 if the result needs --active. docs/reference/checks.md describes the checks and how to fix them.

    Parameters
    ----------
    protocol
        Protocol to check. Default: the protocol that the agent card offers, or that the agent is registered with.
    active
        Also send real messages, to check the responses.
    inputs
        Field of the messages as key=value. Can be repeated. For agents that cannot handle the default query.
    text
        Text of the plain-text messages.
    config
        key=value in the protocol configuration, such as method=message/send. Can be repeated. Only for a URL.
    junit
        Print JUnit XML.
    md
        Print Markdown, with the checklist of the migration guide.
    timeout
        Timeout of a request, such as 10s, up to 10m. Default: 10s. Only for a URL.
    auth_type
        Authentication type. Only for a URL.
    auth_env
        Environment variable that contains the secret.
    auth_file
        File that contains the secret.
    """
    form = _form(server, junit=junit, md=md)
    check_at_most("--timeout", timeout, MAX_TIMEOUT)
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
                    (timeout or DEFAULT_TIMEOUT).total_seconds(),
                    active=active,
                )
            )
    else:
        if config or auth_env or auth_file or auth_type != "none" or timeout is not None:
            raise CliError(
                "--config, --auth-type, --auth-env, --auth-file and --timeout need a URL",
                fix=f"Change the agent instead: trunkline agents update {agent}",
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
            f"No checks for the protocol {protocol}",
            fix=f"Choose one of: {', '.join(local_check.CHECKED_PROTOCOLS)}",
            exit_code=Exit.USAGE,
        )


def _form(server: Server, *, junit: bool, md: bool) -> Form:
    flags: tuple[tuple[Form, bool], ...] = (("json", server.json), ("junit", junit), ("md", md))
    wanted: list[Form] = [form for form, is_wanted in flags if is_wanted]
    if len(wanted) > 1:
        raise CliError(
            f"--{wanted[0]} and --{wanted[1]} cannot be combined",
            fix="Use one of --json, --junit and --md",
            exit_code=Exit.USAGE,
        )
    return wanted[0] if wanted else "table"


def _checked_there(
    agent: str, protocol: str | None, given: JsonObject, text: str | None, server: Server, *, active: bool
) -> AgentCheckReport:
    wanted: JsonObject = {"active": active, "protocol": protocol, "input": given or None, "text": text}
    return local_check.read_report(server.client().check_agent(agent, wanted))
