"""
The agents of examples/agents, each before and after its migration, run by the runtimes they are written for.

An example has a folder of that name and an environment of that name (tests/interop/environments.py). The agents of the
original migration guide are in guide_agents.md, letter by letter: only their port is replaced.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
from pathlib import Path
from typing import Literal, Self

from deploy.local.ports import free_port
from deploy.local.processes import ServiceProcess
from tests.interop.environments import EXAMPLES as FOLDERS
from tests.interop.environments import GO_SETTINGS, NODE, environment, go_tool

Side = Literal["before", "after"]

EXAMPLES = ("python-flask", "python-fastapi", "node-express", "go-net-http")
# By the headings of their language, with the environment that runs them.
GUIDE_AGENTS = {
    "guide-python": ("### Python (Flask)", "python-flask"),
    "guide-node": ("### Node.js (Express)", "node-express"),
    "guide-go": ("### Go (net/http)", "go-net-http"),
}
SIDES: tuple[Side, ...] = ("before", "after")

# A framework may be imported for the first time, on a machine that has other work.
_START_SECONDS = 90.0
_TIMEOUT_SECONDS = 30.0


class ExampleProcess:
    """One agent: started when it exists, and ready after `wait`."""

    def __init__(self, name: str, side: Side, folder: Path, *, in_production: bool = False) -> None:
        """`in_production` is with the server that its README names for it, where that is another one."""
        folder.mkdir(parents=True, exist_ok=True)
        self.name = f"{name} {side}"
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self._is_verbatim = name in GUIDE_AGENTS
        command = (
            guide_command(name, side, folder, self.port)
            if self._is_verbatim
            else command_of(name, side, folder)
        )
        if in_production and name == "python-flask":
            command = _with_gunicorn(command, self.port)
        self.process = ServiceProcess(
            command,
            folder / "agent.log",
            # Nothing is left in the examples' folders, or in the user's.
            env={
                "PORT": str(self.port),
                "HOME": str(folder),
                "PYTHONPYCACHEPREFIX": str(_home(name) / "compiled"),
                "PYTHONUNBUFFERED": "1",
            },
        )

    def wait(self) -> None:
        log = self.process.log
        # The guide's agents do not say when they are ready.
        ready = self._is_listening if self._is_verbatim else lambda: self.address in log.read_text()
        self.process.wait_until(ready, _START_SECONDS, self.name)

    def _is_listening(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True

    def end(self) -> None:
        self.process.end(signal.SIGTERM, _TIMEOUT_SECONDS)


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
    # Node looks for packages next to the program.
    for file in (*sources.glob("*.js"), sources / "package.json"):
        shutil.copy(file, folder)
    (folder / "node_modules").symlink_to(home / "node_modules")
    return [str(NODE), str(folder / f"{side}.js")]


def guide_code(name: str, side: Side) -> str:
    """The program as the original migration guide prints it."""
    guide = Path(__file__).with_name("guide_agents.md").read_text()
    section = guide.partition(GUIDE_AGENTS[name][0])[2]
    before, after = re.findall(r"^```\w+\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)[:2]
    return before if side == "before" else after


def guide_command(name: str, side: Side, folder: Path, port: int) -> list[str]:
    home = _home(name)
    code = guide_code(name, side).replace("8080", str(port))
    match name:
        case "guide-python":
            program = folder / "agent.py"
            program.write_text(code)
            return [str(home / "bin" / "python"), str(program)]
        case "guide-node":
            program = folder / "agent.js"
            program.write_text(code)
            (folder / "node_modules").symlink_to(home / "node_modules")
            return [str(NODE), str(program)]
        case _:
            program = folder / "main.go"
            program.write_text(code)
            built = folder / "agent"
            settings = {**os.environ, **GO_SETTINGS, "GOPROXY": "off", "GOTOOLCHAIN": "local"}
            subprocess.run(
                [go_tool("go"), "build", "-o", built, program],
                env=settings,
                check=True,
                capture_output=True,
                timeout=_START_SECONDS,
            )
            return [str(built)]


def _home(name: str) -> Path:
    return environment(GUIDE_AGENTS[name][1] if name in GUIDE_AGENTS else name)


def _with_gunicorn(command: list[str], port: int) -> list[str]:
    python, program = command[0], Path(command[1])
    bound = ["--bind", f"127.0.0.1:{port}", "--threads", "8", "--chdir", str(program.parent)]
    return [python, "-m", "gunicorn", *bound, f"{program.stem}:app"]
