"""
One task, from its first message to its end: its state, its output, and waiting for both.

    submitted -> working -> completed | failed | rejected | canceled
                    ^ |
                    | v
              input-required

A follower reads `updates` from its own position and waits for more with `wait_for_update`. A task does not know its
followers, so a client that disconnects changes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Literal
from uuid import uuid4

import msgspec

from trunkline.agentkit.messages import Message
from trunkline.agentkit.outputs import Artifact
from trunkline.agentkit.parts import Part, clean, joined, size_of

TaskState = Literal["submitted", "working", "input-required", "completed", "canceled", "failed", "rejected"]

FINAL_STATES: frozenset[TaskState] = frozenset({"completed", "canceled", "failed", "rejected"})
# In these states nothing happens until another message arrives.
IDLE_STATES: frozenset[TaskState] = frozenset({*FINAL_STATES, "input-required"})

_ANSWER = "answer"


class TaskStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a task, since when, and its message about it."""

    state: TaskState
    at: datetime
    message: Message | None = None


class TaskArtifact(msgspec.Struct, frozen=True, kw_only=True):
    """An artifact, or a chunk that continues an earlier one."""

    id: str
    name: str
    parts: tuple[Part, ...]
    description: str | None = None
    is_partial: bool = False
    appends: bool = False


TaskUpdate = TaskStatus | TaskArtifact


class TaskExecution:
    def __init__(self, message: Message, task_id: str, context_id: str, now: Callable[[], datetime]) -> None:
        self.id = task_id
        self.context_id = context_id
        self.message = message
        # Of every message that the task received; a message sent again is recognised by its key.
        self.keys = [message.key()]
        # Approximate size in bytes.
        self.size = message.size()
        self.history = [self._in_context(message)]
        self.results: list[TaskArtifact] = []
        self._artifact_count = 0
        self.updates: list[TaskUpdate] = []
        self.runner: asyncio.Task[None] | None = None
        self._now = now
        self.status = TaskStatus(state="submitted", at=now())
        self._changed = asyncio.Event()
        self._reply: asyncio.Future[Message] | None = None

    @property
    def state(self) -> TaskState:
        return self.status.state

    @property
    def has_ended(self) -> bool:
        return self.state in FINAL_STATES

    @property
    def is_idle(self) -> bool:
        return self.state in IDLE_STATES

    @property
    def is_asking(self) -> bool:
        return self.state == "input-required"

    @property
    def status_text(self) -> str:
        """The text of the status message, or an empty string."""
        return "" if self.status.message is None else self.status.message.text

    def artifacts(self) -> list[TaskArtifact]:
        """The artifacts so far, with their chunks joined."""
        whole: dict[str, list[TaskArtifact]] = {}
        for result in self.results:
            whole.setdefault(result.id, []).append(result)
        return [
            msgspec.structs.replace(
                pieces[0],
                parts=tuple(joined(part for piece in pieces for part in piece.parts)),
                is_partial=False,
                appends=False,
            )
            for pieces in whole.values()
        ]

    def transcript(self) -> list[Message]:
        """Every message of the task; its answer is the last one."""
        messages = list(self.history)
        if self.status.message is not None:
            messages.append(self.status.message)
        parts = tuple(part for artifact in self.artifacts() for part in artifact.parts)
        # The same id on every call.
        answer = msgspec.structs.replace(self._agent_message(parts), id=f"{self.id}-{_ANSWER}")
        return [*messages, answer] if parts else messages

    # --- called for the handler

    def start(self) -> None:
        self._set_status("working")

    def report_progress(self, text: str) -> None:
        self._set_status("working", text)

    def append_text(self, text: str) -> None:
        appends = any(result.id == _ANSWER for result in self.results)
        self._add_artifact(
            TaskArtifact(id=_ANSWER, name=_ANSWER, parts=(clean(text),), is_partial=True, appends=appends)
        )

    def add_artifact(self, artifact: Artifact) -> None:
        self._artifact_count += 1
        self._add_artifact(
            TaskArtifact(
                id=f"artifact-{self._artifact_count}",
                name=artifact.name,
                description=artifact.description,
                parts=(artifact.part,),
            )
        )

    async def ask(self, question: str) -> Message:
        """Waits for the reply, without a time limit."""
        self._reply = asyncio.get_running_loop().create_future()
        self._set_status("input-required", question)
        return await self._reply

    def end(self, state: TaskState, text: str = "") -> None:
        """Has no effect on a task that has ended."""
        self._set_status(state, text)

    # --- called for clients

    def reply(self, message: Message) -> None:
        assert self._reply is not None  # noqa: S101 - only called while it asks
        self.keys.append(message.key())
        self.size += message.size()
        future, self._reply = self._reply, None
        self._set_status("working")
        self.history.append(self._in_context(message))
        future.set_result(message)

    def cancel(self) -> None:
        self.end("canceled")
        if self.runner is not None:
            self.runner.cancel()

    async def wait_for_update(self, seen: int) -> None:
        """Waits until there are more than `seen` updates."""
        while len(self.updates) <= seen:
            await self._changed.wait()

    async def wait_until_idle(self) -> None:
        """Waits until the task has ended or waits for input."""
        while not self.is_idle:
            await self._changed.wait()

    def _set_status(self, state: TaskState, text: str = "") -> None:
        if self.has_ended:
            return
        if self.status.message is not None:
            self.history.append(self.status.message)
        message = self._agent_message((clean(text),)) if text else None
        self.status = TaskStatus(state=state, at=self._now(), message=message)
        self._publish(self.status)

    def _add_artifact(self, result: TaskArtifact) -> None:
        if not self.has_ended:
            self.results.append(result)
            self.size += size_of(result.parts)
            self._publish(result)

    def _publish(self, update: TaskUpdate) -> None:
        self.updates.append(update)
        # A new event for later waiters: everyone who waits for this one is woken.
        previous, self._changed = self._changed, asyncio.Event()
        previous.set()

    def _agent_message(self, parts: tuple[Part, ...]) -> Message:
        return Message(
            id=str(uuid4()), role="agent", parts=parts, task_id=self.id, context_id=self.context_id
        )

    def _in_context(self, message: Message) -> Message:
        return msgspec.structs.replace(message, task_id=self.id, context_id=self.context_id)
