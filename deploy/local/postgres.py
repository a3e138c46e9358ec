"""A private PostgreSQL cluster in a folder: made, started, crashed, started again."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from deploy.local.errors import ServiceFailed, ServiceMissing
from deploy.local.ports import free_port
from deploy.local.processes import ServiceProcess, wait_until

# Recovery after a crash included, on a busy machine.
START_SECONDS = 60.0
STOP_SECONDS = 20.0
_COMMAND_SECONDS = 120.0
_PORT_ATTEMPTS = 5
_PORT_TAKEN = "could not bind IPv4 address"
# Backends of a killed postmaster need a moment to notice that it is gone.
_STILL_USED = ("is still in use", "lock file")
# The superuser of the cluster, for any system user.
_OWNER = "trunkline"

Auth = Literal["trust", "scram-sha-256"]

_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "log_min_messages": "warning",
    # Statements hold what users send; a log of a test or a demo need not.
    "log_min_error_statement": "panic",
}
_NO_SYNC = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


class PostgresServer:
    """Where a cluster is, for tests that use it but did not start it."""

    def __init__(self, *, port: int, password: str | None) -> None:
        self.port = port
        self.password = password
        self._programs = postgres_programs()

    def url(self, database: str = "postgres") -> str:
        login = _OWNER if self.password is None else f"{_OWNER}:{self.password}"
        return f"postgresql://{login}@127.0.0.1:{self.port}/{database}"

    def create_database(self, name: str, template: str | None = None) -> None:
        copied = "" if template is None else f' TEMPLATE "{template}"'
        self.execute(f'CREATE DATABASE "{name}"{copied}')

    def drop_database(self, name: str) -> None:
        self.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def execute(self, sql: str, database: str = "postgres") -> str:
        """Runs the statements; gives what they answer, a line for each row."""
        options = ["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1"]
        command = [str(self._programs / "psql"), *options, *self._address(), f"--dbname={database}"]
        password = {} if self.password is None else {"PGPASSWORD": self.password}
        return _run(command, told=sql, env=password).strip()

    def _address(self) -> list[str]:
        return ["--host=127.0.0.1", f"--port={self.port}", f"--username={_OWNER}"]


class PostgresCluster(PostgresServer):
    """A running cluster; made by `start_postgres`."""

    def __init__(self, folder: Path, *, port: int, password: str | None) -> None:
        super().__init__(port=port, password=password)
        self._folder = folder
        self._process = self._start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.running

    @property
    def log(self) -> Path:
        return self._process.log

    def crash(self) -> None:
        """As `pg_ctl -m immediate stop`: no shutdown, the next start recovers from the log."""
        self._process.end(signal.SIGQUIT, STOP_SECONDS)

    def stop(self) -> None:
        """As `pg_ctl -m fast stop`."""
        self._process.end(signal.SIGINT, STOP_SECONDS)

    def start(self) -> None:
        """Runs it again at the same address."""
        if not self.running:
            # Its guard may still be there.
            self.crash()
            self._process = self._start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _start(self) -> ServiceProcess:
        started: list[ServiceProcess] = []
        failures: list[ServiceFailed] = []

        def start() -> bool:
            try:
                started.append(self._try_to_start())
            except ServiceFailed as failure:
                if not any(words in str(failure) for words in _STILL_USED):
                    raise
                failures.append(failure)
            return bool(started)

        if not wait_until(start, STOP_SECONDS):
            raise failures[-1]
        return started[0]

    def _ready(self) -> bool:
        # By the socket in our folder: another cluster may have got our port first.
        address = [f"--host={self._folder}", f"--port={self.port}"]
        asked = [str(self._programs / "pg_isready"), "--quiet", *address, "--dbname=postgres"]
        return subprocess.run(asked, timeout=_COMMAND_SECONDS, check=False).returncode == 0  # noqa: S603 - PostgreSQL's

    def _try_to_start(self) -> ServiceProcess:
        process = ServiceProcess(
            [str(self._programs / "postgres"), "-D", str(self._folder / "data")],
            self._folder / "postgres.log",
            user=_other_user(),
            last_signal=signal.SIGQUIT,
        )
        process.wait_until(self._ready, START_SECONDS, "PostgreSQL")
        return process


def start_postgres(
    folder: Path,
    *,
    port: int | None = None,
    fsync: bool = True,
    auth: Auth = "trust",
    settings: Mapping[str, str] | None = None,
) -> PostgresCluster:
    """
    A cluster that is ready, with its data, socket and log in `folder`.

    PostgreSQL refuses to run as root, so root runs it as another user, who must be able to enter `folder`'s parents.
    Without `fsync` it is quick, and a crash of the machine loses it; a crash of the cluster alone does not. The
    password of `scram-sha-256` is drawn, and known by `url` alone. Raises `ServiceMissing` or `ServiceFailed`.
    """
    _prepare_folder(folder)
    password = secrets.token_urlsafe(24) if auth != "trust" else None
    _init(folder, auth, password)
    for attempt in range(1, _PORT_ATTEMPTS + 1):
        chosen = port or free_port()
        speed = {} if fsync else _NO_SYNC
        _write_settings(folder, {**_SETTINGS, **speed, **(settings or {}), "port": str(chosen)})
        try:
            return PostgresCluster(folder, port=chosen, password=password)
        except ServiceFailed as failure:
            if _PORT_TAKEN not in str(failure) or port is not None or attempt == _PORT_ATTEMPTS:
                raise
    raise AssertionError  # the last attempt returns or raises


def postgres_programs() -> Path:
    """The folder of the newest installation that has `initdb`."""
    for folder in _places():
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    raise ServiceMissing(
        "PostgreSQL's initdb is not found in PATH or /usr/lib/postgresql: install the server "
        "(apt-get install postgresql)."
    )


def _places() -> list[Path]:
    found = shutil.which("initdb")
    places = [] if found is None else [Path(found).resolve().parent]
    # Debian keeps the server's programs out of PATH.
    installed = Path("/usr/lib/postgresql").glob("*/bin")
    places += sorted(installed, key=lambda folder: _number(folder.parent.name), reverse=True)
    config = shutil.which("pg_config")
    if config is not None:
        places.append(Path(_run([config, "--bindir"]).strip()))
    return places


def _number(text: str) -> float:
    return float(text) if text.replace(".", "", 1).isdigit() else 0.0


def _other_user() -> str | None:
    """Who runs the cluster, if we are root."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"


def _prepare_folder(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    user = _other_user()
    if user is None:
        return
    closed = [parent for parent in folder.resolve().parents if not parent.stat().st_mode & 0o001]
    if closed:
        raise ServiceFailed(f"The user {user}, who runs PostgreSQL for root, may not enter {closed[-1]}.")
    owner = pwd.getpwnam(user)
    os.chown(folder, owner.pw_uid, owner.pw_gid)


def _init(folder: Path, auth: Auth, password: str | None) -> None:
    options = ["--no-sync", "--encoding=UTF8", "--locale=C", f"--username={_OWNER}", f"--auth={auth}"]
    command = [str(postgres_programs() / "initdb"), f"--pgdata={folder / 'data'}", *options]
    if password is None:
        _run(command, user=_other_user(), folder=folder)
        return
    file = folder / "password"
    file.touch(mode=0o600)
    shutil.chown(file, _other_user() or os.geteuid())
    file.write_text(f"{password}\n")
    try:
        _run([*command, f"--pwfile={file}"], user=_other_user(), folder=folder)
    finally:
        file.unlink()


def _write_settings(folder: Path, settings: Mapping[str, str]) -> None:
    lines = [
        f"unix_socket_directories = '{folder}'",
        *(f"{name} = '{value}'" for name, value in settings.items()),
    ]
    file = folder / "data" / "postgresql.auto.conf"
    file.write_text("\n".join(lines) + "\n")


def _run(
    command: list[str],
    *,
    told: str = "",
    env: Mapping[str, str] | None = None,
    user: str | None = None,
    folder: Path | None = None,
) -> str:
    group = None if user is None else pwd.getpwnam(user).pw_gid
    try:
        done = subprocess.run(  # noqa: S603 - a program of PostgreSQL
            command,
            input=told,
            capture_output=True,
            text=True,
            timeout=_COMMAND_SECONDS,
            check=False,
            cwd=folder,
            env={**os.environ, **(env or {})},
            user=user,
            group=group,
            extra_groups=None if user is None else [],
        )
    except subprocess.TimeoutExpired as exc:
        raise ServiceFailed(
            f"{Path(command[0]).name} has not ended within {_COMMAND_SECONDS:.0f} s."
        ) from exc
    if done.returncode != 0:
        raise ServiceFailed(f"{Path(command[0]).name} failed:\n{done.stderr.strip()}")
    return done.stdout
