"""
A reader at work: the page's blocks are done in order, as copied and pasted, in a folder that looks like a clone.

What the page calls port 8000 or 8080 is a free port here, the same one in every block of the page. The program is the
one that is installed; Node and Go are those of the machine, or of the checks' own packages.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from deploy.local.ports import free_port
from deploy.local.processes import Guard, wait_until
from tests.docs.blocks import ROOT, Block
from tests.interop.environments import GO_SETTINGS, NODE, go_tool

_PORT = re.compile(r"(?<![\w.-])(80[0-9]{2}|90[0-9]{2})(?![\w.-])")
_START_SECONDS = 120.0
_STOP_SECONDS = 20.0
_DONE = "the block is done"
# What a clone has, as far as readers are told to use it.
_OF_A_CLONE = (".venv", "Makefile", "examples", "deploy", "src", "docs")


class BackgroundTerminal:
    """One in which a program runs, with all that the program starts."""

    def __init__(self, script: str, folder: Path, name: str, environment: dict[str, str]) -> None:
        self._log = folder.parent / f"terminal-{name}.log"
        with self._log.open("w") as output:
            self._process = subprocess.Popen(
                ["bash", "-e", "-c", script],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=folder,
                env={**os.environ, **environment},
                start_new_session=True,
            )
        self._guard = Guard(self._process.pid, signal.SIGTERM)

    def wait_for(self, port: int, what: str) -> None:
        ready = wait_until(lambda: self._process.poll() is not None or _listens(port), _START_SECONDS)
        assert ready, f"{what}\nis not ready:\n{self._log.read_text()}"
        assert self._process.poll() is None, f"{what}\nhas ended:\n{self._log.read_text()}"

    def end(self) -> None:
        # Its own child may be the program, or what the program has started.
        os.killpg(self._process.pid, signal.SIGTERM)
        gone = wait_until(self._is_gone, _STOP_SECONDS)
        if not gone:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._guard.dismiss()
        assert gone, f"It did not stop:\n{self._log.read_text()}"

    def _is_gone(self) -> bool:
        self._process.poll()
        try:
            os.killpg(self._process.pid, 0)
        except ProcessLookupError:
            return True
        return False


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class PageRunner:
    def __init__(
        self,
        folder: Path,
        *,
        addresses: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`addresses` of services, as the page says them, are replaced by those that there are."""
        self._addresses = addresses or {}
        self._more_environment = environment or {}
        self.folder = folder / "trunkline"
        self.folder.mkdir()
        for name in _OF_A_CLONE:
            (self.folder / name).symlink_to(ROOT / name)
        self._ports: dict[str, str] = {}
        self._first: list[str] = []
        self._background: dict[str, BackgroundTerminal] = {}
        self._errors = (folder / "stderr.log").open("w+")
        self._terminal = subprocess.Popen(
            ["bash", "-e"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            cwd=self.folder,
            env={**os.environ, **self._environment()},
            start_new_session=True,
        )

    def _environment(self) -> dict[str, str]:
        server = self.port("8000")
        path = [str(NODE.parent), str(go_tool("go").parent), os.environ["PATH"]]
        return {
            # As a new user has it: nothing is set, but for the port.
            "TRUNKLINE_PORT": server,
            "TRUNKLINE_URL": f"http://127.0.0.1:{server}",
            "PATH": os.pathsep.join(path),
            "PYTHONUNBUFFERED": "1",
            "GOFLAGS": "-buildvcs=false",
            **GO_SETTINGS,
            **self._more_environment,
        }

    def port(self, said: str) -> str:
        return self._ports.setdefault(said, str(free_port()))

    def adapted(self, text: str) -> str:
        """The text with this machine's free ports and services."""
        for said, here in self._addresses.items():
            text = text.replace(said, here)
        return _PORT.sub(lambda found: self.port(found[0]), text)

    def save(self, block: Block) -> None:
        file = self.folder / block.words["file"]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(self.adapted(block.text))

    def do_in_every_terminal(self, block: Block) -> None:
        self._first.append(self.adapted(block.text))
        self.do(block)

    def do(self, block: Block) -> str:
        """Does what the block says; returns what it has printed."""
        assert self._terminal.stdin is not None
        assert self._terminal.stdout is not None
        status = block.words.get("exit", "0")
        # A command that reads its input must not read the next block.
        script = f"{{\n{self.adapted(block.text)}\n}} < /dev/null"
        if status != "0":
            script = (
                f"set +e\n(\n{self.adapted(block.text)}\n) < /dev/null\n[ $? = {status} ] || exit 99\nset -e"
            )
        self._terminal.stdin.write(f"{script}\nprintf '\\n%s\\n' '{_DONE}'\n")
        self._terminal.stdin.flush()
        printed: list[str] = []
        for line in self._terminal.stdout:
            if line.rstrip("\n") == _DONE:
                return "".join(printed).removesuffix("\n")
            printed.append(line)
        self._errors.seek(0)
        raise AssertionError(
            f"{block} does not work:\n{block.text}\nIt printed:\n{''.join(printed)}\n{self._errors.read()[-4000:]}"
        )

    def start(self, block: Block) -> None:
        """Starts the block in another terminal, and waits until something listens at its port."""
        port = block.words["background"]
        script = "\n".join([*self._first, self.adapted(block.text)])
        terminal = BackgroundTerminal(script, self.folder, f"{port}-{block.line}", self._environment())
        self._background[port] = terminal
        terminal.wait_for(int(self.port(port)), f"{block}: {block.text}")

    def stop(self, port: str) -> None:
        """Ctrl-C in the terminal where something listens at the port."""
        self._background.pop(port).end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        for terminal in reversed(self._background.values()):
            terminal.end()
        if self._terminal.stdin is not None:
            self._terminal.stdin.close()
        self._terminal.wait(_STOP_SECONDS)
        self._errors.close()
