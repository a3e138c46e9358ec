"""
What the versions of A2A have in common, seen from an agent: operations on tasks, under names of their own.

Method names of 0.3 and 1.0 never overlap, so one address serves both; a dialect says how its params are read and how
tasks and their updates are written.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import datetime
from typing import ClassVar, Literal

import msgspec

from trunkline.agentkit.errors import NO_PUSHES, RequestError, invalid_params
from trunkline.agentkit.json_values import Json, JsonObject, kind_of
from trunkline.agentkit.messages import Message, read_message
from trunkline.agentkit.task_execution import TaskExecution, TaskUpdate

Operation = Literal["send", "stream", "get", "cancel", "resubscribe", "list", "push", "extended_card"]


class SendParams(msgspec.Struct, frozen=True, kw_only=True):
    """A message, and how its sender wants the answer."""

    message: Message
    # Whether to answer only when the task rests.
    is_blocking: bool = True
    # How many messages of the history to send along; None: all.
    history: int | None = None


class A2ADialect(ABC):
    operations: ClassVar[Mapping[str, Operation]]
    # Whether a stream of a task that has ended can be asked for: it has the task and nothing else.
    streams_ended_tasks: ClassVar[bool]

    @abstractmethod
    def is_blocking(self, configuration: JsonObject) -> bool: ...

    @abstractmethod
    def history_length(self, fields: JsonObject) -> int | None:
        """How many messages are wanted; None: all."""

    @abstractmethod
    def task(
        self, execution: TaskExecution, history: int | None, *, artifacts: bool = True
    ) -> JsonObject: ...

    @abstractmethod
    def send_result(self, task: JsonObject) -> JsonObject:
        """The task as the answer to a message, and as the first event of a stream."""

    @abstractmethod
    def update(self, execution: TaskExecution, update: TaskUpdate) -> JsonObject: ...

    @abstractmethod
    def error_data(self, code: int) -> Json:
        """The data of an error, in addition to its code and message. None: it has none."""

    def read_send_params(self, params: JsonObject) -> SendParams:
        configuration = params.get("configuration")
        if configuration is None:
            configuration = {}
        if not isinstance(configuration, dict):
            raise invalid_params(f"configuration is {kind_of(configuration)}, not an object")
        if configuration.get("pushNotificationConfig") or configuration.get("taskPushNotificationConfig"):
            raise RequestError(
                NO_PUSHES, "Push notifications are not supported: use a stream, or poll the task"
            )
        return SendParams(
            message=read_message(params.get("message")),
            is_blocking=self.is_blocking(configuration),
            history=self.history_length(configuration),
        )


def length_in(fields: JsonObject) -> int | None:
    length = fields.get("historyLength")
    if length is None:
        return None
    if not isinstance(length, int) or isinstance(length, bool) or length < 0:
        raise invalid_params("historyLength must be a whole number, and not negative")
    return length


def flag_in(fields: JsonObject, name: str) -> bool | None:
    flag = fields.get(name)
    if flag is not None and not isinstance(flag, bool):
        raise invalid_params(f"{name} is {kind_of(flag)}, not a boolean")
    return flag


def latest(history: list[Message], length: int | None) -> list[Message]:
    return history if length is None else history[max(0, len(history) - length) :]


def timestamp(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
