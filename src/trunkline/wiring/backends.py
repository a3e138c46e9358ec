"""The backends that the settings choose: the place for large files, and the transports to agents."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from trunkline.errors import ConfigurationError
from trunkline.services.callbacks.sender import MAX_QUEUES_AT_ONCE
from trunkline.services.events.sources import EventSource, event_sources
from trunkline.settings import Settings, is_loopback
from trunkline.stores.blobs import BlobStore
from trunkline.stores.blobs.folder import BlobFolder
from trunkline.transports.address_policy import AddressPolicy
from trunkline.transports.answer_memory import MemoryBudget
from trunkline.transports.aws_agentcore import AgentCoreTransport
from trunkline.transports.base import Transport
from trunkline.transports.https import HttpTransport
from trunkline.transports.stdio import StdioTransport
from trunkline.transports.transport_router import TransportRouter
from trunkline.wiring.descriptors import current_shares

_S3 = "s3://"


def configured_sources(settings: Settings) -> list[EventSource]:
    """Raises `ConfigurationError`."""
    names = settings.topics
    own = [names.tasks, names.results, names.events, names.commands]
    own += [names.tasks_of(settings.pool)]
    servers = settings.kafka_servers if settings.uses_kafka else None
    return event_sources(settings.sources, servers=servers, own_topics=own)


def open_blobs(settings: Settings) -> BlobStore | None:
    """None: everything stays in the outputs. The folders of several processes would not be one place."""
    place = settings.blobs
    if place is None:
        return None if settings.uses_postgres else BlobFolder(settings.data / "blobs")
    if not place.startswith(_S3):
        return BlobFolder(Path(place))
    bucket, _, prefix = place.removeprefix(_S3).partition("/")
    if not bucket:
        raise ConfigurationError(
            f"'{place}' does not name an S3 bucket.",
            fix="Set TRUNKLINE_BLOBS to s3://bucket or s3://bucket/prefix.",
        )
    try:
        from trunkline.stores.blobs.bucket import BlobBucket  # noqa: PLC0415 - its library is an extra
    except ModuleNotFoundError as exc:
        raise ConfigurationError(
            "TRUNKLINE_BLOBS is an S3 bucket, but botocore is not installed.",
            fix='Install it: pip install "trunkline[s3]".',
        ) from exc
    return BlobBucket(bucket, prefix)


@asynccontextmanager
async def open_transports(
    settings: Settings, policy: AddressPolicy, memory: MemoryBudget
) -> AsyncGenerator[TransportRouter]:
    most_bytes = settings.max_answer_bytes
    async with (
        HttpTransport(
            policy, max_answer_bytes=most_bytes, limit=current_shares(settings).calls, memory=memory
        ) as https,
        AgentCoreTransport(max_answer_bytes=most_bytes) as agentcore,
        StdioTransport(
            settings.stdio_commands,
            max_answer_bytes=most_bytes,
            # A zone that has accepted work finishes it first.
            end_seconds=settings.stop_timeout.total_seconds(),
        ) as stdio,
    ):
        yield TransportRouter({"https": https, "aws-agentcore": agentcore, "stdio": stdio})


def trusts_callers(settings: Settings, *, alone: bool) -> bool:
    """Whether the addresses that callers choose may be those that agents may have."""
    return not alone or (is_loopback(settings.host) and not settings.require_keys)


def push_policy(settings: Settings) -> AddressPolicy:
    return AddressPolicy(settings.allowed_networks)


@asynccontextmanager
async def open_push_transport(
    settings: Settings, transport: Transport, memory: MemoryBudget, *, alone: bool
) -> AsyncGenerator[Transport]:
    """
    For addresses that callers choose. Calls public addresses and `allowed_networks`.

    `transport`: the one to agents. It is used where it allows no more (not `alone`) or all callers are on this machine.
    """
    if trusts_callers(settings, alone=alone):
        yield transport
        return
    async with HttpTransport(
        push_policy(settings),
        max_answer_bytes=settings.max_answer_bytes,
        limit=MAX_QUEUES_AT_ONCE,
        memory=memory,
    ) as guarded:
        yield guarded
