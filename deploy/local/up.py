"""
The distributed mode on this machine: `make up-distributed`.

A Kafka, a PostgreSQL, and each role as a process of its own, in a temporary folder and on free ports; the demo runs
on them. Then it stays, to look around and to kill things, until Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import secrets
import signal
import subprocess
import sys
from base64 import urlsafe_b64encode
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from deploy.local.errors import ServiceFailed, ServiceMissing
from deploy.local.folders import service_folder
from deploy.local.kafka import start_kafka
from deploy.local.postgres import start_postgres
from deploy.local.processes import Guard, ServiceProcess
from trunkline.cli.demo.processes import sigterm_as_exit

ROLES = ("bridge", "bridge", "executor", "executor", "api")

_DATABASE = "trunkline"
_TRUNKLINE = (sys.executable, "-m", "trunkline")
_START_SECONDS = 90.0
# A role lets its calls end for 30 s, and is gone 2 s later.
_STOP_SECONDS = 40.0
# How often we look whether a role is still there.
_LOOK_SECONDS = 1.0


class RunningRole(NamedTuple):
    name: str
    url: str
    process: ServiceProcess


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m deploy.local.up", description=__doc__)
    parser.add_argument("--once", action="store_true", help="stop everything after the demo")
    options = parser.parse_args(arguments)
    _forget_settings()
    try:
        with sigterm_as_exit(), distributed_system() as roles:
            api = next(role for role in roles if role.name == "api")
            return _demo(api.url, roles, once=options.once)
    except (ServiceMissing, ServiceFailed) as error:
        _say(str(error))
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


@contextmanager
def distributed_system() -> Generator[list[RunningRole]]:
    """Everything runs and is ready inside; it is stopped in the opposite order, the API first."""
    with ExitStack() as stack:
        folder = stack.enter_context(service_folder("distributed"))
        stack.callback(_say, "Everything is stopped")
        _say(f"Everything is in {folder}, also the logs")
        postgres = stack.enter_context(start_postgres(folder / "postgres", auth="scram-sha-256"))
        postgres.create_database(_DATABASE)
        _say_place("PostgreSQL", f"127.0.0.1:{postgres.port}", postgres.pid)
        kafka = stack.enter_context(start_kafka(folder / "kafka"))
        _say_place("Kafka", kafka.servers, kafka.pid)
        env = _settings(postgres.url(_DATABASE), kafka.servers)
        for command in (["db", "upgrade"], ["topics", "create"]):
            _say(f"trunkline {' '.join(command)}")
            _run(command, folder, env)
        yield stack.enter_context(_roles(folder, env))


@contextmanager
def _roles(folder: Path, env: Mapping[str, str]) -> Generator[list[RunningRole]]:
    with ExitStack() as stack:
        started: list[tuple[str, Path, ServiceProcess]] = []
        for name in _names():
            stdout = folder / f"{name}.url"
            command = [*_TRUNKLINE, "serve", "--role", name.split("-")[0], "--port", "0"]
            process = ServiceProcess(
                command, folder / f"{name}.log", env=env, stdout=stdout, last_signal=signal.SIGTERM
            )
            stack.callback(_stop, name, process)
            started.append((name, stdout, process))
        roles: list[RunningRole] = []
        for name, stdout, process in started:
            process.wait_until(lambda file=stdout: file.read_text().endswith("\n"), _START_SECONDS, name)
            url = stdout.read_text().strip()
            _say_place(name, url, process.pid)
            roles.append(RunningRole(name, url, process))
        yield roles


def _names() -> list[str]:
    """Those of a role that runs more than once are numbered."""
    return [
        role if ROLES.count(role) == 1 else f"{role}-{ROLES[: place + 1].count(role)}"
        for place, role in enumerate(ROLES)
    ]


def _forget_settings() -> None:
    """Those of another Trunkline, in our environment, would change this one; how it logs is a matter of taste."""
    for name in [name for name in os.environ if name.startswith("TRUNKLINE_")]:
        if not name.startswith("TRUNKLINE_LOG_"):
            del os.environ[name]


def _settings(store: str, servers: str) -> dict[str, str]:
    return {
        "TRUNKLINE_STORE": store,
        "TRUNKLINE_BROKER": f"kafka://{servers}",
        # The same for all; it is nowhere but in their environment.
        "TRUNKLINE_SECRET_KEY": urlsafe_b64encode(secrets.token_bytes(32)).decode(),
        # The demo's agents.
        "TRUNKLINE_ALLOWED_NETWORKS": "127.0.0.0/8",
    }


def _run(command: Sequence[str], folder: Path, env: Mapping[str, str]) -> None:
    done = subprocess.run(  # noqa: S603 - our own program
        [*_TRUNKLINE, *command],
        cwd=folder,
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_START_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise ServiceFailed(f"trunkline {' '.join(command)} failed:\n{done.stdout}{done.stderr}".rstrip())


def _demo(url: str, roles: Sequence[RunningRole], *, once: bool) -> int:
    """Runs the demo; unless it is for `once`, it stays with its agents until Ctrl-C."""
    keep = () if once else ("--keep",)
    # Ctrl-C does not reach it there: it gets one signal, from us.
    demo = subprocess.Popen([*_TRUNKLINE, "demo", "--url", url, *keep], start_new_session=True)  # noqa: S603 - ours
    guard = Guard(demo.pid, signal.SIGTERM)
    try:
        return _watch(demo, roles)
    except KeyboardInterrupt:
        _say("Stopping")
        return 128 + signal.SIGINT if once else 0
    finally:
        demo.terminate()
        demo.wait(_STOP_SECONDS)
        guard.dismiss()


def _watch(demo: subprocess.Popen[bytes], roles: Sequence[RunningRole]) -> int:
    alive = list(roles)
    while True:
        try:
            return demo.wait(_LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            for role in [role for role in alive if not role.process.running]:
                _say(f"{role.name} has ended; its log is {role.process.log}")
                alive.remove(role)


def _stop(name: str, process: ServiceProcess) -> None:
    _say(f"Stopping {name}")
    process.end(signal.SIGTERM, _STOP_SECONDS)


def _say_place(name: str, place: str, pid: int) -> None:
    _say(f"  {name:<12} {place:<24} process {pid}")


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
