"""Ports for services that are killed and started again at the same address."""

from __future__ import annotations

import random
import socket
from pathlib import Path

_RANGE_FILE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST = 10_000
_ATTEMPTS = 200


def free_port() -> int:
    # Below the ports that the kernel gives to outgoing connections: one of those could take a service's port while
    # the service is down, and a client that keeps trying to reach it can even connect to itself.
    highest = min(int(_RANGE_FILE.read_text().split()[0]) if _RANGE_FILE.exists() else 32_768, 32_768)
    for _ in range(_ATTEMPTS):
        port = random.randrange(_LOWEST, highest) if highest > _LOWEST else 0  # noqa: S311 - no secret
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return probe.getsockname()[1]
    raise OSError("There is no free port on 127.0.0.1")
