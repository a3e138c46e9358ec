"""Which process is at the other end of a connection to an agent: the kernel knows (Linux)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

# How long a line of the kernel's list is, and where in it the socket's number is, from the colon on.
_LINE = 150
_INODE = 9
_MOST_KNOWN = 1_000


class ConnectionOwners:
    """Knows the lives by their process ids. One that has hung up cannot be found: `ghost` numbers it."""

    def __init__(self, lives: Mapping[int, int], ghost: Callable[[], int]) -> None:
        self._lives = lives
        self._ghost = ghost
        # The transport is kept, so that no other one gets its identity.
        self._known: dict[int, tuple[asyncio.BaseTransport, int]] = {}

    def __call__(self, transport: asyncio.BaseTransport | None) -> int:
        if transport is None:
            return self._ghost()
        known = self._known.get(id(transport))
        if known is None:
            caller: tuple[str, int] | None = transport.get_extra_info("peername")
            own: tuple[str, int] | None = transport.get_extra_info("sockname")
            found = None if caller is None or own is None else self._find(caller[1], own[1])
            known = (transport, self._ghost() if found is None else found)
            if len(self._known) > _MOST_KNOWN:
                self._known = {key: kept for key, kept in self._known.items() if not kept[0].is_closing()}
            self._known[id(transport)] = known
        return known[1]

    def _find(self, port: int, to: int) -> int | None:
        wanted = {f"socket:[{inode}]" for inode in _inodes(port, to)}
        return next((life for pid, life in self._lives.items() if wanted & _open_files(pid)), None)


def _inodes(port: int, to: int) -> Iterator[str]:
    """The sockets with this port on their own side and that one on the other."""
    # A line begins with a number, a colon, the own address and the other one; there may be thousands of lines. The own
    # port alone is not enough: the kernel gives one port to several connections that lead to different places.
    both = f": 0100007F:{port:04X} 0100007F:{to:04X} "
    sockets = Path("/proc/net/tcp").read_text()
    place = sockets.find(both)
    while place >= 0:
        # The first of them is the number's end.
        yield sockets[place : place + _LINE].split()[_INODE]
        place = sockets.find(both, place + 1)


def _open_files(pid: int) -> set[str]:
    found: set[str] = set()
    # It may end while we look, and so may each of its files.
    with suppress(FileNotFoundError, ProcessLookupError):
        for entry in os.scandir(f"/proc/{pid}/fd"):
            with suppress(FileNotFoundError, ProcessLookupError):
                found.add(os.readlink(entry.path))
    return found
