"""
One task, from its first message to its end: its state, what it has said, and who waits for it.

    submitted -> working -> completed | failed | rejected | canceled
                    ^ |
                    | v
              input-required

Whoever follows a task reads its `updates` from where it has come to, and waits at `changed` for more. A task does not
know who follows it: a caller that goes away changes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Literal
from uuid import uuid4

import msgspec

from trunkline.agent.answers import Artifact
from trunkline.agent.messages import Message
from trunkline.agent.parts import Part, clean, joined, size_of

State = Literal["submitted", "working", "input-required", "completed", "canceled", "failed", "rejected"]

ENDED: frozenset[State] = frozenset({"completed", "canceled", "failed", "rejected"})
# In these nothing more happens by itself.
RESTING: frozenset[State] = frozenset({*ENDED, "input-required"})

_ANSWER = "answer"


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """Where a task stands since when, and what it says about it."""

    state: State
    at: datetime
    message: Message | None = None


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """An artifact, or a piece of one that goes on with what is there."""

    id: str
    name: str
    parts: tuple[Part, ...]
    description: str | None = None
    is_piece: bool = False
    appends: bool = False


Update = Status | Result


class Work:
    def __init__(self, message: Message, task_id: str, context_id: str, now: Callable[[], datetime]) -> None:
        self.id = task_id
        self.context_id = context_id
        self.message = message
        # Of every message that it has taken; by them a repetition is recognised.
        self.keys = [message.key()]
        # About how many bytes it takes to keep it.
        self.size = message.size()
        self.history = [self._placed(message)]
        self.results: list[Result] = []
        self._wholes = 0
        self.updates: list[Update] = []
        self.runner: asyncio.Task[None] | None = None
        self._now = now
        self.status = Status(state="submitted", at=now())
        self._bell = asyncio.Event()
        self._reply: asyncio.Future[Message] | None = None

    @property
    def state(self) -> State:
        return self.status.state

    @property
    def has_ended(self) -> bool:
        return self.state in ENDED

    @property
    def rests(self) -> bool:
        return self.state in RESTING

    @property
    def is_asking(self) -> bool:
        return self.state == "input-required"

    @property
    def words(self) -> str:
        """What the status says; nothing: the empty text."""
        return "" if self.status.message is None else self.status.message.text

    def artifacts(self) -> list[Result]:
        """What it has given so far, with the pieces put together."""
        whole: dict[str, list[Result]] = {}
        for result in self.results:
            whole.setdefault(result.id, []).append(result)
        return [
            msgspec.structs.replace(
                pieces[0],
                parts=tuple(joined(part for piece in pieces for part in piece.parts)),
                is_piece=False,
                appends=False,
            )
            for pieces in whole.values()
        ]

    def said(self) -> list[Message]:
        """Every message of the task, with its answer as the last one."""
        messages = list(self.history)
        if self.status.message is not None:
            messages.append(self.status.message)
        parts = tuple(part for artifact in self.artifacts() for part in artifact.parts)
        # The same whenever it is asked for.
        answer = msgspec.structs.replace(self._agents(parts), id=f"{self.id}-{_ANSWER}")
        return [*messages, answer] if parts else messages

    # --- what its handler does

    def begin(self) -> None:
        self._move("working")

    def tell(self, text: str) -> None:
        self._move("working", text)

    def add_piece(self, text: str) -> None:
        appends = any(result.id == _ANSWER for result in self.results)
        self._add(Result(id=_ANSWER, name=_ANSWER, parts=(clean(text),), is_piece=True, appends=appends))

    def add(self, artifact: Artifact) -> None:
        self._wholes += 1
        self._add(
            Result(
                id=f"artifact-{self._wholes}",
                name=artifact.name,
                description=artifact.description,
                parts=(artifact.part,),
            )
        )

    async def ask(self, question: str) -> Message:
        """Waits for the reply, however long it takes."""
        self._reply = asyncio.get_running_loop().create_future()
        self._move("input-required", question)
        return await self._reply

    def end(self, state: State, text: str = "") -> None:
        """The first end counts."""
        self._move(state, text)

    # --- what its callers do

    def reply(self, message: Message) -> None:
        assert self._reply is not None  # noqa: S101 - only called while it asks
        self.keys.append(message.key())
        self.size += message.size()
        future, self._reply = self._reply, None
        self._move("working")
        self.history.append(self._placed(message))
        future.set_result(message)

    def cancel(self) -> None:
        self.end("canceled")
        if self.runner is not None:
            self.runner.cancel()

    async def changed(self, seen: int) -> None:
        """Waits until there are more updates than those that were seen."""
        while len(self.updates) <= seen:
            await self._bell.wait()

    async def settled(self) -> None:
        """Waits until it rests."""
        while not self.rests:
            await self._bell.wait()

    def _move(self, state: State, text: str = "") -> None:
        if self.has_ended:
            return
        if self.status.message is not None:
            self.history.append(self.status.message)
        message = self._agents((clean(text),)) if text else None
        self.status = Status(state=state, at=self._now(), message=message)
        self._publish(self.status)

    def _add(self, result: Result) -> None:
        if not self.has_ended:
            self.results.append(result)
            self.size += size_of(result.parts)
            self._publish(result)

    def _publish(self, update: Update) -> None:
        self.updates.append(update)
        # Another bell for those who come later: whoever waits at this one has heard it.
        rung, self._bell = self._bell, asyncio.Event()
        rung.set()

    def _agents(self, parts: tuple[Part, ...]) -> Message:
        return Message(
            id=str(uuid4()), role="agent", parts=parts, task_id=self.id, context_id=self.context_id
        )

    def _placed(self, message: Message) -> Message:
        return msgspec.structs.replace(message, task_id=self.id, context_id=self.context_id)
