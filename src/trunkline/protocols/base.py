"""
What every dialect offers, and what the bridge gets from it.

A dialect turns an `AgentTask` into the bytes of a request and an agent's answer into an `Outcome`. It does no
I/O: the bridge sends, receives, waits and asks again.

The three methods that the seeds name are enough for a dialect of one's own: `encode` and `decode` are built on them
here. A dialect whose agents keep tasks also overrides `encode_poll`, `encode_cancel` and `decode`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Literal

import msgspec

from trunkline.jsontypes import Json, JsonObject
from trunkline.messages import AgentTask, Question, StepError

Direction = Literal["request", "response"]


class ProtocolTranslationError(Exception):
    """A request or a response could not be translated."""

    def __init__(
        self,
        message: str,
        protocol: str,
        direction: Direction,
        original_data: object = None,
        *,
        code: str = "agent_answer_malformed",
    ) -> None:
        super().__init__(message)
        self.protocol = protocol
        self.direction = direction
        self.original_data = original_data
        # One of messages.ERROR_CODES.
        self.code = code


class AgentRequest(msgspec.Struct, frozen=True):
    """The body of one HTTP POST, and the headers that the dialect itself asks for."""

    body: bytes
    headers: Mapping[str, str] = {}


class AgentAnswer(msgspec.Struct, frozen=True):
    """What came back: an HTTP status, headers (names in lower case) and the whole body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Succeeded(msgspec.Struct, frozen=True, kw_only=True):
    # The step's output as JSON text.
    output: bytes
    context_id: str | None = None
    remote_task_id: str | None = None
    # What an operator should know though the call succeeded, e.g. empty artifacts.
    warnings: tuple[str, ...] = ()


class Failed(msgspec.Struct, frozen=True, kw_only=True):
    error: StepError
    context_id: str | None = None
    remote_task_id: str | None = None
    warnings: tuple[str, ...] = ()
    # True: the answer proves that the agent did not take the work because it speaks another dialect
    # (-32601, 404, 405, 501, a 4xx about the request's shape).
    other_dialect: bool = False


class Working(msgspec.Struct, frozen=True, kw_only=True):
    """The agent has taken the task and is not done: ask again with `encode_poll`."""

    remote_task_id: str
    state: str
    context_id: str | None = None


class Interrupted(msgspec.Struct, frozen=True, kw_only=True):
    """The agent waits for a person."""

    question: Question
    remote_task_id: str | None = None
    context_id: str | None = None


Outcome = Succeeded | Failed | Working | Interrupted


class ProtocolAdapter(ABC):
    """One dialect, for one agent's configuration."""

    @abstractmethod
    def to_agent_request(self, task: AgentTask) -> JsonObject:
        """The request's payload in the agent's format."""

    @abstractmethod
    def from_agent_response(self, response: JsonObject, task_id: str) -> JsonObject:
        """
        The agent's payload in the internal format: `{"task_id", "status": "success"|"error", "output", "error"}`.

        Raises `ProtocolTranslationError` when the payload is not in the agent's format.
        """

    @abstractmethod
    def get_protocol_name(self) -> str:
        """The name under which the registry knows the dialect."""

    def encode(self, task: AgentTask) -> AgentRequest:
        """The request as bytes; raises `ProtocolTranslationError` (direction `request`)."""
        raise NotImplementedError

    def decode(self, answer: AgentAnswer, task: AgentTask) -> Outcome:
        """
        What the answer means.

        Raises `ProtocolTranslationError` when it is malformed; the bridge makes an error of it that names the
        symptom, and logs the body.
        """
        raise NotImplementedError

    def encode_poll(self, task: AgentTask, remote_task_id: str) -> AgentRequest | None:
        """A request that asks how the remote task stands; its answer is read by `decode`. None: no way to ask."""
        del task, remote_task_id
        return None

    def encode_cancel(self, task: AgentTask, remote_task_id: str) -> AgentRequest | None:
        """A request that asks the agent to stop; None where the dialect has none."""
        del task, remote_task_id
        return None


def is_json_object(value: Json) -> bool:
    return isinstance(value, dict)
