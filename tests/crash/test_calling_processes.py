"""The crash tests know which process has called an agent."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from asyncio.subprocess import PIPE

import pytest
from tests.crash.calling_processes import ConnectionOwners

pytestmark = pytest.mark.anyio

# Connects from a given port, says so, and holds the connection until its input ends.
_OTHER_PROCESS = """
import socket, sys
own, to = map(int, sys.argv[1:])
connection = socket.socket()
connection.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
connection.bind(("127.0.0.1", own))
connection.connect(("127.0.0.1", to))
print("connected", flush=True)
sys.stdin.read()
"""


async def test_two_processes_that_share_a_port_are_told_apart_by_where_they_lead() -> None:
    accepted: asyncio.Queue[asyncio.StreamWriter] = asyncio.Queue()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        del reader
        await accepted.put(writer)

    agent = await asyncio.start_server(accept, "127.0.0.1", 0)
    other = socket.create_server(("127.0.0.1", 0))
    with socket.socket() as connection, other:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        connection.bind(("127.0.0.1", 0))
        port = connection.getsockname()[1]
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            _OTHER_PROCESS,
            str(port),
            str(other.getsockname()[1]),
            stdin=PIPE,
            stdout=PIPE,
        )
        assert process.stdout is not None
        assert (await process.stdout.readline()).strip() == b"connected"
        connection.connect(agent.sockets[0].getsockname())
        writer = await accepted.get()

        owners = ConnectionOwners({process.pid: 1, os.getpid(): 2}, lambda: 0)
        assert owners(writer.transport) == 2

        writer.close()
        await process.communicate(b"")
    agent.close()
