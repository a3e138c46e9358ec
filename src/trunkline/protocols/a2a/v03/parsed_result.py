"""
What one result of an agent says, before it is decided what that means.

    {"kind": "task", …}  {"kind": "message", …}          bare, as A2A 0.2 and 0.3 have it: read here
    everything else that agents send                     read by lenient_parsing.py, into the same form
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import UNSET, Raw

from trunkline.protocols.a2a.common.parsed_result import not_null
from trunkline.protocols.a2a.v03.model import V03Artifact, V03Message, V03Result

Form = Literal["task", "message", "artifact-update", "other"]


class V03ParsedResult(msgspec.Struct, kw_only=True):
    form: Form
    # False: only our reading makes it A2A, the agent may have meant something else.
    certain: bool = True
    # As the agent spells it; None when it says none.
    state: str | None = None
    remote_task_id: str | None = None
    context_id: str | None = None
    artifacts: list[V03Artifact] = []
    # Artifacts, history and messages as they go into the output: nothing that the agent sent is missing in them.
    artifacts_whole: object = None
    status_message: V03Message | None = None
    status_message_whole: object = None
    history: list[V03Message] = []
    history_whole: object = None
    # A direct Message, or one that came with a task.
    message: V03Message | None = None
    message_whole: object = None
    metadata: Raw | None = None
    # An error that the agent put into its result.
    reported_error: str | None = None
    notes: list[str] = []


def parse_exact_result(result: V03Result) -> V03ParsedResult | None:
    """What a result in the form of 0.3 says; None when it needs a closer look."""
    if result.status is not None:
        return None if result.parts is not UNSET else _task(result)
    if result.parts is not UNSET and not result.artifacts and not result.history:
        return _message(result)
    return None


def _task(result: V03Result) -> V03ParsedResult | None:
    status, artifacts, history = result.status, result.artifacts or [], result.history or []
    if status is None or _repeats_an_id(artifacts):
        return None
    return V03ParsedResult(
        form="task",
        state=status.state,
        remote_task_id=result.id or None if result.id is not UNSET else result.task_id,
        context_id=result.context_id,
        artifacts=artifacts,
        artifacts_whole=artifacts,
        status_message=status.message,
        status_message_whole=status.message,
        history=history,
        history_whole=history,
        metadata=not_null(result.metadata),
    )


def _message(result: V03Result) -> V03ParsedResult:
    whole = V03Message(
        role=result.role,
        parts=result.parts,
        message_id=result.message_id,
        metadata=result.metadata,
        extensions=result.extensions,
        reference_task_ids=result.reference_task_ids,
    )
    return V03ParsedResult(
        form="message",
        remote_task_id=result.task_id,
        context_id=result.context_id,
        message=whole,
        message_whole=whole,
        metadata=not_null(result.metadata),
    )


def _repeats_an_id(artifacts: list[V03Artifact]) -> bool:
    if len(artifacts) < 2:
        return False
    ids = [artifact.artifact_id for artifact in artifacts if artifact.artifact_id is not UNSET]
    return len(set(ids)) != len(ids)
