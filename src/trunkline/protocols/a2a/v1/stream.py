"""
A task from the events of a stream.

    {"task": {…}}                                    the task as it stands: first, and after a resubscription
    {"statusUpdate": {"taskId", "status"}}           replaces the status
    {"artifactUpdate": {"artifact", "append"}}       a piece of an artifact
    {"message": {…}}                                 the whole answer, if no task was created

Nothing says "final" in 1.0: a terminal or an interrupted state is the end.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec import UNSET, Raw

from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.messages import Progress
from trunkline.protocols.a2a.common.outcome import agent_message, outcome_of
from trunkline.protocols.a2a.common.parsed_result import text_of
from trunkline.protocols.a2a.common.parts import shown_part
from trunkline.protocols.a2a.common.states import COMPLETED, INTERRUPTED, TERMINAL, canonical_state
from trunkline.protocols.a2a.v1.artifacts import ArtifactAssembler
from trunkline.protocols.a2a.v1.errors import TEXTS
from trunkline.protocols.a2a.v1.model import (
    V1Artifact,
    V1Message,
    is_thought,
    non_empty,
    parts_of,
)
from trunkline.protocols.a2a.v1.parsed_result import V1ParsedResult
from trunkline.protocols.answer_json import decode_checked
from trunkline.protocols.outcomes import Failed, Outcome, ProtocolTranslationError, StreamUpdate, Working
from trunkline.protocols.outputs import OutputMode

# A stream that complains about every event must have an end of that too.
_MAX_NOTES = 20


class V1StreamReader:
    """Reads one stream; `open_event` opens an event's data, and `whole_of` gives all of its result."""

    def __init__(
        self,
        open_event: Callable[[bytes], V1ParsedResult | Failed],
        whole_of: Callable[[bytes], bytes],
        mode: OutputMode,
        protocol: str,
    ) -> None:
        self._open_event = open_event
        self._whole_of = whole_of
        self._mode: OutputMode = mode
        self._protocol = protocol
        self._task = V1ParsedResult(form="other", notes=[])
        self._artifacts = ArtifactAssembler()
        self._metadata: JsonObject = {}
        self._last_event = b""
        # True: the agent has shown the whole task in the state that it now has.
        self._is_shown_whole = False
        self._failed: Failed | None = None
        self._is_over = False

    def take(self, data: bytes) -> StreamUpdate:
        if self._is_over:
            return StreamUpdate(is_over=True)
        opened = self._open_event(data)
        if isinstance(opened, Failed):
            self._failed = msgspec.structs.replace(
                opened, remote_task_id=self._task.remote_task_id, context_id=self._task.context_id
            )
            self._is_over = True
            return StreamUpdate(is_over=True)
        if opened.form == "other":
            return StreamUpdate()
        self._last_event = data
        self._merge(opened)
        self._is_over = self._has_ended()
        return StreamUpdate(
            remote_task_id=opened.remote_task_id,
            context_id=opened.context_id,
            # An end is shown as the step's own.
            progress=None if self._is_over else _progress_in(opened),
            is_over=self._is_over,
        )

    def outcome(self) -> Outcome:
        """
        What has come so far means this; `Working` while the task goes on.

        A task that is completed without a word, or with an artifact whose beginning was not seen, is `Working` in
        the state `completed`: the answer is with the agent, which must be asked for the task.
        """
        if self._failed is not None:
            return self._failed
        if self._task.form == "other":
            raise ProtocolTranslationError(
                "The stream ended before its first event", self._protocol, "response", self._last_event
            )
        task = self._current_task()
        if task.remote_task_id is not None and task.form == "task":
            if task.state is None and task.reported_error is None:
                task.state = "working"
            if task.state is not None and canonical_state(task.state) == COMPLETED and self._needs_poll():
                return Working(
                    remote_task_id=task.remote_task_id, state=COMPLETED, context_id=task.context_id
                )
        return outcome_of(task, lambda: self._whole_of(self._last_event), self._mode, TEXTS)

    def _merge(self, event: V1ParsedResult) -> None:
        task = self._task
        task.remote_task_id = event.remote_task_id or task.remote_task_id
        task.context_id = event.context_id or task.context_id
        task.reported_error = event.reported_error or task.reported_error
        task.notes.extend(event.notes[: _MAX_NOTES - len(task.notes)])
        if event.message is not None:
            task.message, task.message_whole = event.message, event.message_whole
        if event.form != "message":
            task.form = "task"
        elif task.form == "other":
            task.form = "message"
        if event.state is not None:
            task.state, task.status_message = event.state, event.status_message
            task.status_message_whole = event.status_message_whole
            self._is_shown_whole = event.form == "task"
        if event.form == "task":
            task.history, task.history_whole = event.history, event.history_whole
            if event.artifacts:
                self._artifacts = ArtifactAssembler()
        for artifact, whole in zip(event.artifacts, event.artifacts_whole, strict=True):
            self._artifacts.add(artifact, whole, append=event.append)
        self._merge_metadata(event.metadata)

    def _merge_metadata(self, metadata: Raw | None) -> None:
        value = None if metadata is None else decode_checked(metadata)
        if isinstance(value, dict):
            self._metadata |= value

    def _current_task(self) -> V1ParsedResult:
        task = self._task
        task.artifacts, task.artifacts_whole = self._artifacts.joined()
        task.metadata = Raw(encode(self._metadata)) if self._metadata else None
        return task

    def _has_ended(self) -> bool:
        if self._task.form == "message":
            return True
        return self._task.state is not None and canonical_state(self._task.state) in TERMINAL | INTERRUPTED

    def _needs_poll(self) -> bool:
        if self._artifacts.has_gap:
            return True
        said_something = (
            any(_has_output(artifact) for artifact in self._task.artifacts)
            or _has_output(self._task.status_message)
            or self._task.message is not None
        )
        return not said_something and not self._is_shown_whole


def _has_output(holder: V1Artifact | V1Message | None) -> bool:
    return any(not is_thought(part) for part in parts_of(holder))


def _progress_in(event: V1ParsedResult) -> Progress | None:
    """What an event says that is worth showing."""
    if event.form == "artifact-update":
        return _of_artifact(event.artifacts[0], event) if event.artifacts else None
    message = agent_message(event.message if event.form == "message" else event.status_message)
    text, parts = text_of(message), _shown(message)
    return Progress(kind="status", text=text, parts=parts) if text or parts else None


def _of_artifact(artifact: V1Artifact, event: V1ParsedResult) -> Progress:
    return Progress(
        kind="artifact",
        text=text_of(artifact),
        artifact_id=non_empty(artifact.artifact_id),
        name=non_empty(artifact.name),
        append=event.append,
        last=event.last_chunk,
        parts=_shown(artifact),
    )


def _shown(holder: V1Artifact | V1Message | None) -> list[Json]:
    others = [part for part in parts_of(holder) if part.text is UNSET and not is_thought(part)]
    values = [decode_checked(encode(part)) for part in others]
    return [shown_part(value) for value in values if isinstance(value, dict)]
