"""
What dialect and bridge say to one another: a request, an answer, and what the answer means.

    AgentRequest   one HTTP request, made by the dialect
    AgentAnswer    status, headers and body that came back
    Outcome        Succeeded | Failed | Working | Interrupted, read from the answer by the dialect

`ProtocolAdapter.from_agent_response` returns an outcome as a dictionary, the internal format:
`{"task_id", "status": "success"|"error", "output", "error"}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol, assert_never

import msgspec

from trunkline.jsontypes import Json, JsonObject, decode, encode
from trunkline.messages import Progress, Question, StepError, fix_for

Direction = Literal["request", "response"]


# A ValueError, because `from_agent_response` is documented to raise one when it cannot translate.
class ProtocolTranslationError(ValueError):
    """A request or a response could not be translated."""

    def __init__(
        self,
        message: str,
        protocol: str,
        direction: Direction,
        original_data: object = None,
        *,
        code: str = "agent_answer_malformed",
        fix: str = "",
        other_dialect: bool = False,
    ) -> None:
        super().__init__(message)
        self.protocol = protocol
        self.direction = direction
        self.original_data = original_data
        # One of messages.ERROR_CODES.
        self.code = code
        self.fix = fix or fix_for(code)
        # As in `Failed`.
        self.other_dialect = other_dialect


class AgentRequest(msgspec.Struct, frozen=True):
    """One HTTP request, with the headers that the dialect itself asks for."""

    # Nothing: a GET.
    body: bytes
    headers: Mapping[str, str] = {}
    # What follows the path of the agent's endpoint, where the dialect has more addresses than one: `/tasks/…`.
    path: str = ""


class PushTarget(msgspec.Struct, frozen=True, kw_only=True):
    """Where an agent may send push notifications."""

    url: str
    token: str


class SendOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How the caller prefers to get the result; an adapter whose dialect cannot express it ignores it."""

    push: PushTarget | None = None
    # The task may take too long to keep a connection open: the agent accepts it and is polled.
    return_immediately: bool = False


DEFAULT_SEND_OPTIONS = SendOptions()


class StreamUpdate(msgspec.Struct, frozen=True, kw_only=True):
    """What one event of a stream says."""

    remote_task_id: str | None = None
    context_id: str | None = None
    progress: Progress | None = None
    # Nothing that matters comes after this event; a server that keeps the stream open is not waited for.
    is_over: bool = False


class TaskStreamReader(Protocol):
    """Reads one stream of one task; created for every stream, with the results of the earlier ones."""

    def take(self, data: bytes) -> StreamUpdate:
        """One event's data; raises `ProtocolTranslationError`."""
        ...

    def outcome(self) -> Outcome:
        """
        What has come so far means this; `Working` while the task goes on.

        Raises `ProtocolTranslationError` when nothing has come that could mean anything.
        """
        ...


class AnswerTiming(msgspec.Struct, frozen=True):
    """When what had happened, in milliseconds after a transport was given the request."""

    # A connection was there: a new one, or one that had been kept.
    connect_ms: float
    # The head of the answer was there.
    first_byte_ms: float


class AgentAnswer(msgspec.Struct, frozen=True):
    """What came back: an HTTP status, headers (names in lower case) and the whole body."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    # For the record; not every transport can tell.
    timing: AnswerTiming | None = None


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
    # The agent says that it does not know the task that it was asked about.
    task_unknown: bool = False


class Working(msgspec.Struct, frozen=True, kw_only=True):
    """The agent has taken the task and is not done: ask again with `encode_poll`."""

    remote_task_id: str
    state: str
    context_id: str | None = None
    # What the agent says meanwhile.
    text: str = ""


class Interrupted(msgspec.Struct, frozen=True, kw_only=True):
    """The agent waits for a person."""

    question: Question
    remote_task_id: str | None = None
    context_id: str | None = None


Outcome = Succeeded | Failed | Working | Interrupted


def step_error(
    code: str,
    message: str,
    *,
    fix: str = "",
    detail: Json = None,
    jsonrpc_code: int | None = None,
    http_status: int | None = None,
    retry_after_ms: int | None = None,
) -> StepError:
    """An error with the fix that its code has, unless the caller knows a better one."""
    return StepError(
        code=code,
        message=message,
        fix=fix or fix_for(code),
        detail=detail,
        jsonrpc_code=jsonrpc_code,
        http_status=http_status,
        retry_after_ms=retry_after_ms,
    )


def failure_of(exc: ProtocolTranslationError) -> Failed:
    """What a translation that failed means for the call."""
    return Failed(error=step_error(exc.code, str(exc), fix=exc.fix), other_dialect=exc.other_dialect)


def to_internal_format(outcome: Outcome, task_id: str) -> JsonObject:
    """The outcome in the internal format."""
    match outcome:
        case Succeeded():
            return {"task_id": task_id, "status": "success", "output": decode(outcome.output), "error": None}
        case Failed():
            error = outcome.error.message
        case Working():
            error = f"Task state: {outcome.state}"
        case Interrupted():
            error = f"Task state: {outcome.question.kind}-required: {outcome.question.text}"
        case _:
            assert_never(outcome)
    return {"task_id": task_id, "status": "error", "output": None, "error": error}


def from_internal_format(result: JsonObject) -> Outcome:
    """The outcome of a result in the internal format; raises KeyError or ValueError if it has another format."""
    match result["status"]:
        case "success":
            return Succeeded(output=encode(result.get("output")))
        case "error":
            said = result.get("error")
            message = said if isinstance(said, str) else encode(said).decode()
            return Failed(error=step_error("agent_reported_error", message, detail=result.get("output")))
        case other:
            raise ValueError(f"status is {other!r}, not 'success' or 'error'")
