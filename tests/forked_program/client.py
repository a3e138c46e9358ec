"""
Stands for a process of `trunkline` that the server forks: passes signals on to it, and ends as it ends.

    python -I -S client.py SOCKET ARGUMENT...

It imports little, because it is what a start costs.
"""

import marshal
import os
import signal
import socket
import sys
from array import array


def main(path: str, arguments: list[str]) -> None:
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.connect(path)
    start = marshal.dumps((arguments, dict(os.environ), os.getcwd()))
    streams = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", [0, 1, 2]))]
    sent = server.sendmsg([len(start).to_bytes(4, "big")], streams)
    assert sent == 4
    server.sendall(start)
    process = int.from_bytes(_exactly(server, 4), "big")

    def pass_on(number: int, _: object) -> None:
        os.kill(process, number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, pass_on)
    status = int.from_bytes(_exactly(server, 4), "big", signed=True)
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


def _exactly(server: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        part = server.recv(size - len(received))
        if not part:
            raise SystemExit("The server that forks for each start has ended.")
        received += part
    return received


main(sys.argv[1], sys.argv[2:])
