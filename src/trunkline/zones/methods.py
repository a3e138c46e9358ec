"""
A zone's methods: what the author's functions are called with, and what becomes of what they return or raise.

    returned            answered
    a dict              itself, with `"status": "success"` where it has none
    a str               `{"status": "success", "response_text": …}`
    raised
    a ZoneFault         its code, message and data
    anything else       -32603; its text is for the log, and the secrets of the params are not in there either
"""

from __future__ import annotations

import asyncio
import inspect
import traceback
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Set
from concurrent.futures import Executor
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeAlias, cast

import structlog

from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.telemetry import log_events
from trunkline.telemetry.redaction import Redaction, may_be_in
from trunkline.zones.errors import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    ZoneFault,
    error_text,
)
from trunkline.zones.params import MethodParams

log = structlog.stdlib.get_logger(__name__)

# As a decorator finds it: sync or async, with one argument, whose type is the author's business.
Handler: TypeAlias = Callable[..., object]

# A method with its params: gives the JSON text of its result, or raises a fault, and nothing else but a cancellation.
Bound: TypeAlias = Callable[[], Awaitable[bytes]]

SecretsIn: TypeAlias = Callable[[JsonObject], Iterable[str]]

# They say that a request could not be read, or never reached a handler.
_NOT_FOR_HANDLERS = frozenset({PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND})


@dataclass(frozen=True, kw_only=True)
class ZoneMethod:
    name: str
    params: MethodParams
    handler: Handler
    # Seconds.
    deadline: float
    restartable: bool
    is_async: bool

    def bound_to(
        self, params: JsonObject, threads: Executor, secrets_in: SecretsIn, correlation_id: str | None
    ) -> Bound:
        """Raises a fault for params that are wrong."""
        broke = partial(self._log_failure, params, secrets_in, correlation_id)
        return partial(self._perform, self.params.check(params), threads, broke)

    async def _perform(
        self, argument: object, threads: Executor, broke: Callable[[BaseException], None]
    ) -> bytes:
        try:
            return result_text(await self._call(argument, threads))
        except ZoneFault as fault:
            if _is_for_callers(fault):
                raise
            broke(fault)
        except (asyncio.CancelledError, GeneratorExit):
            # They end the coroutine, and are no failure of the author's code.
            raise
        # The outermost frame of the author's code, which may raise anything; a program that is a handler may
        # even ask to exit, or interrupt itself.
        except BaseException as exc:  # noqa: BLE001
            broke(exc)
        raise ZoneFault(INTERNAL_ERROR)

    async def _call(self, argument: object, threads: Executor) -> object:
        if self.is_async:
            return await cast("Awaitable[object]", self.handler(argument))
        context = copy_context()
        returned = await asyncio.get_running_loop().run_in_executor(
            threads, lambda: context.run(_plain_call, self.handler, argument)
        )
        if isinstance(returned, _HandlerRaised):
            raise returned.error
        return await cast("Awaitable[object]", returned) if inspect.isawaitable(returned) else returned

    def _log_failure(
        self, params: JsonObject, secrets_in: SecretsIn, correlation_id: str | None, error: BaseException
    ) -> None:
        redaction = Redaction().with_secrets(secrets_in(params))
        text = "".join(traceback.format_exception(error))
        log.error(
            log_events.ZONE_HANDLER_FAILED,
            method=self.name,
            correlation_id=correlation_id,
            traceback=redaction.text(text),
        )


def result_text(returned: object) -> bytes:
    """The JSON text of the result; raises a `TypeError` or a `ValueError` for what is none."""
    if isinstance(returned, str):
        return encode({"status": "success", "response_text": returned})
    if not isinstance(returned, Mapping):
        raise TypeError(f"A handler must return a dict or a str, not {type(returned).__name__}.")
    result: dict[object, object] = {"status": "success", **cast("Mapping[object, object]", returned)}
    if result["status"] != "success":
        raise ValueError(
            'A handler\'s status is "success" or left out: "accepted" is the zone\'s own word, and what failed'
            " is raised as a ZoneFault."
        )
    if not isinstance(result.get("response_text", ""), str):
        raise TypeError("response_text must be a str.")
    return encode(result)


class _HandlerRaised(NamedTuple):
    """What a handler has raised in its thread: some exceptions would not come out of a future as they went in."""

    error: BaseException


def _plain_call(handler: Handler, argument: object) -> object:
    try:
        return handler(argument)
    except BaseException as exc:  # noqa: BLE001 - it is raised again where the call is awaited
        return _HandlerRaised(exc)


def is_async(handler: Handler) -> bool:
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(
        getattr(handler, "__call__", None)  # noqa: B004 - an object may have one that is a coroutine function
    )


def _is_for_callers(fault: ZoneFault) -> bool:
    if fault.code in _NOT_FOR_HANDLERS:
        return False
    try:
        error_text(fault)
    except (TypeError, ValueError):
        return False
    return True


def secrets_under(fields: Set[str], params: Json) -> Iterator[str]:
    """The texts that stand under one of these names, however deep."""
    match params:
        case dict():
            for name, value in params.items():
                if name in fields and isinstance(value, str):
                    yield value
                else:
                    yield from secrets_under(fields, value)
        case list():
            for value in params:
                yield from secrets_under(fields, value)
        case _:
            pass


async def without_secrets(perform: Callable[[], Awaitable[bytes]], secrets: tuple[str, ...]) -> bytes:
    """The JSON text of the result; raises a fault. Neither has these secrets in it."""
    try:
        result = await perform()
    except ZoneFault as fault:
        redaction = Redaction().with_secrets(secrets)
        data = cast("JsonObject", redaction.value(fault.data))
        raise ZoneFault(fault.code, redaction.text(fault.message), data) from None
    # Hardly any answer has one, and to look for it in every form costs more than all the rest of a call.
    if any(may_be_in(result, secret) for secret in secrets):
        return Redaction().with_secrets(secrets).body(result)
    return result
