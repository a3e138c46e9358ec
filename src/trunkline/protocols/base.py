"""
What every dialect offers, and what the bridge gets from it.

A dialect turns an `AgentTask` into the bytes of a request and an agent's answer into an `Outcome`. It does no
I/O: the bridge sends, receives, waits and asks again.

The three abstract methods are enough for your own dialect; `encode` and `decode` are built
on them:

    to_agent_request     AgentTask -> the request's payload, a JSON object
    from_agent_response  the answer's payload -> {"task_id", "status": "success"|"error", "output", "error"}

A dialect that does better than that overrides `decode_body`; one whose agents keep tasks also `encode_poll`
and `encode_cancel`, and one that streams `encode_stream`, `encode_resubscribe` and `read_stream`.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cache
from typing import ClassVar, Self

import msgspec

from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.messages import AgentTask
from trunkline.protocols.answer_json import NotJson, json_kind, parse
from trunkline.protocols.http_failures import add_http_details, failure_without_body, http_failure
from trunkline.protocols.outcomes import (
    DEFAULT_SEND_OPTIONS,
    AgentAnswer,
    AgentRequest,
    AnswerTiming,
    Direction,
    Failed,
    Interrupted,
    Outcome,
    ProtocolTranslationError,
    PushTarget,
    SendOptions,
    StreamUpdate,
    Succeeded,
    TaskStreamReader,
    Working,
    failure_of,
    from_internal_format,
)

__all__ = [
    "AgentAnswer",
    "AgentRequest",
    "AnswerTiming",
    "Direction",
    "Failed",
    "Interrupted",
    "Outcome",
    "ProtocolAdapter",
    "ProtocolTranslationError",
    "PushTarget",
    "SendOptions",
    "StreamUpdate",
    "Succeeded",
    "TaskStreamReader",
    "Working",
    "failure_of",
]

# What code that walks through an unexpected payload raises.
_MISREAD = (ValueError, LookupError, TypeError, AttributeError, RecursionError)


@cache
def _keywords_of(adapter_class: type) -> frozenset[str] | None:
    """The names of the constructor's parameters; None when it takes any."""
    parameters = inspect.signature(adapter_class).parameters
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
        return None
    return frozenset(parameters)


class ProtocolAdapter(ABC):
    """One dialect, for one agent's configuration."""

    # Whether its requests have headers, paths or methods of HTTP; otherwise a body is all there is to them.
    needs_http: ClassVar[bool] = False

    @abstractmethod
    def to_agent_request(self, task: AgentTask) -> JsonObject:
        """The request's payload in the agent's format."""

    @abstractmethod
    def from_agent_response(self, response: JsonObject, task_id: str) -> JsonObject:
        """
        The agent's payload in the internal format.

        That is `{"task_id", "status": "success"|"error", "output", "error"}`.

        Raises `ProtocolTranslationError` when the payload is not in the agent's format.
        """

    @abstractmethod
    def get_protocol_name(self) -> str:
        """The name under which the registry knows the dialect."""

    @classmethod
    def from_config(cls, config: Mapping[str, Json]) -> Self:
        """An adapter for an agent's `protocol_config`; the constructor gets the keys that it knows."""
        accepted = _keywords_of(cls)
        return cls(**{key: value for key, value in config.items() if accepted is None or key in accepted})

    def encode(self, task: AgentTask, options: SendOptions = DEFAULT_SEND_OPTIONS) -> AgentRequest:
        """The request as bytes; raises `ProtocolTranslationError` (direction `request`)."""
        del options  # this format has no place for them
        return self.request(self.to_agent_request, task)

    def request(self, write: Callable[[AgentTask], JsonObject], task: AgentTask) -> AgentRequest:
        """A request with the payload that `write` makes of the task; raises as `encode` does."""
        try:
            return AgentRequest(body=encode(write(task)))
        except ProtocolTranslationError:
            raise
        except _MISREAD as exc:
            raise ProtocolTranslationError(
                f"The input cannot be sent in {self.get_protocol_name()}: {exc}",
                self.get_protocol_name(),
                "request",
                task.input_data,
                code="request_not_encodable",
            ) from exc

    def decode(self, answer: AgentAnswer, task: AgentTask) -> Outcome:
        """
        What the answer means.

        Raises `ProtocolTranslationError` when it is malformed; the bridge makes an error of it that names the
        symptom (`failure_of`), and logs the body.
        """
        unreadable = failure_without_body(answer)
        if unreadable is not None:
            return unreadable
        try:
            outcome = self.decode_body(answer.body, task)
        except (NotJson, ProtocolTranslationError) as exc:
            if answer.status >= 400:
                failed = http_failure(answer, request_size=len(self.encode(task).body))
                proved = isinstance(exc, ProtocolTranslationError) and exc.other_dialect
                return msgspec.structs.replace(failed, other_dialect=True) if proved else failed
            raise self._malformed(exc, answer.body) from exc
        if answer.status < 400 and isinstance(outcome, Succeeded):
            return outcome
        return add_http_details(outcome, answer)

    def decode_body(self, body: bytes, task: AgentTask) -> Outcome:
        """What the answer's body means; raises `NotJson` or `ProtocolTranslationError`."""
        response = parse(body)
        if not isinstance(response, dict):
            raise NotJson(f"The answer is {json_kind(response)}, not an object")
        try:
            return from_internal_format(self.from_agent_response(response, task.task_id))
        except ProtocolTranslationError:
            raise
        except _MISREAD as exc:
            raise ProtocolTranslationError(
                f"{type(exc).__name__}: {exc}", self.get_protocol_name(), "response", response
            ) from exc

    def encode_poll(self, task: AgentTask, remote_task_id: str) -> AgentRequest | None:
        """A request that asks how the remote task stands, read by `decode`; None: there is no way to ask."""
        del task, remote_task_id
        return None

    def encode_cancel(self, task: AgentTask, remote_task_id: str) -> AgentRequest | None:
        """A request that asks the agent to stop; None where the dialect has none."""
        del task, remote_task_id
        return None

    def encode_stream(self, task: AgentTask) -> AgentRequest | None:
        """A request for the same work that is answered by a stream; None where the dialect has none."""
        del task
        return None

    def encode_resubscribe(self, task: AgentTask, remote_task_id: str) -> AgentRequest | None:
        """A request to go on with the stream of a task; None where the dialect has none."""
        del task, remote_task_id
        return None

    def read_stream(self, task: AgentTask) -> TaskStreamReader:
        """A reader for the answer to one of the two requests above."""
        raise NotImplementedError(f"{self.get_protocol_name()} has no streams: {task.task_id}")

    def encode_find(self, task: AgentTask) -> AgentRequest | None:
        """
        A request that asks whether the agent has taken this task, whose remote id is not known.

        By its context, for agents that list their tasks; None where there is no way to ask.
        """
        del task
        return None

    def decode_find(self, answer: AgentAnswer, task: AgentTask) -> str | None:
        """The remote id of the task that has our message; None: the agent does not have it."""
        raise NotImplementedError(f"{self.get_protocol_name()} cannot find {task.task_id}: {answer.status}")

    def _malformed(self, exc: NotJson | ProtocolTranslationError, body: bytes) -> ProtocolTranslationError:
        """The error as an operator reads it: starting with the symptom, and with the body attached."""
        name = self.get_protocol_name()
        if isinstance(exc, NotJson):
            return ProtocolTranslationError(f"{self.malformed_symptom()}: {exc}", name, "response", body)
        message = str(exc)
        if exc.code == "agent_answer_malformed":
            message = f"{self.malformed_symptom()}: {message}"
        return ProtocolTranslationError(
            message, name, "response", body, code=exc.code, fix=exc.fix, other_dialect=exc.other_dialect
        )

    def malformed_symptom(self) -> str:
        return f"malformed {self.get_protocol_name()} response"
