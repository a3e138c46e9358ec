"""
A zone as a server: an author's functions as methods behind one address.

    zone = Zone("execution", accept_after=5.0)

    @zone.method("execute_task", params=SCHEMA)
    async def execute_task(params): return {"status": "success", "response_text": "…"}

`answer` is the whole of it for any transport; the zone itself is also an ASGI application.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import structlog

from trunkline.jsontypes import JsonObject, encode
from trunkline.telemetry import names
from trunkline.zones.caller import ANYBODY, Caller
from trunkline.zones.documents import contract_schemas, documents
from trunkline.zones.faults import METHOD_NOT_FOUND, TIMEOUT, ZoneFault
from trunkline.zones.handlers import Handler, Method
from trunkline.zones.http import (
    Receive,
    Scope,
    Send,
    headers_of,
    path_of,
    read_body,
    refused_unread,
    send_reply,
)
from trunkline.zones.params import Params, ParamsForm
from trunkline.zones.replies import NO_ID, Reply, with_fault, with_result
from trunkline.zones.requests import Request, read_request

log = structlog.stdlib.get_logger(__name__)

AnyHandler = TypeVar("AnyHandler", bound=Handler)

# What AWS AgentCore carries at most; a policy may allow less.
MAX_BODY_BYTES = 100 * 1024 * 1024
GET_TASK_RESULT = "get_task_result"
# As the seeds' first zones called it.
_OTHER_NAMES = {"GetAsyncTaskResult": GET_TASK_RESULT}
_RESERVED = "rpc."
# Handlers that are no coroutines run in these; each holds one while it runs.
_THREADS = 32


class Zone:
    def __init__(
        self,
        name: str,
        *,
        accept_after: float = 5.0,
        deadline: float = 600.0,
        data: str | Path | None = None,
        keep: timedelta = timedelta(hours=24),
        max_body_bytes: int = MAX_BODY_BYTES,
        stop_timeout: float = 30.0,
    ) -> None:
        """
        `accept_after`: seconds until slow work is answered "accepted"; `deadline`: seconds until work has failed.

        `data`: the folder of what must survive a restart; `keep`: how long answers can be asked for;
        `stop_timeout`: seconds that work may take to end when the zone is stopped.
        """
        self.name = name
        self.accept_after = accept_after
        self.deadline = deadline
        self.data = data
        self.keep = keep
        self.max_body_bytes = max_body_bytes
        self.stop_timeout = stop_timeout
        self._methods: dict[str, Method] = {}
        self._documents: Mapping[str, bytes] | None = None
        self._threads: ThreadPoolExecutor | None = None

    def method(
        self,
        name: str,
        *,
        params: ParamsForm = None,
        deadline: float | None = None,
        restartable: bool = False,
    ) -> Callable[[AnyHandler], AnyHandler]:
        """
        Makes a function one of the zone's methods: sync or async, with the params as its one argument.

        `params`: a JSON Schema, or a type, whose instance it gets; `restartable`: may run again after a crash.
        """
        if not name or name.startswith(_RESERVED):
            raise ValueError(f"A method's name may not be empty or begin with {_RESERVED!r}: {name!r}.")
        if name in self._methods or name == GET_TASK_RESULT or name in _OTHER_NAMES:
            raise ValueError(f"The zone {self.name} has a method {name} already.")
        form = Params(params)

        def register(handler: AnyHandler) -> AnyHandler:
            self._methods[name] = Method(
                name=name, params=form, handler=handler, deadline=deadline, restartable=restartable
            )
            self._documents = None
            return handler

        return register

    @asynccontextmanager
    async def running(self, data: str | Path | None = None) -> AsyncGenerator[None]:
        """The zone takes calls while the block runs; at its end those under way may end first."""
        del data
        with ThreadPoolExecutor(_THREADS, thread_name_prefix=f"zone-{self.name}") as threads:
            self._threads = threads
            try:
                yield
            finally:
                self._threads = None

    async def answer(self, body: bytes, caller: Caller = ANYBODY) -> Reply:
        """The answer to one request, whatever has carried it."""
        try:
            request = read_request(body)
        except ZoneFault as fault:
            return Reply(with_fault(NO_ID, fault))
        began = time.perf_counter()
        outcome = "ok"
        try:
            return Reply(with_result(request.id, await self._result(request)))
        except ZoneFault as fault:
            outcome = str(fault.code)
            return Reply(with_fault(request.id, fault, request.correlation_id))
        finally:
            log.debug(
                names.ZONE_CALL,
                method=request.method,
                caller=caller.name,
                correlation_id=request.correlation_id,
                outcome=outcome,
                duration_ms=round((time.perf_counter() - began) * 1000, 3),
            )

    async def _result(self, request: Request) -> bytes:
        method = self._methods.get(request.method)
        if method is None or self._threads is None:
            raise ZoneFault(METHOD_NOT_FOUND)
        perform = method.bound_to(request.named_params(), self._threads, request.correlation_id)
        try:
            async with asyncio.timeout(method.deadline or self.deadline):
                return await perform()
        except TimeoutError:
            raise ZoneFault(TIMEOUT) from None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            reply = await self._http(scope, receive)
            if reply is not None:
                await send_reply(send, reply)
        else:
            await send({"type": "websocket.close", "code": 1000})

    async def _http(self, scope: Scope, receive: Receive) -> Reply | None:
        """None: the caller has gone before it has said what it wants."""
        path = path_of(scope)
        document = self._document(path)
        if document is not None and scope["method"] in {"GET", "HEAD"}:
            return Reply(document)
        refused = refused_unread(scope, headers_of(scope), document is not None, self.max_body_bytes)
        if refused is not None:
            return refused
        body = await read_body(receive, self.max_body_bytes)
        return await self.answer(body) if isinstance(body, bytes) else body

    def _document(self, path: str) -> bytes | None:
        if path == "/ping":
            return encode({"status": "Healthy", "time_of_last_update": int(time.time())})
        if self._documents is None:
            self._documents = documents(self.name, self._schemas())
        return self._documents.get(path)

    def _schemas(self) -> Mapping[str, JsonObject]:
        own = {name: method.params.schema for name, method in self._methods.items()}
        return {**own, GET_TASK_RESULT: contract_schemas()[f"{GET_TASK_RESULT}.params"]}

    async def _live(self, receive: Receive, send: Send) -> None:
        async with AsyncExitStack() as stack:
            while True:
                message = await receive()
                if message["type"] == "lifespan.startup":
                    await stack.enter_async_context(self.running())
                    await send({"type": "lifespan.startup.complete"})
                else:
                    break
        await send({"type": "lifespan.shutdown.complete"})
