"""
The distributed mode as processes: a private Kafka, a private PostgreSQL, and any number of each role.

Everything with its default settings, and with `fsync` on.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
from base64 import urlsafe_b64encode
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from deploy.local.errors import ServiceFailed
from deploy.local.folders import service_folder
from deploy.local.kafka import KafkaProcess, start_kafka
from deploy.local.postgres import PostgresCluster, start_postgres
from deploy.local.processes import ServiceProcess

from bench.harness.embedded import PROGRAM, Api, check_completed, drive
from bench.harness.load import LoadOrder, LoadResult
from bench.harness.processes import (
    cpu_seconds,
    family_cpu_seconds,
    family_megabytes,
    python,
    resident_megabytes,
)

ROLES = ("executor", "bridge", "api")
KAFKA = "Kafka"
POSTGRES = "PostgreSQL"
KINDS = (*ROLES, KAFKA, POSTGRES)
_CHECKOUT = Path(__file__).resolve().parents[2]
_DATABASE = "trunkline"
_START_SECONDS = 90.0
_STOP_SECONDS = 40.0


class FleetResult(NamedTuple):
    """What a number of runs took, and what each kind of process did for it; the sum is in `took`."""

    took: LoadResult
    cpu: Mapping[str, float]


class _Running(NamedTuple):
    role: str
    process: ServiceProcess
    url: str


class Fleet:
    """Kafka, PostgreSQL and the roles that run; made by `fleet`."""

    def __init__(
        self, folder: Path, postgres: PostgresCluster, kafka: KafkaProcess, stack: ExitStack
    ) -> None:
        self.folder = folder
        self.postgres = postgres
        self._kafka = kafka
        self._stack = stack
        self._running: list[_Running] = []
        self._env = {
            "TRUNKLINE_STORE": postgres.url(_DATABASE),
            "TRUNKLINE_BROKER": f"kafka://{kafka.servers}",
            "TRUNKLINE_SECRET_KEY": urlsafe_b64encode(secrets.token_bytes(32)).decode(),
            # The agent is on this machine.
            "TRUNKLINE_ALLOWED_NETWORKS": "127.0.0.0/8",
        }

    def prepare(self) -> None:
        self.postgres.create_database(_DATABASE)
        for command in (["db", "upgrade"], ["topics", "create"]):
            self._run(command)

    def add_one_of_each(self, *, sampled: bool = False) -> None:
        started = [(role, self._start(role, sampled=sampled)) for role in ROLES]
        for role, (process, printed) in started:
            process.wait_until(lambda file=printed: file.read_text().endswith("\n"), _START_SECONDS, role)
            self._running.append(_Running(role, process, printed.read_text().strip()))

    def stop_roles(self) -> list[tuple[str, Path]]:
        """Ends them all, the API first; gives their logs."""
        logs = [(running.role, running.process.log) for running in self._running]
        for running in reversed(self._running):
            running.process.end(signal.SIGTERM, _STOP_SECONDS)
        self._running.clear()
        return logs

    async def set_up(self, agent_url: str) -> None:
        await Api(self._urls[0]).set_up(agent_url)

    async def measure(self, order: LoadOrder) -> FleetResult:
        """The job, each run to its end, dealt out to the APIs in turn."""
        before = self._cpu()
        took = await drive([Api(url).job for url in self._urls], order, check_completed)
        cpu = {kind: seconds - before[kind] for kind, seconds in self._cpu().items()}
        took.cpu_seconds = sum(cpu.values())
        return FleetResult(took, cpu)

    def postgres_cpu(self) -> float:
        return family_cpu_seconds(self.postgres.pid)

    def wal_syncs(self) -> int:
        """How often PostgreSQL has waited for the disk for its log, since its start."""
        return int(self.postgres.execute("SELECT wal_sync FROM pg_stat_wal"))

    def megabytes(self) -> dict[str, float]:
        return {
            **self._of_roles(resident_megabytes),
            KAFKA: resident_megabytes(self._kafka.pid),
            POSTGRES: family_megabytes(self.postgres.pid),
        }

    @property
    def _urls(self) -> list[str]:
        return [running.url for running in self._running if running.role == "api"]

    def _cpu(self) -> dict[str, float]:
        return {
            **self._of_roles(cpu_seconds),
            KAFKA: cpu_seconds(self._kafka.pid),
            POSTGRES: self.postgres_cpu(),
        }

    def _of_roles(self, figure: Callable[[int], float]) -> dict[str, float]:
        return {
            role: sum(figure(running.process.pid) for running in self._running if running.role == role)
            for role in ROLES
        }

    def _start(self, role: str, *, sampled: bool) -> tuple[ServiceProcess, Path]:
        name = f"{role}-{sum(running.role == role for running in self._running) + 1}"
        command = (
            python("bench.profiling.sampled_role", role)
            if sampled
            else [str(PROGRAM), "serve", "--role", role, "--port", "0"]
        )
        printed = self.folder / f"{name}.url"
        # The process runs in its folder; the sampler is in the checkout.
        env = {**self._env, "PYTHONPATH": str(_CHECKOUT)} if sampled else self._env
        process = ServiceProcess(
            command, self.folder / f"{name}.log", env=env, stdout=printed, last_signal=signal.SIGTERM
        )
        self._stack.callback(_stop_if_running, process)
        return process, printed

    def _run(self, command: Sequence[str]) -> None:
        done = subprocess.run(
            [str(PROGRAM), *command],
            cwd=self.folder,
            env={**os.environ, **self._env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_START_SECONDS,
            check=False,
        )
        if done.returncode != 0:
            raise ServiceFailed(f"trunkline {' '.join(command)} failed:\n{done.stdout}{done.stderr}".rstrip())


def _stop_if_running(process: ServiceProcess) -> None:
    if process.running:
        process.end(signal.SIGTERM, _STOP_SECONDS)


@contextmanager
def fleet() -> Generator[Fleet]:
    """Kafka and PostgreSQL with an empty database and the topics, no role yet. Raises `ServiceMissing`."""
    with ExitStack() as stack:
        folder = stack.enter_context(service_folder("bench"))
        postgres = stack.enter_context(start_postgres(folder / "postgres"))
        kafka = stack.enter_context(start_kafka(folder / "kafka", quick=False))
        started = Fleet(folder, postgres, kafka, stack)
        started.prepare()
        print(f"  Kafka and PostgreSQL run in {folder}", file=sys.stderr)
        yield started
