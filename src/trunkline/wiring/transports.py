"""What carries the calls of agents, in one object."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from trunkline.settings import Settings
from trunkline.transports.address_policy import AddressPolicy
from trunkline.transports.aws_agentcore import AgentCoreTransport
from trunkline.transports.https import HttpTransport
from trunkline.transports.stdio import StdioTransport
from trunkline.transports.transport_router import TransportRouter


@asynccontextmanager
async def open_transports(settings: Settings, policy: AddressPolicy) -> AsyncGenerator[TransportRouter]:
    most_bytes = settings.max_answer_bytes
    async with (
        HttpTransport(policy, max_answer_bytes=most_bytes) as https,
        AgentCoreTransport(max_answer_bytes=most_bytes) as agentcore,
        StdioTransport(
            settings.stdio_commands,
            max_answer_bytes=most_bytes,
            # A zone that has accepted work finishes it first.
            end_seconds=settings.stop_timeout.total_seconds(),
        ) as stdio,
    ):
        yield TransportRouter({"https": https, "aws-agentcore": agentcore, "stdio": stdio})
