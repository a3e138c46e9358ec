"""
The distributed mode as people run it: processes of each role, a Kafka and a PostgreSQL of their own, and all of them
can be killed.

Every start of a process is a life with a number of its own; how each has ended is known, and when.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
from asyncio.subprocess import PIPE, Process
from base64 import urlsafe_b64encode
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from datetime import datetime
from pathlib import Path
from time import monotonic, time
from typing import cast

from deploy.local.kafka import KafkaProcess
from deploy.local.postgres import PostgresCluster
from deploy.local.processes import Guard
from tests.crash.history_checker import Ending, LeaseLapse
from tests.crash.server import PROGRAM, free_port
from tests.services import private_kafka, private_postgres

from trunkline.jsontypes import JsonObject, decode
from trunkline.telemetry.log_events import LEASE_LOST
from trunkline.wiring import Role

TWO_OF_EACH: Mapping[Role, int] = {"api": 2, "executor": 2, "bridge": 2}

_DATABASE = "migrated"
# Only a process that hangs takes so long.
_TIMEOUT_SECONDS = 90


class ProcessLog:
    """Every process that has been started, and what became of it."""

    def __init__(self) -> None:
        self._last = 0
        self._logs: dict[int, Path] = {}
        # Also of processes that have ended: their last requests may arrive later.
        self._by_pid: dict[int, int] = {}
        self.endings: dict[int, Ending] = {}
        self.lost_at: dict[int, float] = {}

    def begin(self, pid: int, log: Path) -> int:
        self._last += 1
        self._by_pid[pid] = self._last
        self._logs[self._last] = log
        return self._last

    def of(self, process: str) -> int:
        """The number of a process, by the name that it sends to agents."""
        return self._by_pid[int(process.rpartition(":")[2])]

    def lapsed(self) -> dict[int, list[LeaseLapse]]:
        """When each process was late to renew its lease, as its log says."""
        clocks_apart = time() - monotonic()
        return {life: list(_lapses(log, clocks_apart)) for life, log in self._logs.items()}

    def lose(self, life: int, ending: Ending) -> None:
        # What was paused once stays under suspicion.
        if life not in self.endings:
            self.endings[life] = ending
            self.lost_at[life] = monotonic()


def _lapses(log: Path, clocks_apart: float) -> Iterator[LeaseLapse]:
    for line in log.read_bytes().splitlines():
        if f'"{LEASE_LOST}"'.encode() in line:
            entry = cast("JsonObject", decode(line))
            renewed_at = datetime.fromisoformat(str(entry["timestamp"])).timestamp() - clocks_apart
            yield LeaseLapse(last_beat_at=renewed_at - cast("float", entry["seconds"]), renewed_at=renewed_at)


class FleetMember:
    """A place in the fleet: one process at a time."""

    def __init__(
        self, role: Role, name: str, folder: Path, env: Mapping[str, str], lives: ProcessLog
    ) -> None:
        self.role: Role = role
        self.name = name
        self.url: str | None = None
        self._env = env
        self._starts = 0
        self._log = folder / f"{name}.stderr"
        self._folder = folder
        self._lives = lives
        self._process: Process | None = None
        self._guard: Guard | None = None
        self._life = 0
        self.is_paused = False
        # Who asks the API has to find it again.
        self._port = free_port() if role == "api" else 0

    @property
    def life(self) -> int:
        return self._life

    @property
    def log(self) -> str:
        return self._log.read_text()

    async def begin(self) -> None:
        """Starts the process, and does not wait for anything."""
        assert self._process is None, "one life at a time"
        self._starts += 1
        self._log = self._folder / f"{self.name}-{self._starts}.stderr"
        with self._log.open("ab") as errors:
            self._process = await asyncio.create_subprocess_exec(
                str(PROGRAM), "serve", "--role", self.role, "--port", str(self._port), "--log-level", "info",
                cwd=self._folder, env=dict(self._env), stdout=PIPE, stderr=errors, start_new_session=True,
            )  # fmt: skip
        self._guard = Guard(self._process.pid, signal.SIGKILL)
        self._life = self._lives.begin(self._process.pid, self._log)
        if self._port:
            self.url = f"http://127.0.0.1:{self._port}"

    async def ready(self) -> None:
        process = self._running()
        assert process.stdout is not None
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            line = (await process.stdout.readline()).decode().strip()
        assert line.startswith("http://"), f"{self.name} did not start: {line!r}\n{self.log[-4000:]}"
        self.url = line

    async def start(self) -> None:
        await self.begin()
        await self.ready()

    def check(self) -> None:
        """Nobody dies but by our hand."""
        code = self._running().returncode
        assert code is None, f"{self.name} ended by itself with {code}:\n{self.log[-4000:]}"

    async def kill(self) -> None:
        if self._process is not None:
            if self._process.returncode is None:
                self._process.kill()
            await self._end("killed")

    def pause(self) -> None:
        """SIGSTOP. Whether it lasted longer than the lease only its end tells, so it is called a zombie at once."""
        self._running().send_signal(signal.SIGSTOP)
        self.is_paused = True
        self._lives.lose(self._life, "paused")

    def wake(self) -> None:
        self._running().send_signal(signal.SIGCONT)
        self.is_paused = False

    def ask_to_stop(self) -> None:
        self._running().send_signal(signal.SIGTERM)

    async def stopped(self, ending: Ending = "stopped") -> int:
        """Its exit code."""
        return await self._end(ending)

    async def _end(self, ending: Ending) -> int:
        process = self._running()
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            code = await process.wait()
        self._process = None
        self.is_paused = False
        self._lives.lose(self._life, ending)
        if self._guard is not None:
            self._guard.dismiss()
        return code

    def _running(self) -> Process:
        assert self._process is not None, f"{self.name} does not run"
        return self._process


class Fleet:
    """Processes; `settings` say which store and which broker."""

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        self.lives = ProcessLog()
        self.members: list[FleetMember] = []
        self._folder = folder
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("TRUNKLINE_")}
        self._env = {
            **inherited,
            "TRUNKLINE_SECRET_KEY": urlsafe_b64encode(secrets.token_bytes(32)).decode(),
            # The tests' own agents.
            "TRUNKLINE_ALLOWED_NETWORKS": "127.0.0.0/8",
            "TRUNKLINE_TOPIC_PARTITIONS": "8",
            # So that the agents know who calls.
            "TRUNKLINE_PROCESS_HEADER": "true",
            **settings,
        }

    def add(self, role: Role) -> FleetMember:
        number = 1 + len(self.of(role))
        member = FleetMember(role, f"{role}-{number}", self._folder, self._env, self.lives)
        self.members.append(member)
        return member

    def of(self, role: Role) -> list[FleetMember]:
        return [member for member in self.members if member.role == role]

    def api_urls(self) -> Sequence[str]:
        return [member.url for member in self.of("api") if member.url is not None]

    async def run(self, *command: str) -> str:
        """A command of the program, to its end."""
        process = await asyncio.create_subprocess_exec(
            str(PROGRAM), *command, cwd=self._folder, env=self._env, stdout=PIPE, stderr=PIPE
        )
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            printed, errors = await process.communicate()
        assert process.returncode == 0, f"trunkline {command}: {errors.decode()}"
        return printed.decode()

    async def start(self, sizes: Mapping[Role, int]) -> None:
        """Makes the topics, and so many processes of each role, which take work then."""
        await self.run("topics", "create")
        members = [self.add(role) for role, number in sizes.items() for _ in range(number)]
        for member in members:
            await member.begin()
        for member in members:
            await member.ready()

    async def end(self) -> None:
        for member in self.members:
            await member.kill()


class KillableFleet(Fleet):
    """On a broker and a database that can be killed too."""

    def __init__(
        self, folder: Path, kafka: KafkaProcess, postgres: PostgresCluster, settings: Mapping[str, str]
    ) -> None:
        backends = {
            "TRUNKLINE_STORE": postgres.url(_DATABASE),
            "TRUNKLINE_BROKER": f"kafka://{kafka.servers}",
        }
        super().__init__(folder, {**backends, **settings})
        self._kafka = kafka
        self._postgres = postgres
        self.database_crashes = 0
        self.broker_kills = 0
        # One crash at a time.
        self._of_database = asyncio.Lock()
        self._of_broker = asyncio.Lock()

    def query(self, sql: str) -> str:
        """What the database itself says."""
        return self._postgres.execute(sql, _DATABASE)

    async def crash_database(self) -> None:
        """Immediate: no shutdown; back when it has recovered."""
        async with self._of_database:
            self.database_crashes += 1
            await asyncio.to_thread(self._postgres.crash)
            await asyncio.to_thread(self._postgres.start)

    async def kill_broker(self) -> None:
        async with self._of_broker:
            self.broker_kills += 1
            await asyncio.to_thread(self._kafka.restart)


@asynccontextmanager
async def running_fleet(
    folder: Path, settings: Mapping[str, str], sizes: Mapping[Role, int] = TWO_OF_EACH
) -> AsyncGenerator[Fleet]:
    """All of it runs and takes work; no process is left at the end, whatever happens."""
    fleet = Fleet(folder, settings)
    try:
        await fleet.start(sizes)
        yield fleet
    finally:
        await fleet.end()


@asynccontextmanager
async def killable_fleet(
    folder: Path, sizes: Mapping[Role, int] = TWO_OF_EACH, settings: Mapping[str, str] | None = None
) -> AsyncGenerator[KillableFleet]:
    """The same on a Kafka and a PostgreSQL of its own."""
    with ExitStack() as stack:
        postgres = await asyncio.to_thread(stack.enter_context, private_postgres())
        kafka = await asyncio.to_thread(stack.enter_context, private_kafka())
        fleet = KillableFleet(folder, kafka, postgres, settings or {})
        try:
            await fleet.start(sizes)
            yield fleet
        finally:
            await fleet.end()
