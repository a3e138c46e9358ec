"""
Messages between executor and bridge as records: JSON values, with headers that say what they are.

    trunkline-type       agent-task | cancel-task | agent-result
    trunkline-version    1
    trunkline-reference  1: the value only names the message, which is too long to travel; the store has it
    traceparent          the trace that a task belongs to, with tracestate: what looks at the topic sees it too

A record that is anything else is `UnreadableMessage`, and the reason says what to do about it.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, TypeVar

import msgspec

from trunkline.jsontypes import encode
from trunkline.messages.model import AgentResult, AgentTask, CancelTask
from trunkline.messages.records import ANY_PARTITION, BrokerRecord, OutgoingMessage, TaskKey
from trunkline.messages.trace import TRACEPARENT, TRACESTATE, TraceContext

VERSION = 1
# Half of Kafka's default limit for a record.
MAX_VALUE_BYTES = 512 * 1024

TYPE_HEADER = "trunkline-type"
VERSION_HEADER = "trunkline-version"
REFERENCE_HEADER = "trunkline-reference"

MessageType: TypeAlias = Literal["agent-task", "cancel-task", "agent-result"]
# For a metric: what is wrong with a record, in one word.
UnreadableReason: TypeAlias = Literal["empty", "type", "version", "malformed", "too_large", "unmapped"]

Headers: TypeAlias = tuple[tuple[str, bytes], ...]


class MessageReference(msgspec.Struct, frozen=True, kw_only=True):
    """Names a message that the store has."""

    task_id: str
    attempt: int
    run_id: str

    @property
    def key(self) -> TaskKey:
        return TaskKey(self.task_id, self.attempt)


class TaskReference(MessageReference, frozen=True, kw_only=True):
    """An `AgentTask` that is among the dispatches."""


class ResultReference(MessageReference, frozen=True, kw_only=True):
    """An `AgentResult` that is kept with its task."""


class UnreadableMessage(Exception):
    """A record that is not one of our messages, or has an unsupported version."""

    def __init__(self, category: UnreadableReason, reason: str) -> None:
        super().__init__(reason)
        self.category: UnreadableReason = category
        self.reason = reason


def _headers(message_type: MessageType) -> Headers:
    return ((TYPE_HEADER, message_type.encode()), (VERSION_HEADER, str(VERSION).encode()))


_TASK = _headers("agent-task")
_CANCEL = _headers("cancel-task")
_RESULT = _headers("agent-result")
_BY_REFERENCE = (REFERENCE_HEADER, b"1")

_tasks: msgspec.json.Decoder[AgentTask] = msgspec.json.Decoder(AgentTask)
_cancels: msgspec.json.Decoder[CancelTask] = msgspec.json.Decoder(CancelTask)
_results: msgspec.json.Decoder[AgentResult] = msgspec.json.Decoder(AgentResult)
_task_references: msgspec.json.Decoder[TaskReference] = msgspec.json.Decoder(TaskReference)
_result_references: msgspec.json.Decoder[ResultReference] = msgspec.json.Decoder(ResultReference)

AnyMessage = TypeVar("AnyMessage", AgentTask, CancelTask, AgentResult, TaskReference, ResultReference)


def encode_task(message: AgentTask | CancelTask, topic: str, payload: bytes | None = None) -> OutgoingMessage:
    """`payload` is the encoded message where the caller has it already."""
    value = encode(message) if payload is None else payload
    if isinstance(message, CancelTask):
        return OutgoingMessage(topic, message.run_id, value, _CANCEL)
    # Whatever bridge takes it in, any may call the agent.
    return _outgoing(topic, message, value, _TASK + _trace_headers(message.trace), ANY_PARTITION)


def encode_result(result: AgentResult, topic: str) -> OutgoingMessage:
    return _outgoing(topic, result, encode(result), _RESULT, result.reply_partition)


def _trace_headers(trace: TraceContext | None) -> Headers:
    if trace is None:
        return ()
    parent = (TRACEPARENT, trace.traceparent.encode())
    return (parent,) if trace.tracestate is None else (parent, (TRACESTATE, trace.tracestate.encode()))


def _outgoing(
    topic: str, message: AgentTask | AgentResult, value: bytes, headers: Headers, partition: int | None
) -> OutgoingMessage:
    if len(value) > MAX_VALUE_BYTES:
        value = encode(
            MessageReference(task_id=message.task_id, attempt=message.attempt, run_id=message.run_id)
        )
        headers = (*headers, _BY_REFERENCE)
    return OutgoingMessage(topic, message.run_id, value, headers, partition=partition)


def read_task(record: BrokerRecord) -> AgentTask | CancelTask | TaskReference:
    """Raises `UnreadableMessage`."""
    headers = dict(record.headers)
    match _type_of(headers):
        case "agent-task" if REFERENCE_HEADER in headers:
            return _read(_task_references, record)
        case "agent-task":
            task = _read(_tasks, record)
            _require(step=task.step, agent=task.agent)
            return task
        case "cancel-task":
            return _read(_cancels, record)
        case other:
            raise _wrong_type(other, "agent-task or cancel-task")


def read_result(record: BrokerRecord) -> AgentResult | ResultReference:
    """Raises `UnreadableMessage`."""
    headers = dict(record.headers)
    match _type_of(headers):
        case "agent-result" if REFERENCE_HEADER in headers:
            return _read(_result_references, record)
        case "agent-result":
            result = _read(_results, record)
            _require(step=result.step)
            return result
        case other:
            raise _wrong_type(other, "agent-result")


def decode_task(payload: bytes) -> AgentTask:
    """A task as the store has it."""
    return _tasks.decode(payload)


def decode_result(payload: bytes) -> AgentResult:
    """A result as the store has it."""
    return _results.decode(payload)


def _type_of(headers: dict[str, bytes]) -> str:
    if TYPE_HEADER not in headers:
        raise UnreadableMessage(
            "type",
            f"The record has no header {TYPE_HEADER}, so Trunkline did not send it. Delete it, and do not let other"
            " systems write to this topic.",
        )
    version = headers.get(VERSION_HEADER, b"none").decode(errors="replace")
    if version != str(VERSION):
        raise UnreadableMessage(
            "version",
            f"The message has version {version[:20]}, but this Trunkline reads version {VERSION}."
            " Upgrade all processes to the same version, then replay it.",
        )
    return headers[TYPE_HEADER].decode(errors="replace")


def _wrong_type(found: str, expected: str) -> UnreadableMessage:
    return UnreadableMessage(
        "type",
        f"The message has the type {found[:50]!r}, but this topic is for {expected}."
        " Check that all processes use the same topic names, then delete it.",
    )


def _read(decoder: msgspec.json.Decoder[AnyMessage], record: BrokerRecord) -> AnyMessage:
    value = record.value
    if value is None:
        raise UnreadableMessage("empty", "The record has no value, so Trunkline did not send it. Delete it.")
    try:
        # The decoder does not validate raw JSON and skipped fields.
        value.decode()
        message = decoder.decode(value)
    except UnicodeDecodeError as exc:
        raise UnreadableMessage(
            "malformed", f"The value is not valid UTF-8 at byte {exc.start}. Delete it."
        ) from exc
    except (msgspec.MsgspecError, RecursionError) as exc:
        raise UnreadableMessage("malformed", f"The value is not a valid message: {exc}. Delete it.") from exc
    _require(task_id=message.task_id, run_id=message.run_id)
    if message.attempt < 1:
        raise UnreadableMessage("malformed", "The attempt of the message is less than 1. Delete it.")
    return message


def _require(**fields: str) -> None:
    for name, value in fields.items():
        if not value:
            raise UnreadableMessage("malformed", f"The message has no {name}. Delete it.")
