"""What carries the calls of agents, in one object."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from trunkline.settings import Settings
from trunkline.transports.guard import AddressPolicy
from trunkline.transports.https import HttpTransport
from trunkline.transports.switch import Switch


@asynccontextmanager
async def open_transports(settings: Settings, policy: AddressPolicy) -> AsyncGenerator[Switch]:
    async with HttpTransport(policy, max_answer_bytes=settings.max_answer_bytes) as https:
        yield Switch({"https": https})
