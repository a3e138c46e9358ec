"""
Reports what an agent says while it works, for the run's history.

Pieces that come close together are reported as one: a model that streams word by word costs four events a second,
however fast it streams.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from hashlib import sha256
from types import TracebackType
from typing import Literal, Self, TypeAlias

from msgspec.structs import replace

from trunkline.bridge.calls.results import CallProgress, ids_of
from trunkline.clock import Clock
from trunkline.messages import AgentResult, Progress
from trunkline.protocols import StreamUpdate
from trunkline.stores.base import ClaimedTask, TaskAnswer
from trunkline.telemetry.redaction import Redaction

Status: TypeAlias = Literal["working", "progress"]

_EVERY_SECONDS = 0.25
# The whole of it is in the step's output.
_MAX_CHARACTERS = 32 * 1024
_MAX_PARTS = 20


class ProgressReporter:
    """
    Of one claimed task. `report` takes what is to be committed; the call goes on meanwhile.

    Used as a context it is closed at the end of the block.
    """

    def __init__(
        self,
        claim: ClaimedTask,
        clock: Clock,
        protocol: str,
        redaction: Redaction,
        report: Callable[[CallProgress], None],
    ) -> None:
        self._claim = claim
        self._clock = clock
        self._protocol = protocol
        self._redaction = redaction
        self._report_update = report
        self._waiting: list[Progress] = []
        self._characters = 0
        self._number = 0
        self._timer: asyncio.TimerHandle | None = None
        self._announcement: asyncio.Handle | None = None
        self.remote_task_id = claim.remote_task_id
        self.context_id = claim.context_id

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def add_event(self, update: StreamUpdate) -> None:
        if update.context_id is not None:
            self.context_id = update.context_id
        if update.remote_task_id is not None and self.remote_task_id is None:
            self.remote_task_id = update.remote_task_id
            # Unless its end comes in the same turn of the event loop.
            self._announcement = asyncio.get_running_loop().call_soon(self._announce)
        if update.progress is not None:
            self.add(update.progress)

    def _announce(self) -> None:
        self._report("working", [])

    def close(self) -> None:
        """The call has ended: what waits is reported, except what its result says anyway."""
        if self._announcement is not None:
            self._announcement.cancel()
        self._report_waiting()

    def add(self, progress: Progress) -> None:
        last = self._waiting[-1] if self._waiting else None
        if last is not None and _continues(last, progress):
            # Each piece was redacted on its own; a secret may lie across them.
            text = self._redaction.text(last.text + progress.text)
            self._waiting[-1] = replace(last, text=text, last=progress.last)
        elif last != progress:
            self._waiting.append(progress)
        self._characters += len(progress.text)
        if self._characters >= _MAX_CHARACTERS:
            self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_EVERY_SECONDS, self.flush)

    def report_once(self, text: str) -> None:
        """What the agent says at every poll: it is reported the first time only, whichever bridge polls."""
        progress = _cut(Progress(kind="status", text=text))
        self._report("progress", [progress], f"said.{sha256(text.encode()).hexdigest()[:16]}")

    def flush(self) -> None:
        held = self._take_possible_secret()
        self._report_waiting()
        self._waiting = held

    def _take_possible_secret(self) -> list[Progress]:
        """Holds back what may be the beginning of a secret: its rest may be in the next piece."""
        last = self._waiting[-1] if self._waiting else None
        if last is None or last.parts or last.last or last.kind != "artifact":
            return []
        begun = self._redaction.begun_in(last.text)
        if begun == 0:
            return []
        if begun == len(last.text):
            return [self._waiting.pop()]
        self._waiting[-1] = replace(last, text=last.text[:-begun])
        return [replace(last, text=last.text[-begun:], append=True)]

    def _report_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._waiting:
            self._number += 1
            # A bridge that takes the task over counts from one again, in its own epoch.
            self._report(
                "progress",
                [_cut(progress) for progress in self._waiting],
                f"{self._claim.epoch}.{self._number}",
            )
        self._waiting = []
        self._characters = 0

    def _report(self, status: Status, progress: list[Progress], number: str = "") -> None:
        claim = self._claim
        self._report_update(
            CallProgress(
                claim=claim,
                answer=TaskAnswer(
                    key=claim.key,
                    epoch=claim.epoch,
                    holds=True,
                    remote_task_id=self.remote_task_id,
                    context_id=self.context_id,
                    deadline=claim.deadline,
                    polls=claim.polls,
                ),
                result=AgentResult(
                    **ids_of(claim),
                    status=status,
                    at=self._clock.now(),
                    protocol=self._protocol,
                    context_id=self.context_id,
                    remote_task_id=self.remote_task_id,
                    progress=progress,
                    number=number,
                ),
            )
        )


def _continues(last: Progress, progress: Progress) -> bool:
    return (
        progress.append
        and progress.kind == last.kind
        and progress.artifact_id == last.artifact_id
        and not progress.parts
        and not last.parts
    )


def _cut(progress: Progress) -> Progress:
    if len(progress.text) <= _MAX_CHARACTERS and len(progress.parts) <= _MAX_PARTS:
        return progress
    return replace(progress, text=progress.text[:_MAX_CHARACTERS], parts=progress.parts[:_MAX_PARTS])
