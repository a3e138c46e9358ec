"""`trunkline agents check`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, NamedTuple

from cyclopts import Parameter, validators

from trunkline.cli.agent_secrets import AuthType, auth_config
from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import CliError, explained
from trunkline.cli.inputs import parse_pairs
from trunkline.cli.options import HERE, Flag, InputPairs, Pairs, Server
from trunkline.cli.rendering.check_report import Form, ProgressLine, print_report
from trunkline.cli.rendering.output import note

if TYPE_CHECKING:
    from trunkline.agents.check_reports import Report
    from trunkline.jsontypes import JsonObject

DEFAULT_SECONDS = 10.0
# An answer to a check is short; a server that sends more is found out by that.
_MOST_ANSWER_BYTES = 1024 * 1024


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
    says so. Exits with 7 when a check has failed; what each asks, and how to mend it: docs/reference/checks.md.

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
                _check_here(
                    _Address(agent, protocol, parse_pairs(config), auth_type, credentials),
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
    return Exit.OK if report.passed else Exit.INVALID


def _check_protocol(protocol: str | None) -> None:
    if protocol is None:
        return
    from trunkline.agents import AUTO  # noqa: PLC0415  (heavy; most calls name none)
    from trunkline.checker import PROTOCOLS  # noqa: PLC0415  (as above)

    if protocol not in (AUTO, *PROTOCOLS):
        raise CliError(
            f"There are no checks for the protocol {protocol}",
            fix=f"Choose one of {', '.join((AUTO, *PROTOCOLS))}",
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
) -> Report:
    import msgspec  # noqa: PLC0415  (few commands need it)

    from trunkline.agents.check_reports import Report  # noqa: PLC0415  (as above)

    wish: JsonObject = {"active": active, "protocol": protocol, "input": given or None, "text": text}
    return msgspec.convert(server.client().check_agent(agent, wish), Report)


class _Address(NamedTuple):
    """Where to check, and how to get in."""

    url: str
    protocol: str | None
    config: JsonObject
    auth_type: AuthType
    auth: JsonObject | None


async def _check_here(
    address: _Address, given: JsonObject, text: str | None, seconds: float, *, active: bool
) -> Report:
    # Heavy; few commands need it.
    from trunkline.agents import AUTO  # noqa: PLC0415
    from trunkline.agents.auth import credentials  # noqa: PLC0415
    from trunkline.agents.check_reports import USUAL, Sample  # noqa: PLC0415
    from trunkline.checker import Checker, Limits, Subject  # noqa: PLC0415
    from trunkline.system_clock import SystemClock  # noqa: PLC0415
    from trunkline.transports.address_policy import AddressPolicy  # noqa: PLC0415
    from trunkline.transports.https import HttpTransport  # noqa: PLC0415

    if address.auth_type in ("oauth2", "signed"):
        raise CliError(
            f"--auth-type {address.auth_type} needs a server, which gets or makes the tokens",
            fix="Register the agent with it, and check it by its name",
            exit_code=Exit.USAGE,
        )
    subject = Subject(
        url=address.url,
        protocol=address.protocol or AUTO,
        protocol_config=address.config,
        credentials=credentials("agent", address.auth_type, address.auth),
        sample=Sample(input=given or USUAL.input, text=text or USUAL.text),
    )
    # Whoever calls this is on this machine, and means what they name.
    policy = AddressPolicy(allow_loopback=True, allow_private=True)
    line = ProgressLine(address.url)
    async with HttpTransport(policy, max_answer_bytes=_MOST_ANSWER_BYTES) as transport:
        try:
            checker = Checker(transport, SystemClock(), Limits(request_seconds=seconds))
            return await checker.check(subject, active=active, on_progress=line.show)
        finally:
            line.clear()
