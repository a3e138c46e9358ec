"""
What a caller gets of a run's output, in the form of 1.0.

A workflow's output becomes artifacts (`artifacts`). A published agent's answer is passed on: its artifacts, the message
of its last status, its metadata, or the message that it answered with in place of a task. An agent whose dialect has
no artifacts answers with a value, which becomes one artifact:

    an object or a list                      a data part
    a text, or any other value               a text part
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from trunkline.jsontypes import Json, JsonObject
from trunkline.publishing.artifacts import artifacts_of, part_v1

_KEPT = ("metadata", "extensions", "referenceTaskIds")


class PublishedAnswer(NamedTuple):
    artifacts: Sequence[JsonObject] = ()
    # Without the ids of task and context, which are the caller's.
    status_message: JsonObject | None = None
    # The whole answer: the agent has not made a task.
    message: JsonObject | None = None
    metadata: JsonObject | None = None


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
