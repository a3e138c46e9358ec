"""
How each system is started: its worker, which does the job, and the server that it needs, if any.

Each is used as its documentation recommends, with its own defaults, on ports and in folders of this measurement.
"""

from __future__ import annotations

import shutil
import signal
import urllib.error
import urllib.request
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from deploy.local.ports import free_port
from deploy.local.processes import ServiceProcess

from bench.harness.environment import BenchEnvironment
from bench.harness.fleet import Fleet
from bench.harness.load import LoadOrder, LoadResult, give_order
from bench.harness.processes import Child, child, family_cpu_seconds, family_megabytes, python

_START_SECONDS = 120.0
_STOP_SECONDS = 20.0


class PeerMissing(Exception):
    """A program that the system needs is not installed; the message says which one."""


@dataclass(frozen=True)
class PeerInstallation:
    """What all of them share, and where their packages are."""

    environment: BenchEnvironment
    fleet: Fleet
    python: str
    # With node_modules/.bin, for servers that come as npm packages.
    node_folder: Path

    def worker(
        self, job: str, *arguments: str, env: Mapping[str, str] | None = None
    ) -> AbstractContextManager[Child]:
        command = [
            self.python,
            *python(f"bench.peers.jobs.{job}_job", self.environment.agent_url, *arguments)[1:],
        ]
        if env:
            command = ["env", *(f"{name}={value}" for name, value in env.items()), *command]
        return child(command, self.fleet.folder / f"{job}.log")

    def database(self, name: str) -> str:
        self.fleet.postgres.create_database(name)
        return self.fleet.postgres.url(name)

    @contextmanager
    def server(
        self, name: str, command: Sequence[str], env: Mapping[str, str], ready_url: str
    ) -> Generator[ServiceProcess]:
        folder = self.environment.new_folder()
        process = ServiceProcess(command, folder / f"{name}.log", env=env, last_signal=signal.SIGTERM)
        try:
            process.wait_until(lambda: _answers(ready_url), _START_SECONDS, name)
            yield process
        finally:
            if process.running:
                process.end(signal.SIGTERM, _STOP_SECONDS)


class Peer:
    """A system that is running and takes orders."""

    def __init__(
        self, worker: Child, *, postgres: Fleet | None = None, server: ServiceProcess | None = None
    ) -> None:
        self._worker = worker
        self._postgres = postgres
        self._server = server

    def measure(self, order: LoadOrder) -> LoadResult:
        """The CPU time is that of its worker, its server and PostgreSQL together."""
        before = self._other_cpu()
        took = give_order(self._worker, order)
        took.cpu_seconds += self._other_cpu() - before
        return took

    def megabytes(self) -> float:
        total = self._worker.resident_megabytes()
        if self._server is not None:
            total += family_megabytes(self._server.pid)
        if self._postgres is not None:
            total += family_megabytes(self._postgres.postgres.pid)
        return total

    def _other_cpu(self) -> float:
        total = 0.0
        if self._server is not None:
            total += family_cpu_seconds(self._server.pid)
        if self._postgres is not None:
            total += self._postgres.postgres_cpu()
        return total


@contextmanager
def floor(installation: PeerInstallation) -> Generator[Peer]:
    database = installation.database("floor")
    command = python("bench.floors.postgres", installation.environment.agent_url, database)
    with child(command, installation.fleet.folder / "floor.log") as worker:
        yield Peer(worker, postgres=installation.fleet)


@contextmanager
def floor_sqlite(installation: PeerInstallation) -> Generator[Peer]:
    file = installation.environment.new_folder() / "floor.db"
    command = python("bench.floors.sqlite", installation.environment.agent_url, str(file))
    with child(command, installation.fleet.folder / "floor-sqlite.log") as worker:
        yield Peer(worker)


@contextmanager
def dbos(installation: PeerInstallation) -> Generator[Peer]:
    with installation.worker("dbos", installation.database("dbos")) as worker:
        yield Peer(worker, postgres=installation.fleet)


@contextmanager
def dbos_sqlite(installation: PeerInstallation) -> Generator[Peer]:
    file = installation.environment.new_folder() / "dbos.db"
    with installation.worker("dbos", f"sqlite:///{file}") as worker:
        yield Peer(worker)


@contextmanager
def langgraph(installation: PeerInstallation) -> Generator[Peer]:
    with installation.worker("langgraph", installation.database("langgraph")) as worker:
        yield Peer(worker, postgres=installation.fleet)


@contextmanager
def langgraph_sqlite(installation: PeerInstallation) -> Generator[Peer]:
    file = installation.environment.new_folder() / "langgraph.db"
    with installation.worker("langgraph", str(file)) as worker:
        yield Peer(worker)


@contextmanager
def restate(installation: PeerInstallation) -> Generator[Peer]:
    program = installation.node_folder / "node_modules/.bin/restate-server"
    if not program.exists():
        raise PeerMissing("restate-server is not installed. It comes as an npm package and needs Node.js.")
    node_port, admin_port, ingress_port = free_port(), free_port(), free_port()
    admin_url = f"http://127.0.0.1:{admin_port}"
    env = {
        "RESTATE_BASE_DIR": str(installation.environment.new_folder()),
        "RESTATE_LISTEN_MODE": "tcp",
        "RESTATE_BIND_ADDRESS": f"127.0.0.1:{node_port}",
        "RESTATE_ADMIN__BIND_ADDRESS": f"127.0.0.1:{admin_port}",
        "RESTATE_INGRESS__BIND_ADDRESS": f"127.0.0.1:{ingress_port}",
        "RESTATE_DISABLE_TELEMETRY": "true",
    }
    ingress_url = f"http://127.0.0.1:{ingress_port}"
    with (
        installation.server("restate", [str(program)], env, f"{admin_url}/health") as server,
        installation.worker("restate", admin_url, ingress_url, str(free_port())) as worker,
    ):
        yield Peer(worker, server=server)


@contextmanager
def prefect(installation: PeerInstallation) -> Generator[Peer]:
    port = str(free_port())
    url = f"http://127.0.0.1:{port}/api"
    # On SQLite, its default, its server refuses requests when 50 flows run at a time.
    database = installation.database("prefect").replace("postgresql:", "postgresql+asyncpg:", 1)
    env = {
        "PREFECT_SERVER_DATABASE_CONNECTION_URL": database,
        "PREFECT_HOME": str(installation.environment.new_folder()),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_LOGGING_LEVEL": "WARNING",
    }
    program = str(Path(installation.python).with_name("prefect"))
    command = [program, "server", "start", "--host", "127.0.0.1", "--port", port]
    with (
        installation.server("prefect", command, env, f"{url}/health") as server,
        installation.worker("prefect", env={**env, "PREFECT_API_URL": url}) as worker,
    ):
        yield Peer(worker, postgres=installation.fleet, server=server)


@contextmanager
def temporal(installation: PeerInstallation) -> Generator[Peer]:
    program = shutil.which("temporal")
    if program is None:
        raise PeerMissing("The program `temporal` is not on the PATH. Install Temporal's command line.")
    port, http_port = str(free_port()), str(free_port())
    file = installation.environment.new_folder() / "temporal.db"
    command = [program, "server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", port]
    command += ["--http-port", http_port, "--db-filename", str(file), "--log-level", "error"]
    ready = f"http://127.0.0.1:{http_port}/api/v1/namespaces/default"
    with (
        installation.server("temporal", command, {}, ready) as server,
        installation.worker("temporal", f"127.0.0.1:{port}") as worker,
    ):
        yield Peer(worker, server=server)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as response:  # noqa: S310 - our own loopback
            return response.status == 200
    except (urllib.error.URLError, TimeoutError, ConnectionError):
        return False


FLOOR = "floor, PostgreSQL"
# In the order of the table. The floor is the hand-written loop that all are compared with.
PEERS: Mapping[str, Callable[[PeerInstallation], AbstractContextManager[Peer]]] = {
    FLOOR: floor,
    "floor, SQLite": floor_sqlite,
    "DBOS, PostgreSQL": dbos,
    "DBOS, SQLite": dbos_sqlite,
    "LangGraph, PostgreSQL": langgraph,
    "LangGraph, SQLite": langgraph_sqlite,
    "Restate": restate,
    "Temporal dev server": temporal,
    "Prefect, PostgreSQL": prefect,
}
