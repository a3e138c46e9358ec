"""
File descriptors: how many the process may have, and what they are for.

Connections of clients, calls to agents and everything else (the store, files, programs, the broker) each have a share,
so that none of them can use up what another one needs.
"""

from __future__ import annotations

import resource
from typing import NamedTuple

import structlog

from trunkline.serving import ConnectionLimits
from trunkline.settings import Settings
from trunkline.telemetry import log_events

log = structlog.stdlib.get_logger()

# More than all shares together need. Programs that are agents inherit the limit, and some loop over all of it.
_WANTED_LIMIT = 65_536
# For the store (up to 18 connections with PostgreSQL), files, pipes of programs, Kafka and the event loop.
_RESERVED = 160
# More than runs at once: the limits of agents are kept by the bridge.
_MAX_CALLS = 1_024
_MIN_SHARE = 16


class DescriptorShares(NamedTuple):
    connections: int
    calls: int


def raise_descriptor_limit() -> None:
    """Raises the soft limit as far as the hard limit allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _WANTED_LIMIT if hard == resource.RLIM_INFINITY else min(hard, _WANTED_LIMIT)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def descriptor_shares(limit: int, max_connections: int) -> DescriptorShares:
    """The shares of a process that may open `limit` files."""
    free = max(limit - _RESERVED, 2 * _MIN_SHARE)
    # Refused connections hold a descriptor for a moment, too.
    calls = min(_MAX_CALLS, free // 2)
    return DescriptorShares(connections=min(max_connections, free - calls), calls=calls)


def current_shares(settings: Settings) -> DescriptorShares:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = _WANTED_LIMIT if soft == resource.RLIM_INFINITY else soft
    return descriptor_shares(limit, settings.max_connections)


def connection_limits(settings: Settings) -> ConnectionLimits:
    shares = current_shares(settings)
    if shares.connections < settings.max_connections:
        log.warning(
            log_events.OPEN_FILE_LIMIT_LOW,
            max_connections=settings.max_connections,
            accepted=shares.connections,
            fix="Raise the limit of open files (LimitNOFILE=, ulimit -n), or lower max_connections.",
        )
    return ConnectionLimits(shares.connections, settings.max_connections_per_address)
