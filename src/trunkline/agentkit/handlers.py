"""
Handlers, in each of their forms, and what becomes of what they do.

    def answer(task)                    called in a thread; so it may block
    async def answer(task)              awaited
    async def answer(task), yielding    each value that it yields is sent at once

What else than `AgentError` and `Rejected` is raised is a mistake in the handler: its text is for the agent's log, and
the caller learns only that the agent has failed.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from concurrent.futures import Executor
from contextvars import copy_context
from typing import NamedTuple, TypeAlias, cast

import msgspec

from trunkline.agentkit.json_values import Json, JsonObject
from trunkline.agentkit.messages import Message
from trunkline.agentkit.outputs import AgentError, Question, Rejected, Status, artifacts_of
from trunkline.agentkit.parts import Part
from trunkline.agentkit.task_execution import TaskExecution

log = logging.getLogger("trunkline.agent")

FAILED = "The agent failed. See its log for the reason."


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """What a handler is called with."""

    id: str
    context_id: str
    message: Message
    # What was said before in this conversation, the oldest first.
    history: tuple[Message, ...] = ()

    @property
    def text(self) -> str:
        return self.message.text

    @property
    def data(self) -> Json:
        return self.message.data

    @property
    def input(self) -> Json:
        return self.message.input

    @property
    def parts(self) -> tuple[Part, ...]:
        return self.message.parts

    @property
    def metadata(self) -> JsonObject:
        return self.message.metadata or {}


Handler: TypeAlias = Callable[[Task], object]
_Yielding: TypeAlias = "AsyncGenerator[object, Message | None]"


class _RaisedInThread(NamedTuple):
    error: BaseException


def check_handler(handler: Handler) -> None:
    """Raises a `TypeError` for what cannot be one."""
    if not callable(handler):
        raise TypeError(f"A handler is a function, not {type(handler).__name__}.")
    if inspect.isgeneratorfunction(handler):
        raise TypeError("A handler that yields must be an async function (async def).")


async def perform(
    handler: Handler, execution: TaskExecution, before: Sequence[Message], threads: Executor
) -> None:
    """Brings the task to its end, whatever the handler does."""
    try:
        execution.start()
        await _answer(handler, execution, before, threads)
        execution.end("completed")
    except asyncio.CancelledError:
        execution.end("canceled")
        raise
    except Rejected as exc:
        execution.end("rejected", str(exc) or "The agent rejected the task.")
    except AgentError as exc:
        execution.end("failed", str(exc) or FAILED)
    # The outermost frame of the author's code, which may raise anything, also a wish to exit.
    except (Exception, SystemExit):
        log.exception("The handler of task %s failed", execution.id)
        execution.end("failed", FAILED)


async def _answer(
    handler: Handler, execution: TaskExecution, before: Sequence[Message], threads: Executor
) -> None:
    task = Task(
        id=execution.id, context_id=execution.context_id, message=execution.message, history=tuple(before)
    )
    given = await _called(handler, task, execution, threads)
    while isinstance(given, Question):
        reply = await execution.ask(given.text)
        task = msgspec.structs.replace(task, message=reply, history=(*before, *execution.history[:-1]))
        given = await _called(handler, task, execution, threads)
    if isinstance(given, Status):
        raise TypeError("Yield a Status instead of returning it.")
    for artifact in artifacts_of(given):
        execution.add_artifact(artifact)


async def _called(handler: Handler, task: Task, execution: TaskExecution, threads: Executor) -> object:
    """The return value of the handler; the yielded values have been sent already."""
    if inspect.iscoroutinefunction(handler) or inspect.isasyncgenfunction(handler):
        given = handler(task)
    else:
        given = await _in_thread(handler, task, threads)
    if inspect.isasyncgen(given):
        await _report_pieces(cast("_Yielding", given), execution)
        return None
    return await cast("Awaitable[object]", given) if inspect.isawaitable(given) else given


async def _in_thread(handler: Handler, task: Task, threads: Executor) -> object:
    context = copy_context()

    def call() -> object:
        # Carried over as a value: a StopIteration cannot be raised into a future.
        try:
            return context.run(handler, task)
        except BaseException as exc:  # noqa: BLE001
            return _RaisedInThread(exc)

    given = await asyncio.get_running_loop().run_in_executor(threads, call)
    if isinstance(given, _RaisedInThread):
        raise given.error
    return given


async def _report_pieces(pieces: _Yielding, execution: TaskExecution) -> None:
    reply: Message | None = None
    try:
        while True:
            reply = await _report_piece(await pieces.asend(reply), execution)
    except StopAsyncIteration:
        return
    finally:
        await pieces.aclose()


async def _report_piece(piece: object, execution: TaskExecution) -> Message | None:
    """Publishes what was yielded; the reply if it was a question."""
    match piece:
        case str():
            if piece:
                execution.append_text(piece)
        case Status(text):
            execution.report_progress(text)
        case Question(text):
            return await execution.ask(text)
        case _:
            for artifact in artifacts_of(piece):
                execution.add_artifact(artifact)
    return None
