"""
What a caller gets of a run's output, in the form of 1.0.

A workflow's output becomes artifacts (`artifacts`). A published agent's answer is passed on: its artifacts, the message
of its last status, its metadata, or the message that it answered with in place of a task. An agent whose dialect has
no artifacts answers with a value, which becomes one artifact:

    an object or a list                      a data part
    a text, or any other value               a text part

The artifacts that a workflow names in `publish` follow those of its output.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from trunkline.jsontypes import Json, JsonObject, decode, encode
from trunkline.machine.scope import completed_scope, evaluate_artifacts, evaluate_message
from trunkline.machine.state import StepState
from trunkline.publishing.artifacts import artifacts_of, named_artifacts, part_v1, parts_of
from trunkline.publishing.files import StoredFiles
from trunkline.services.workflows import Workflows
from trunkline.stores.base import RunRecord

_KEPT = ("metadata", "extensions", "referenceTaskIds")


class PublishedAnswer(NamedTuple):
    artifacts: Sequence[JsonObject] = ()
    # Without the ids of task and context, which are the caller's.
    status_message: JsonObject | None = None
    # The whole answer: the agent has not made a task.
    message: JsonObject | None = None
    metadata: JsonObject | None = None


class AnswerReader:
    """Makes the answers of runs, with all files."""

    def __init__(self, workflows: Workflows, files: StoredFiles) -> None:
        self._workflows = workflows
        self._files = files

    async def of(self, record: RunRecord, steps: Sequence[StepState], *, of_agent: bool) -> PublishedAnswer:
        """Empty as long as the run has no output."""
        if record.output is None:
            return PublishedAnswer()
        output = decode(record.output)
        named = {} if of_agent else await self._named(record, steps)
        # A copy: what is written in the definition is the same object for every run. All files share one limit.
        more = decode(encode({"artifacts": named_artifacts(named)}))
        await self._files.load(record.id, output, more)
        answer = answer_of(output, of_agent=of_agent)
        return answer._replace(artifacts=_together(answer.artifacts, artifacts_of(more)))

    async def bare_message(
        self, record: RunRecord, steps: Sequence[StepState], *, of_agent: bool
    ) -> JsonObject | None:
        """What is said in place of the task; a workflow does so if `publish` has a message. With all files."""
        if record.output is None:
            return None
        if of_agent:
            return (await self.of(record, steps, of_agent=True)).message
        workflow = await self._workflows.compiled_for(record)
        if record.block is not None or workflow.publish.message is None:
            return None
        value = evaluate_message(workflow, completed_scope(record, steps, workflow))
        # A copy, as in `of`.
        output = decode(encode({"message": {"parts": parts_of(value)}}))
        await self._files.load(record.id, output)
        message = _message(output["message"]) if isinstance(output, dict) else None
        return message and {"messageId": f"{record.id}/message", **message}

    async def _named(self, record: RunRecord, steps: Sequence[StepState]) -> dict[str, Json]:
        workflow = await self._workflows.compiled_for(record)
        if record.block is not None or not workflow.publish.artifacts:
            return {}
        return evaluate_artifacts(workflow, completed_scope(record, steps, workflow))


def _together(first: Sequence[JsonObject], more: Sequence[JsonObject]) -> Sequence[JsonObject]:
    """Callers tell artifacts by their ids: one that is taken gets a number."""
    taken = {str(artifact["artifactId"]) for artifact in first}
    found = list(first)
    for artifact in more:
        name = identity = str(artifact["artifactId"])
        number = 2
        while identity in taken:
            identity, number = f"{name}-{number}", number + 1
        taken.add(identity)
        found.append({**artifact, "artifactId": identity})
    return found


def answer_of(output: Json, *, of_agent: bool) -> PublishedAnswer:
    if not of_agent or not isinstance(output, dict):
        return PublishedAnswer(artifacts_of(output))
    message = _message(output.get("message"))
    if message is not None:
        return PublishedAnswer(message=message)
    status_message = _message(output.get("status_message"))
    metadata = output.get("metadata")
    artifacts = artifacts_of({"artifacts": output.get("artifacts")}) if "artifacts" in output else []
    if not artifacts and status_message is None:
        artifacts = artifacts_of(_value(output))
    return PublishedAnswer(
        artifacts, status_message, None, metadata if isinstance(metadata, dict) and metadata else None
    )


def _value(output: JsonObject) -> Json:
    data, text = output.get("data"), output.get("text")
    return data if isinstance(data, dict | list) else text


def _message(value: Json) -> JsonObject | None:
    """A message of an agent, of 0.x or 1.0; None if it has no parts."""
    if not isinstance(value, dict):
        return None
    listed = value.get("parts")
    parts = [part for each in listed if (part := part_v1(each))] if isinstance(listed, list) else []
    if not parts:
        return None
    message: JsonObject = {"role": "ROLE_AGENT", "parts": [*parts]}
    identity = value.get("messageId", value.get("message_id"))
    if isinstance(identity, str) and identity:
        message["messageId"] = identity
    return message | {name: value[name] for name in _KEPT if value.get(name)}
