"""
The operations of A2A, from the params of a request to what it is answered with, in the form of its version.

What flips between versions is here: `blocking` (0.3) is the opposite of `returnImmediately` (1.0), and a
`historyLength` of 0 is everything in 0.3 and nothing in 1.0. An absent or empty `A2A-Version` means 0.3, and patch
numbers make no difference. Where a name or an address exists in one version only, that decides.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Literal, TypeAlias, TypeVar

from starlette.requests import ClientDisconnect, Request

from trunkline.jsontypes import Json, JsonObject
from trunkline.publishing.bindings.caller_request import CallerRequest
from trunkline.publishing.bindings.push_configs import PushConfigRequests, inline_config
from trunkline.publishing.bindings.task_lists import TaskLists
from trunkline.publishing.bindings.v03 import event_v03, message_v03, task_v03
from trunkline.publishing.cards.pages import CardPages
from trunkline.publishing.errors import A2AError, ErrorKind, invalid_params
from trunkline.publishing.incoming_exchanges import exchange_of
from trunkline.publishing.messages import (
    flag,
    history_length,
    object_field,
    read_message,
    text_field,
)
from trunkline.publishing.operations import PublishedOperations, SentMessage, TaskFinished
from trunkline.publishing.streams import OpenStreams, TaskStream
from trunkline.publishing.tasks import CallerTask, submitted
from trunkline.publishing.updates import Position, TaskUpdates, read_position
from trunkline.services.runs.queries import RunQueries

OperationName = Literal[
    "send",
    "stream",
    "get",
    "list",
    "cancel",
    "subscribe",
    "create_push_config",
    "get_push_config",
    "list_push_configs",
    "delete_push_config",
    "extended_card",
]

T = TypeVar("T")

LAST_EVENT_ID = "last-event-id"
VERSION_HEADER = "A2A-Version"
_SUPPORTED = ("0.3", "1.0")
# For metrics, which must not grow with what callers make up.
UNKNOWN = "unknown"
_DEFAULT_VERSION = "0.3"


Operation: TypeAlias = Callable[[CallerRequest], Awaitable[Json]]
# Makes an event of a stream out of what it says, as the binding sends it.
Wrap: TypeAlias = Callable[[JsonObject], JsonObject]


class CallerRequests:
    def __init__(
        self,
        operations: PublishedOperations,
        push_configs: PushConfigRequests,
        cards: CardPages,
        queries: RunQueries,
        streams: OpenStreams,
        stopping: asyncio.Event,
    ) -> None:
        self._operations = operations
        self._cards = cards
        self._queries = queries
        self._streams = streams
        self._stopping = stopping
        lists = TaskLists(operations)
        self._by_name: dict[OperationName, Operation] = {
            "send": self._send,
            "get": self._get,
            "cancel": self._cancel,
            "list": lambda asked: lists.page(asked.publication, asked.caller, asked.params, asked.version),
            "create_push_config": push_configs.create,
            "get_push_config": push_configs.get,
            "list_push_configs": push_configs.list,
            "delete_push_config": push_configs.delete,
        }

    async def answer(self, name: OperationName, asked: CallerRequest) -> Json:
        """The result of every operation other than a stream. Raises `A2AError`."""
        if name == "extended_card" and self._cards.needs_key(asked.publication):
            return self._cards.extended_card(asked.http, asked.publication, is_old=asked.is_old)
        if name == "extended_card":
            raise A2AError(
                ErrorKind.EXTENDED_AGENT_CARD_NOT_CONFIGURED,
                "This agent does not have an extended agent card.",
            )
        return await self._by_name[name](asked)

    async def open_stream(self, name: OperationName, asked: CallerRequest, wrap: Wrap) -> TaskStream:
        """The stream of `stream` and `subscribe`. Raises `A2AError`."""
        if not asked.publication.options.streaming:
            raise A2AError(ErrorKind.UNSUPPORTED_OPERATION, "Streams are not supported.")
        # Taken first: a message is not accepted if its stream is refused.
        self._streams.take(asked.caller.key_id)
        try:
            return await (self._subscribe if name == "subscribe" else self._stream)(asked, wrap)
        except BaseException:
            self._streams.release(asked.caller.key_id)
            raise

    async def _send(self, asked: CallerRequest) -> JsonObject:
        configuration = object_field(asked.params, "configuration") or {}
        history = history_length(configuration, asked.version)
        if _returns_at_once(configuration, is_old=asked.is_old):
            sent = await self._store_message(asked, configuration)
            task = await self._operations.get(asked.publication, sent.run_id, asked.caller)
        else:
            with self._streams.one(asked.caller.key_id):
                sent = await self._store_message(asked, configuration)
                waiting = self._operations.wait_until_settled(asked.publication, sent, asked.caller)
                task = await unless_gone(asked.http, waiting)
            message = await self._operations.bare_message(task)
            if message is not None:
                return message_v03(message) if asked.is_old else {"message": message}
        shown = await self._operations.shown(task, history=history)
        return task_v03(shown) if asked.is_old else {"task": shown}

    async def _get(self, asked: CallerRequest) -> JsonObject:
        history = history_length(asked.params, asked.version)
        task = await self._operations.get(asked.publication, task_id_in(asked.params), asked.caller)
        return await self._bare(asked, task, history)

    async def _cancel(self, asked: CallerRequest) -> JsonObject:
        cancelled = await self._operations.cancel(asked.publication, task_id_in(asked.params), asked.caller)
        if cancelled.is_first:
            exchange_of(asked.http).run_id = cancelled.task.record.id
        return await self._bare(asked, cancelled.task, None)

    async def _bare(self, asked: CallerRequest, task: CallerTask, history: int | None) -> JsonObject:
        shown = await self._operations.shown(task, history=history)
        return task_v03(shown) if asked.is_old else shown

    async def _store_message(self, asked: CallerRequest, configuration: JsonObject) -> SentMessage:
        push_config = inline_config(configuration, asked.version)
        received = read_message(
            asked.params,
            publication=asked.publication.key,
            caller=asked.caller.key_id,
            version=asked.version,
        )
        try:
            sent = await self._operations.send(
                asked.publication,
                received,
                asked.caller,
                once=asked.is_idempotent,
                push_config=push_config,
            )
        except TaskFinished as exc:
            raise invalid_params(exc.message) if asked.is_old else exc from exc
        if sent.is_new:
            exchange = exchange_of(asked.http)
            exchange.run_id = sent.run_id
            if sent.answered is not None:
                exchange.step, exchange.attempt, _ = sent.answered.question
            if push_config is not None:
                exchange.secrets = push_config.receiver.secrets
        return sent

    async def _stream(self, asked: CallerRequest, wrap: Wrap) -> TaskStream:
        configuration = object_field(asked.params, "configuration") or {}
        sent = await self._store_message(asked, configuration)
        await self._operations.wait_until_taken(sent)
        task = await self._operations.get(asked.publication, sent.run_id, asked.caller)
        updates = await self._operations.updates(task)
        if sent.answered is None:
            return self._opened(asked, wrap, task, updates, submitted(task), Position(0), stays=False)
        first = await self._snapshot(task, updates)
        position = Position(sent.answered.seq)
        return self._opened(asked, wrap, task, updates, first, position, stays=False)

    async def _subscribe(self, asked: CallerRequest, wrap: Wrap) -> TaskStream:
        task = await self._operations.get(asked.publication, task_id_in(asked.params), asked.caller)
        position = read_position(asked.http.headers.get(LAST_EVENT_ID, ""))
        if task.is_terminal and (position is None or position.seq >= task.record.seq):
            raise A2AError(
                ErrorKind.UNSUPPORTED_OPERATION, f"The task is {task.state}: no updates will follow."
            )
        updates = await self._operations.updates(task)
        first = await self._snapshot(task, await self._operations.updates(task))
        start = position or Position(task.record.seq)
        return self._opened(asked, wrap, task, updates, first, start, stays=True)

    async def _snapshot(self, task: CallerTask, updates: TaskUpdates) -> JsonObject:
        """The task as it is, with what its agent has said so far."""
        partial = [] if task.is_terminal else await updates.partial_artifacts(task.record.seq)
        return await self._operations.shown(task, partial=partial)

    def _opened(
        self,
        asked: CallerRequest,
        wrap: Wrap,
        task: CallerTask,
        updates: TaskUpdates,
        first: JsonObject,
        position: Position,
        *,
        stays: bool,
    ) -> TaskStream:
        def write(event: JsonObject, is_last: bool) -> JsonObject:
            return wrap(event_v03(event, is_last) if asked.is_old else event)

        return TaskStream(
            self._queries,
            updates,
            {"task": first},
            task.record.id,
            position,
            write=write,
            stays=stays,
            caller=asked.caller.key_id,
            streams=self._streams,
            stopping=self._stopping,
        )


def task_id_in(params: JsonObject) -> str:
    task_id = text_field(params, "id")
    if task_id is None:
        raise invalid_params("id is required")
    return task_id


def _returns_at_once(configuration: JsonObject, *, is_old: bool) -> bool:
    if is_old:
        # Left out, it is what most servers of 0.3 take it for: the caller waits.
        return flag(configuration, "blocking") is False
    return flag(configuration, "returnImmediately") is True


async def unless_gone(request: Request, waiting: Awaitable[T]) -> T:
    """The result; raises `ClientDisconnect` as soon as the caller has gone away."""
    task = asyncio.ensure_future(waiting)
    gone = asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait([task, gone], return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientDisconnect
        return await task
    finally:
        task.cancel()
        gone.cancel()


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def version_named(request: Request) -> str:
    """As it was given, in the header or the query, without its patch number; empty: none."""
    given = request.headers.get(VERSION_HEADER) or request.query_params.get(VERSION_HEADER) or ""
    return ".".join(given.strip().split(".")[:2])


def shown_version(request: Request) -> str:
    """For metrics."""
    named = version_named(request) or _DEFAULT_VERSION
    return named if named in _SUPPORTED else UNKNOWN


def check_version(request: Request) -> None:
    named = version_named(request)
    if named and named not in _SUPPORTED:
        raise A2AError(
            ErrorKind.VERSION_NOT_SUPPORTED,
            f"A2A {named[:20]} is not supported. Supported versions: {', '.join(_SUPPORTED)}.",
        )
