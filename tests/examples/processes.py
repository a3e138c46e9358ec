"""
The agents of examples/agents, each before and after its migration, run by the runtimes they are written for.

An example has a folder of that name and an environment of that name (tests/interop/environments.py).
"""

from __future__ import annotations

import shutil
import signal
from pathlib import Path
from typing import Literal, Self

from deploy.local.ports import free_port
from deploy.local.processes import ServiceProcess
from tests.interop.environments import EXAMPLES as FOLDERS
from tests.interop.environments import NODE, environment

Side = Literal["before", "after"]

EXAMPLES = ("python-flask", "python-fastapi", "node-express", "go-net-http")
SIDES: tuple[Side, ...] = ("before", "after")

# A framework may be imported for the first time, on a machine that has other work.
_START_SECONDS = 90.0
_PATIENCE_SECONDS = 30.0


class ExampleProcess:
    """One agent: started when it exists, and ready after `wait`."""

    def __init__(self, name: str, side: Side, folder: Path, *, in_production: bool = False) -> None:
        """`in_production` is with the server that its README names for it, where that is another one."""
        folder.mkdir(parents=True, exist_ok=True)
        self.name = f"{name} {side}"
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        command = command_of(name, side, folder)
        if in_production and name == "python-flask":
            command = _with_gunicorn(command, self.port)
        self.process = ServiceProcess(
            command,
            folder / "agent.log",
            # Nothing is left in the examples' folders, or in the user's.
            env={
                "PORT": str(self.port),
                "HOME": str(folder),
                "PYTHONPYCACHEPREFIX": str(environment(name) / "compiled"),
                "PYTHONUNBUFFERED": "1",
            },
        )

    def wait(self) -> None:
        log = self.process.log
        self.process.wait_until(lambda: self.address in log.read_text(), _START_SECONDS, self.name)

    def end(self) -> None:
        self.process.end(signal.SIGTERM, _PATIENCE_SECONDS)


class ExampleProcesses:
    """Both agents of an example; not started yet, ended with the `with` block."""

    def __init__(self, name: str, folder: Path) -> None:
        self._name = name
        self._folder = folder
        self._running: dict[Side, ExampleProcess] = {}

    @property
    def urls(self) -> dict[Side, str]:
        return {side: f"{running.address}/agent" for side, running in self._running.items()}

    def start(self) -> None:
        for side in SIDES:
            self._running[side] = ExampleProcess(self._name, side, self._folder / side)
        for running in self._running.values():
            running.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for running in self._running.values():
            running.end()


def command_of(name: str, side: Side, folder: Path) -> list[str]:
    home, sources = environment(name), FOLDERS / name
    if name.startswith("go"):
        return [str(home / side)]
    if not name.startswith("node"):
        return [str(home / "bin" / "python"), str(sources / f"{side}.py")]
    # Node looks for packages beside the program.
    for file in (*sources.glob("*.js"), sources / "package.json"):
        shutil.copy(file, folder)
    (folder / "node_modules").symlink_to(home / "node_modules")
    return [str(NODE), str(folder / f"{side}.js")]


def _with_gunicorn(command: list[str], port: int) -> list[str]:
    python, program = command[0], Path(command[1])
    bound = ["--bind", f"127.0.0.1:{port}", "--threads", "8", "--chdir", str(program.parent)]
    return [python, "-m", "gunicorn", *bound, f"{program.stem}:app"]
