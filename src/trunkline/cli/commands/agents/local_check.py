"""
The check of an agent at a URL, made from this process without a server.

Apart from `check`, because what it imports is slow to import.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from trunkline.agents import AUTO
from trunkline.agents.authentication.auth_config import credentials
from trunkline.agents.check_reports import DEFAULT_SAMPLE, AgentCheckReport, CheckSample
from trunkline.checker import PROTOCOLS, CheckedAgent, Checker, CheckLimits
from trunkline.cli.agent_secrets import AuthType
from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import CliError
from trunkline.cli.rendering.check_report import ProgressLine
from trunkline.jsontypes import JsonObject
from trunkline.system_clock import SystemClock
from trunkline.transports.address_policy import AddressPolicy
from trunkline.transports.https import HttpTransport

CHECKED_PROTOCOLS = (AUTO, *PROTOCOLS)
# The response to a check is short.
_MOST_ANSWER_BYTES = 1024 * 1024


class UnregisteredAgent(NamedTuple):
    """The agent to check, and its credentials."""

    url: str
    protocol: str | None
    config: JsonObject
    auth_type: AuthType
    auth: JsonObject | None


async def check_address(
    address: UnregisteredAgent, given: JsonObject, text: str | None, seconds: float, *, active: bool
) -> AgentCheckReport:
    if address.auth_type in ("oauth2", "signed"):
        raise CliError(
            f"--auth-type {address.auth_type} needs a server, which gets the tokens",
            fix="Register the agent, and check it by name",
            exit_code=Exit.USAGE,
        )
    subject = CheckedAgent(
        url=address.url,
        protocol=address.protocol or AUTO,
        protocol_config=address.config,
        credentials=credentials("agent", address.auth_type, address.auth),
        sample=CheckSample(input=given or DEFAULT_SAMPLE.input, text=text or DEFAULT_SAMPLE.text),
    )
    # The user of this machine named the address.
    policy = AddressPolicy(allow_loopback=True, allow_private=True)
    line = ProgressLine(address.url)
    async with HttpTransport(policy, max_answer_bytes=_MOST_ANSWER_BYTES) as transport:
        try:
            checker = Checker(transport, SystemClock(), CheckLimits(request_seconds=seconds))
            return await checker.check(subject, active=active, on_progress=line.show)
        finally:
            line.clear()


def read_report(answer: JsonObject) -> AgentCheckReport:
    """The report of a check that the server made."""
    return msgspec.convert(answer, AgentCheckReport)
