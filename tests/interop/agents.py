"""
Agents that other people's frameworks serve: what runs each of them, and a process of one.

An agent does what servers/script.py says, and writes every request down; so a test knows what reached it, and holds
a task back for as long as it wants.
"""

from __future__ import annotations

import shutil
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Generic, Literal, NamedTuple, Self, TypeVar

import msgspec
from deploy.local.processes import ServiceProcess
from tests.interop.environments import NODE, SERVERS, environment

# Its framework may be imported for the first time, on a machine that has other work.
_START_SECONDS = 90.0
_TIMEOUT_SECONDS = 60.0

T = TypeVar("T")

Operation = Literal["send", "stream", "get", "cancel", "resubscribe", "list", "unknown"]

_OPERATIONS: dict[str, Operation] = {
    "message/send": "send",
    "message/stream": "stream",
    "tasks/get": "get",
    "tasks/cancel": "cancel",
    "tasks/resubscribe": "resubscribe",
    "SendMessage": "send",
    "SendStreamingMessage": "stream",
    "GetTask": "get",
    "CancelTask": "cancel",
    "SubscribeToTask": "resubscribe",
    "ListTasks": "list",
    ":send": "send",
    ":stream": "stream",
    ":cancel": "cancel",
    ":subscribe": "resubscribe",
}


class AgentKind(NamedTuple):
    environment: str
    program: str
    # What its card makes of `protocol: auto`.
    dialect: str
    flavour: str = ""


KINDS = {
    "a2a-sdk-0.3": AgentKind("python-0.3", "a2a_v03.py", "a2a-0.3"),
    "a2a-sdk-1": AgentKind("python-1", "a2a_v1.py", "a2a-1.0"),
    "a2a-sdk-1-with-0.3": AgentKind("python-1", "a2a_v1.py", "a2a-1.0", "compat"),
    "a2a-sdk-1-http": AgentKind("python-1", "a2a_v1.py", "a2a-1.0-http", "http"),
    "google-adk": AgentKind("python-1", "adk.py", "a2a-1.0"),
    "fasta2a": AgentKind("python-1", "fasta2a_v2.py", "a2a-1.0"),
    "a2a-js-0.3": AgentKind("node", "a2a_js_v03.mjs", "a2a-0.3"),
    "a2a-js-1": AgentKind("node", "a2a_js_v1.mjs", "a2a-1.0"),
}

# Those that ring when a task has moved on, and have no streams.
RINGING = {
    "a2a-sdk-0.3-push": AgentKind("python-0.3", "a2a_v03.py", "a2a-0.3", "push"),
    "a2a-sdk-1-push": AgentKind("python-1", "a2a_v1.py", "a2a-1.0", "push"),
    "a2a-sdk-1-http-push": AgentKind("python-1", "a2a_v1.py", "a2a-1.0-http", "http-push"),
}


class ReceivedRequest(msgspec.Struct, frozen=True, rename="camel"):
    """A request as the agent has received it."""

    path: str
    method: str | None
    # By the clock of the machine.
    at: float = 0.0
    message_id: str | None = None
    task_id: str | None = None
    context_id: str | None = None
    text: str = ""

    @property
    def operation(self) -> Operation:
        if self.method is not None:
            # A check asks on purpose for what nobody has.
            return _OPERATIONS.get(self.method, "unknown")
        _, _, verb = self.path.rpartition(":")
        return _OPERATIONS.get(f":{verb}", "list" if verb.endswith("/tasks") else "get")

    @property
    def carries_a_message(self) -> bool:
        return self.operation in ("send", "stream")


class Execution(msgspec.Struct, frozen=True, rename="camel"):
    """A message that the framework has handed to the agent itself."""

    context_id: str
    text: str


class _Log(Generic[T]):
    """What an agent writes down in one file, each line read once."""

    def __init__(self, file: Path, line: type[T]) -> None:
        self._file = file
        self._decoder = msgspec.json.Decoder(line)
        self._offset = 0
        self._lines: list[T] = []

    def lines(self) -> Sequence[T]:
        if self._file.exists():
            with self._file.open("rb") as file:
                file.seek(self._offset)
                # The agent may be in the middle of the last one.
                whole = file.read().rpartition(b"\n")[0]
            if whole:
                self._offset += len(whole) + 1
                self._lines += [self._decoder.decode(line) for line in whole.split(b"\n")]
        return self._lines


class Agent:
    """One that runs somewhere: its address, and its folder with what it has written down."""

    def __init__(self, name: str, url: str, folder: Path) -> None:
        self.name = name
        self.kind = (KINDS | RINGING)[name]
        self.url = url
        self._folder = folder
        self._calls = _Log(folder / "calls.jsonl", ReceivedRequest)
        self._executions = _Log(folder / "executions.jsonl", Execution)

    def release(self, task: str) -> None:
        """Lets the task of that name, and every later one, come to its end."""
        (self._folder / task).touch()

    def calls(self) -> Sequence[ReceivedRequest]:
        return self._calls.lines()

    def sent(self, text: str) -> list[ReceivedRequest]:
        """The requests that brought this message."""
        return [call for call in self.calls() if call.carries_a_message and call.text == text]

    def executions(self, text: str) -> list[Execution]:
        return [done for done in self._executions.lines() if done.text == text]


class AgentProcess(Agent):
    """One that a test may kill and start again at the same address; not started yet, killed with the `with` block."""

    def __init__(self, name: str, folder: Path, port: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        super().__init__(name, f"http://127.0.0.1:{port}", folder)
        self._port = port
        self._process: ServiceProcess | None = None

    def start(self) -> None:
        printed = self._folder / "printed"
        printed.unlink(missing_ok=True)
        self._process = ServiceProcess(self._command(), self._folder / "agent.log", stdout=printed)
        self._process.wait_until(lambda: self.url in printed.read_text(), _START_SECONDS, self.name)

    def _command(self) -> list[str]:
        home, (_, program, _, flavour) = environment(self.kind.environment), self.kind
        arguments = [str(self._port), str(self._folder)]
        if not program.endswith(".mjs"):
            return [str(home / "bin" / "python"), "-W", "ignore", str(SERVERS / program), *arguments, flavour]
        # Node looks for packages next to the program.
        for file in (program, "script.mjs"):
            shutil.copy(SERVERS / file, home)
        return [str(NODE), str(home / program), *arguments]

    def kill(self) -> None:
        """With SIGKILL."""
        process, self._process = self._process, None
        if process is not None:
            process.end(signal.SIGKILL, _TIMEOUT_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
