"""
What callers ask of an agent over JSON-RPC, done: each call becomes one answer, or a stream of them.

A call that waits for a task may be given up by its caller: the task goes on all the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import NoReturn, TypeVar

import msgspec

from trunkline.agent.a2a_v03 import A2AV03
from trunkline.agent.a2a_v1 import A2AV1
from trunkline.agent.dialect import Dialect
from trunkline.agent.handlers import Handler
from trunkline.agent.lists import list_tasks
from trunkline.agent.refusals import (
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    NO_EXTENDED_CARD,
    NO_PUSHES,
    NOT_CANCELABLE,
    UNSUPPORTED,
    VERSION_NOT_SUPPORTED,
    Refusal,
    invalid_params,
)
from trunkline.agent.rpc import Call, error, event, id_of, read_call, result
from trunkline.agent.shelf import Shelf
from trunkline.agent.values import Json, JsonObject
from trunkline.agent.work import Work

_DIALECTS: tuple[Dialect, ...] = (A2AV1(), A2AV03())
_METHODS = {name: dialect for dialect in _DIALECTS for name in dialect.operations}
_VERSIONS = ("0.2", "0.3", "1.0")
# Proxies cut connections on which nothing comes for a minute or so.
_PING_SECONDS = 15.0
_PING = b": ping\n\n"

T = TypeVar("T")


class Following(msgspec.Struct, frozen=True):
    """A task whose updates are to be streamed."""

    call_id: Json
    dialect: Dialect
    work: Work
    # How many updates the task has had when it was written down for the first event.
    seen: int
    task: JsonObject

    async def events(self) -> AsyncGenerator[bytes]:
        """The task, what becomes of it, and nothing after it rests."""
        seen = self.seen
        yield event(self.call_id, self.dialect.sent(self.task))
        while True:
            fresh = self.work.updates[seen:]
            for update in fresh:
                yield event(self.call_id, self.dialect.update(self.work, update))
            seen += len(fresh)
            if seen == len(self.work.updates):
                if self.work.rests:
                    return
                try:
                    await asyncio.wait_for(self.work.changed(seen), _PING_SECONDS)
                except TimeoutError:
                    yield _PING


class Calls:
    def __init__(self, shelf: Shelf, handler: Handler) -> None:
        self._shelf = shelf
        self._handler = handler

    async def answer(self, body: Json, version: str) -> JsonObject | Following:
        """The answer to one request; raises a `Refusal` only where that needs a status of its own."""
        return await self._answer(body, version, self._follow)

    async def answer_in_batch(self, body: Json, version: str) -> JsonObject:
        """As `answer`, where a stream has no place: what asks for one is refused, and nothing is begun."""
        return await self._answer(body, version, _no_stream)

    async def _answer(self, body: Json, version: str, follow: Callable[[Call, Dialect], T]) -> JsonObject | T:
        try:
            call = read_call(body)
            dialect = _dialect_of(call)
        except Refusal as refused:
            return error(id_of(body), refused)
        try:
            _check_version(version)
            return await self._perform(call, dialect, follow)
        except Refusal as refused:
            if refused.status != 200:
                raise
            return error(call.id, refused, dialect.error_data(refused.code))

    def _follow(self, call: Call, dialect: Dialect) -> Following:
        if dialect.operations[call.method] == "stream":
            wanted = dialect.wanted(call.params)
            work = self._shelf.take(wanted.message, self._handler)
            return _following(call, dialect, work, wanted.history)
        work = self._named(call)
        if work.has_ended and not dialect.streams_ended_tasks:
            raise Refusal(UNSUPPORTED, f"Task {work.id} is {work.state}: ask for it instead")
        return _following(call, dialect, work, None)

    async def _perform(
        self, call: Call, dialect: Dialect, follow: Callable[[Call, Dialect], T]
    ) -> JsonObject | T:
        match dialect.operations[call.method]:
            case "send":
                return await self._send(call, dialect)
            case "stream" | "resubscribe":
                return follow(call, dialect)
            case "get":
                history = dialect.history_length(call.params)
                return result(call.id, dialect.task(self._named(call), history))
            case "cancel":
                return result(call.id, dialect.task(_canceled(self._named(call)), None))
            case "list":
                return result(call.id, list_tasks(self._shelf, dialect, call.params))
            case "push":
                raise Refusal(NO_PUSHES, "Push notifications are not supported")
            case "extended_card":
                raise Refusal(NO_EXTENDED_CARD, "The agent has no extended card")

    async def _send(self, call: Call, dialect: Dialect) -> JsonObject:
        wanted = dialect.wanted(call.params)
        work = self._shelf.take(wanted.message, self._handler)
        if wanted.waits:
            await work.settled()
        return result(call.id, dialect.sent(dialect.task(work, wanted.history)))

    def _named(self, call: Call) -> Work:
        task_id = call.params.get("id")
        if not isinstance(task_id, str) or not task_id:
            raise invalid_params("id must be the id of a task")
        return self._shelf.find(task_id)


def _no_stream(call: Call, dialect: Dialect) -> NoReturn:
    del call, dialect
    raise Refusal(INVALID_REQUEST, "Invalid Request: a stream cannot be one answer of a batch")


def _dialect_of(call: Call) -> Dialect:
    dialect = _METHODS.get(call.method)
    if dialect is None:
        raise Refusal(METHOD_NOT_FOUND, f"Method not found: {call.method[:100]}")
    return dialect


def _following(call: Call, dialect: Dialect, work: Work, history: int | None) -> Following:
    return Following(call.id, dialect, work, len(work.updates), dialect.task(work, history))


def _canceled(work: Work) -> Work:
    if work.has_ended and work.state != "canceled":
        raise Refusal(NOT_CANCELABLE, f"Task {work.id} is {work.state} and cannot be canceled")
    work.cancel()
    return work


def _check_version(version: str) -> None:
    if version and ".".join(version.split(".")[:2]) not in _VERSIONS:
        raise Refusal(
            VERSION_NOT_SUPPORTED,
            f"A2A {version[:20]} is not spoken here; these versions are: {', '.join(_VERSIONS)}",
        )
