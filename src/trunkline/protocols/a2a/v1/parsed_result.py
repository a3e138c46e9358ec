"""
What one result of an agent says, before it is decided what that means.

    {"task": {…}}  {"message": {…}}  {"statusUpdate": {…}}  {"artifactUpdate": {…}}  a bare Task    read here
    everything else that agents send                                     read by lenient_parsing.py, into the same
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
from msgspec import UNSET, Raw

from trunkline.protocols.a2a.common.parsed_result import not_null
from trunkline.protocols.a2a.v1.artifacts import WholeArtifact
from trunkline.protocols.a2a.v1.model import (
    V1Artifact,
    V1ArtifactUpdate,
    V1Message,
    V1Result,
    V1StatusUpdate,
    V1Task,
    non_empty,
)

Form = Literal["task", "status-update", "artifact-update", "message", "other"]


class V1ParsedResult(msgspec.Struct, kw_only=True):
    form: Form
    # As the agent spells it; None when it says none.
    state: str | None = None
    remote_task_id: str | None = None
    context_id: str | None = None
    artifacts: list[V1Artifact] = []
    # Artifacts, history and messages as they go into the output: nothing that the agent sent is missing in them.
    artifacts_whole: Sequence[WholeArtifact] = ()
    # Of an artifact's update: it goes on with an earlier piece; nothing comes after it.
    append: bool = False
    last_chunk: bool = False
    status_message: V1Message | None = None
    status_message_whole: object = None
    history: list[V1Message] = []
    history_whole: object = None
    # A direct Message, or one that came with a task.
    message: V1Message | None = None
    message_whole: object = None
    metadata: Raw | None = None
    # An error that the agent put into its result.
    reported_error: str | None = None
    notes: list[str] = []


def parse_exact_result(result: V1Result) -> V1ParsedResult | None:
    """What a result in the form of 1.0 says; None when it needs a closer look."""
    filled = (
        (result.task is not UNSET)
        + (result.message is not UNSET)
        + (result.status_update is not UNSET)
        + (result.artifact_update is not UNSET)
        + (result.status is not UNSET)
    )
    if filled != 1:
        return None
    if result.task is not UNSET:
        return _task(result.task)
    if result.status is not UNSET:
        return _task(result)
    if result.message is not UNSET:
        return _message(result.message)
    if result.status_update is not UNSET:
        return _status_update(result.status_update)
    return None if result.artifact_update is UNSET else _artifact_update(result.artifact_update)


def _task(task: V1Task | V1Result) -> V1ParsedResult | None:
    status = task.status
    if status is UNSET or _repeats_an_id(task.artifacts):
        return None
    return V1ParsedResult(
        form="task",
        state=status.state,
        remote_task_id=non_empty(task.id),
        context_id=non_empty(task.context_id),
        artifacts=task.artifacts,
        artifacts_whole=task.artifacts,
        status_message=status.message,
        status_message_whole=status.message,
        history=task.history,
        history_whole=task.history,
        metadata=not_null(task.metadata),
    )


def _message(message: V1Message) -> V1ParsedResult:
    return V1ParsedResult(
        form="message",
        remote_task_id=non_empty(message.task_id),
        context_id=non_empty(message.context_id),
        message=message,
        message_whole=message,
        metadata=not_null(message.metadata),
    )


def _status_update(update: V1StatusUpdate) -> V1ParsedResult:
    return V1ParsedResult(
        form="status-update",
        state=update.status.state,
        remote_task_id=non_empty(update.task_id),
        context_id=non_empty(update.context_id),
        status_message=update.status.message,
        status_message_whole=update.status.message,
        metadata=not_null(update.metadata),
    )


def _artifact_update(update: V1ArtifactUpdate) -> V1ParsedResult:
    return V1ParsedResult(
        form="artifact-update",
        remote_task_id=non_empty(update.task_id),
        context_id=non_empty(update.context_id),
        artifacts=[update.artifact],
        artifacts_whole=[update.artifact],
        append=update.append,
        last_chunk=update.last_chunk,
        metadata=not_null(update.metadata),
    )


def _repeats_an_id(artifacts: list[V1Artifact]) -> bool:
    if len(artifacts) < 2:
        return False
    ids = [artifact.artifact_id for artifact in artifacts if artifact.artifact_id is not UNSET]
    return len(set(ids)) != len(ids)
