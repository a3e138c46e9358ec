"""
A program that calls a zone with `ZoneClient`, and dies where a test says.

    python -m tests.crash.zone_client_caller URL METHOD CALLS_FILE   each line of the file: id, name, seconds of work

It makes every call in the file at once and prints a line for each end: the name, and `success` or why it failed. All
that it knows after a crash is the file. CLIENT_CRASH_POINT names the point where it kills itself with -9: see
`CRASH_POINTS`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from trunkline.agents.authentication.credentials import TlsConfig
from trunkline.jsontypes import decode
from trunkline.protocols import AgentAnswer
from trunkline.telemetry.logs import configure_logs
from trunkline.transports.address_policy import AddressPolicy
from trunkline.transports.https import HttpTransport
from trunkline.zones import ZoneCallFailed, ZoneClient

CRASH_POINT = "CLIENT_CRASH_POINT"
# In the order in which a call that is accepted comes past them.
CRASH_POINTS: Sequence[str] = (
    "before execute_task",
    "while execute_task is under way",
    "after execute_task",
    "before get_task_result",
    "while get_task_result is under way",
    "after get_task_result",
)


def _pass(point: str) -> None:
    if os.environ.get(CRASH_POINT) == point:
        os.kill(os.getpid(), signal.SIGKILL)


class CrashingTransport(HttpTransport):
    async def post(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        timeout: float,
        tls: TlsConfig | None = None,
    ) -> AgentAnswer:
        request = decode(body)
        assert isinstance(request, dict)
        name = "get_task_result" if request["method"] == "get_task_result" else "execute_task"
        _pass(f"before {name}")
        sending = asyncio.ensure_future(super().post(url, body, headers, timeout, tls))
        # Long enough to be sent, and too short for the answer to work that takes longer than that.
        await asyncio.wait([sending], timeout=0.02)
        _pass(f"while {name} is under way")
        answer = await sending
        _pass(f"after {name}")
        return answer


async def main(url: str, method: str, calls_file: Path) -> None:
    async with (
        CrashingTransport(AddressPolicy(allow_loopback=True)) as transport,
        asyncio.TaskGroup() as group,
    ):
        client = ZoneClient(transport, url, method=method)
        for line in calls_file.read_text().splitlines():
            id_, name, seconds = line.split()
            group.create_task(_call(client, id_, name, float(seconds)))
        # Now is a good time to kill it.
        _say("calling")


async def _call(client: ZoneClient, id_: str, name: str, seconds: float) -> None:
    try:
        result = await client.execute_task({"name": name, "seconds": seconds}, id=id_)
    except ZoneCallFailed as exc:
        detail = exc.error.detail
        _say(f"{name} {detail.get('reason') if isinstance(detail, dict) else exc.error.code}")
        return
    assert result["response_text"] == name, result
    _say(f"{name} {result['status']}")


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - its output


if __name__ == "__main__":
    # To stderr: its output is for the test.
    configure_logs("error", "json")
    asyncio.run(main(sys.argv[1], sys.argv[2], Path(sys.argv[3])))
