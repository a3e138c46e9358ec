"""
Dispatches JSON-RPC requests: each becomes one response, or a stream of events.

If the client disconnects while its request waits for a task, the task continues.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import NoReturn, TypeVar

import msgspec

from trunkline.agentkit.errors import (
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    NO_EXTENDED_CARD,
    NO_PUSHES,
    NOT_CANCELABLE,
    UNSUPPORTED,
    VERSION_NOT_SUPPORTED,
    RequestError,
    invalid_params,
)
from trunkline.agentkit.handlers import Handler
from trunkline.agentkit.json_values import Json, JsonObject
from trunkline.agentkit.jsonrpc import RpcRequest, error, event, id_of, read_request, result
from trunkline.agentkit.protocols.a2a_v03 import A2AV03
from trunkline.agentkit.protocols.a2a_v1 import A2AV1
from trunkline.agentkit.protocols.base import A2ADialect
from trunkline.agentkit.protocols.task_list import list_tasks
from trunkline.agentkit.task_execution import TaskExecution
from trunkline.agentkit.task_store import InMemoryTaskStore

_DIALECTS: tuple[A2ADialect, ...] = (A2AV1(), A2AV03())
_METHODS = {name: dialect for dialect in _DIALECTS for name in dialect.operations}
_VERSIONS = ("0.2", "0.3", "1.0")
# Proxies cut connections on which nothing comes for a minute or so.
_PING_SECONDS = 15.0
_PING = b": ping\n\n"

T = TypeVar("T")


class TaskEventStream(msgspec.Struct, frozen=True):
    """A task whose updates are to be streamed."""

    request_id: Json
    dialect: A2ADialect
    execution: TaskExecution
    # How many updates the task had when it was serialised for the first event.
    seen: int
    task: JsonObject

    async def events(self) -> AsyncGenerator[bytes]:
        """The task, then each update until the task is idle."""
        seen = self.seen
        yield event(self.request_id, self.dialect.send_result(self.task))
        while True:
            fresh = self.execution.updates[seen:]
            for update in fresh:
                yield event(self.request_id, self.dialect.update(self.execution, update))
            seen += len(fresh)
            if seen == len(self.execution.updates):
                if self.execution.is_idle:
                    return
                try:
                    await asyncio.wait_for(self.execution.wait_for_update(seen), _PING_SECONDS)
                except TimeoutError:
                    yield _PING


class RpcDispatcher:
    def __init__(self, store: InMemoryTaskStore, handler: Handler) -> None:
        self._tasks = store
        self._handler = handler

    async def answer(self, body: Json, version: str) -> JsonObject | TaskEventStream:
        """The response to one request. Raises `RequestError` only if the error needs its own HTTP status."""
        return await self._answer(body, version, self._stream)

    async def answer_in_batch(self, body: Json, version: str) -> JsonObject:
        """Like `answer`, but refuses requests for a stream before anything starts."""
        return await self._answer(body, version, _no_stream)

    async def _answer(
        self, body: Json, version: str, stream: Callable[[RpcRequest, A2ADialect], T]
    ) -> JsonObject | T:
        try:
            request = read_request(body)
            dialect = _dialect_of(request)
        except RequestError as exc:
            return error(id_of(body), exc)
        try:
            _check_version(version)
            return await self._perform(request, dialect, stream)
        except RequestError as exc:
            if exc.status != 200:
                raise
            return error(request.id, exc, dialect.error_data(exc.code))

    def _stream(self, request: RpcRequest, dialect: A2ADialect) -> TaskEventStream:
        if dialect.operations[request.method] == "stream":
            sending = dialect.read_send_params(request.params)
            execution = self._tasks.submit(sending.message, self._handler)
            return _event_stream(request, dialect, execution, sending.history)
        execution = self._named(request)
        if execution.has_ended and not dialect.streams_ended_tasks:
            raise RequestError(UNSUPPORTED, f"Task {execution.id} is {execution.state}: get the task instead")
        return _event_stream(request, dialect, execution, None)

    async def _perform(
        self, request: RpcRequest, dialect: A2ADialect, stream: Callable[[RpcRequest, A2ADialect], T]
    ) -> JsonObject | T:
        match dialect.operations[request.method]:
            case "send":
                return await self._send(request, dialect)
            case "stream" | "resubscribe":
                return stream(request, dialect)
            case "get":
                history = dialect.history_length(request.params)
                return result(request.id, dialect.task(self._named(request), history))
            case "cancel":
                return result(request.id, dialect.task(_canceled(self._named(request)), None))
            case "list":
                return result(request.id, list_tasks(self._tasks, dialect, request.params))
            case "push":
                raise RequestError(NO_PUSHES, "Push notifications are not supported")
            case "extended_card":
                raise RequestError(NO_EXTENDED_CARD, "The agent has no extended card")

    async def _send(self, request: RpcRequest, dialect: A2ADialect) -> JsonObject:
        sending = dialect.read_send_params(request.params)
        execution = self._tasks.submit(sending.message, self._handler)
        if sending.is_blocking:
            await execution.wait_until_idle()
        return result(request.id, dialect.send_result(dialect.task(execution, sending.history)))

    def _named(self, request: RpcRequest) -> TaskExecution:
        task_id = request.params.get("id")
        if not isinstance(task_id, str) or not task_id:
            raise invalid_params("id must be the id of a task")
        return self._tasks.get(task_id)


def _no_stream(request: RpcRequest, dialect: A2ADialect) -> NoReturn:
    del request, dialect
    raise RequestError(INVALID_REQUEST, "Invalid Request: a stream cannot be one answer of a batch")


def _dialect_of(request: RpcRequest) -> A2ADialect:
    dialect = _METHODS.get(request.method)
    if dialect is None:
        raise RequestError(METHOD_NOT_FOUND, f"Method not found: {request.method[:100]}")
    return dialect


def _event_stream(
    request: RpcRequest, dialect: A2ADialect, execution: TaskExecution, history: int | None
) -> TaskEventStream:
    return TaskEventStream(
        request.id, dialect, execution, len(execution.updates), dialect.task(execution, history)
    )


def _canceled(execution: TaskExecution) -> TaskExecution:
    if execution.has_ended and execution.state != "canceled":
        raise RequestError(NOT_CANCELABLE, f"Task {execution.id} is {execution.state} and cannot be canceled")
    execution.cancel()
    return execution


def _check_version(version: str) -> None:
    if version and ".".join(version.split(".")[:2]) not in _VERSIONS:
        raise RequestError(
            VERSION_NOT_SUPPORTED,
            f"A2A {version[:20]} is not supported; supported versions: {', '.join(_VERSIONS)}",
        )
