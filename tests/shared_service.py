"""
Runs one service for all the workers of a test session, until the last of them is gone.

    python -m tests.shared_service kafka|postgres|AGENT|EXAMPLE FOLDER

Prints where the service is, as one line of JSON, when it is ready. It is a process of its own because the worker
that asks first may be the first to end. Each worker holds a shared lock on FOLDER/users, and the kernel releases it
however the worker ends; when we get the exclusive one, nobody is left.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import sys
from pathlib import Path

from deploy.local.errors import ServiceFailed, ServiceMissing
from deploy.local.kafka import KafkaProcess, start_kafka
from deploy.local.ports import free_port
from deploy.local.postgres import PostgresCluster, start_postgres
from tests.examples.processes import EXAMPLES, GUIDE_AGENTS, ExampleProcesses
from tests.interop.agents import KINDS, AgentProcess

USERS = "users"
STATE = "state.json"
# Instead of the state: why there is no service, so that the next worker need not try again.
FAILURE = "failure.json"
# In the folder above: whose session it is.
SESSION = "session"

# Never killed, so it should not lose its place when the machine is busy.
_LONG_SESSION = {
    "broker.session.timeout.ms": "60000",
    # A test that kills a consumer need not wait for the usual six seconds.
    "group.min.session.timeout.ms": "500",
}


Service = KafkaProcess | PostgresCluster | AgentProcess | ExampleProcesses


def start(kind: str, folder: Path) -> tuple[Service, dict[str, str | int]]:
    """The service and what its users have to know; they have `with` for it still to do."""
    if kind in KINDS:
        agent = AgentProcess(kind, folder / kind, free_port())
        agent.start()
        return agent, {"url": agent.url, "folder": str(folder / kind)}
    if kind in EXAMPLES or kind in GUIDE_AGENTS:
        example = ExampleProcesses(kind, folder / kind)
        example.start()
        return example, {**example.urls}
    if kind == "kafka":
        kafka = start_kafka(folder / "kafka", heap="384m", properties=_LONG_SESSION)
        return kafka, {"servers": kafka.servers}
    # Its log is read by few tests, and may lie in memory.
    settings = {"max_connections": "300", "max_wal_size": "256MB"}
    cluster = start_postgres(folder / "postgres", fsync=False, settings=settings)
    return cluster, {"port": cluster.port, "log": str(cluster.log)}


def main(kind: str, folder: Path) -> None:
    with (folder / USERS).open("w") as users:
        try:
            service, address = start(kind, folder)
        except (ServiceMissing, ServiceFailed) as failure:
            address = {"missing" if isinstance(failure, ServiceMissing) else "failed": str(failure)}
            sys.stdout.write(json.dumps(address) + "\n")
            return
        with service:
            sys.stdout.write(json.dumps(address) + "\n")
            sys.stdout.flush()
            fcntl.flock(users, fcntl.LOCK_EX)
        shutil.rmtree(folder / kind, ignore_errors=True)
        # Under the lock: who comes now finds no service, and starts one.
        (folder / STATE).unlink(missing_ok=True)
        _clean_up_after(folder)


def _clean_up_after(folder: Path) -> None:
    """A session that was killed has not removed its folder: the last keeper does."""
    session = folder.parent / SESSION
    try:
        os.kill(int(session.read_text()), 0)
    except ProcessLookupError:
        shutil.rmtree(folder, ignore_errors=True)
        if list(folder.parent.iterdir()) == [session]:
            shutil.rmtree(folder.parent, ignore_errors=True)
    except FileNotFoundError:
        # It has just done so.
        return


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
