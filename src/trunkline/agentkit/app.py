"""
The agent as an ASGI app: one handler behind one URL.

    agent = Agent("Researcher", description="Finds things out.")

    @agent
    async def answer(task):
        yield f"Here is what I know about {task.text}: "
        yield "nothing."

    POST, any path                      Simple A2A; A2A 0.2 and 0.3 (`message/send`, …); A2A 1.0 (`SendMessage`, …)
    GET  …/.well-known/agent-card.json  the card; also …/.well-known/agent.json

It does not authenticate callers: everyone who can reach it can use it. Requests from browsers are refused, because a
web page must not be able to call an agent that only the user's machine can reach.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from datetime import timedelta
from functools import partial
from hashlib import sha256
from typing import Any, TypeVar, overload

from trunkline.agentkit.asgi import (
    ClientDisconnected,
    Receive,
    Scope,
    Send,
    header,
    read_body,
    respond,
    respond_with_events,
    while_connected,
)
from trunkline.agentkit.dispatcher import RpcDispatcher, TaskEventStream
from trunkline.agentkit.errors import INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR, RequestError, TooManyTasks
from trunkline.agentkit.handlers import Handler, check_handler, log
from trunkline.agentkit.json_values import InvalidJson, Json, JsonObject, JsonTooDeep, decode, encode
from trunkline.agentkit.jsonrpc import error, id_of
from trunkline.agentkit.protocols import simple_a2a
from trunkline.agentkit.protocols.agent_card import CARD_PATHS, CardProfile, card
from trunkline.agentkit.task_store import KEEP, MAX_TASKS, InMemoryTaskStore

MAX_BODY_BYTES = 10 * 1024 * 1024
MAX_BATCH = 100

# Without a limit, a client that waits for an endless task would keep the server from stopping.
_STOP_SECONDS = 10
_NO_HANDLER = "The agent has no handler. Decorate the function that answers with @agent."

H = TypeVar("H", bound=Handler)
_App = Coroutine[Any, Any, None]


class Agent:
    def __init__(
        self,
        name: str,
        *,
        description: str = "",
        version: str = "1.0.0",
        url: str | None = None,
        skills: Sequence[JsonObject] = (),
        max_body_bytes: int = MAX_BODY_BYTES,
        max_tasks: int = MAX_TASKS,
        keep: timedelta = KEEP,
    ) -> None:
        """
        `url` is the address in the card; by default the one at which the card was requested. Up to `max_tasks`
        tasks are kept, ended ones for `keep`.
        """
        self._profile = CardProfile(
            name=name, description=description or name, version=version, skills=skills
        )
        self._url = url
        self._max_body_bytes = max_body_bytes
        self._tasks = InMemoryTaskStore(max_tasks=max_tasks, keep=keep)
        self._handler: Handler | None = None

    @overload
    def __call__(self, given: H) -> H: ...
    @overload
    def __call__(self, given: Scope) -> Callable[[Receive, Send], _App]: ...
    @overload
    def __call__(self, given: Scope, receive: Receive, send: Send) -> _App: ...
    def __call__(
        self, given: Scope | Handler, receive: Receive | None = None, send: Send | None = None
    ) -> object:
        """A decorator for the handler, and the app: servers that do not look closely call it as ASGI 2 does."""
        if callable(given):
            return self.handler(given)
        if receive is None or send is None:
            return partial(self._app, given)
        return self._app(given, receive, send)

    def handler(self, function: H) -> H:
        """Makes the function the one that answers."""
        check_handler(function)
        self._handler = function
        return function

    def run(self, host: str = "127.0.0.1", port: int = 8080) -> None:
        """Serves until Ctrl-C or SIGTERM, with uvicorn."""
        try:
            import uvicorn  # noqa: PLC0415 - any other ASGI server does as well
        except ImportError as exc:
            raise RuntimeError(
                "uvicorn is not installed. Install it, or give the agent to another ASGI server."
            ) from exc
        if self._handler is None:
            raise RuntimeError(_NO_HANDLER)
        uvicorn.run(
            self,
            host=host,
            port=port,
            interface="asgi3",
            timeout_graceful_shutdown=_STOP_SECONDS,
        )

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        match scope["type"]:
            case "lifespan":
                await self._lifespan(receive, send)
            case "http":
                try:
                    await self._serve(scope, receive, send)
                except ClientDisconnected:
                    return
            case other:
                raise RuntimeError(f"An agent is served over HTTP, not over {other}.")

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            event = await receive()
            if event["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            else:
                await self._tasks.close()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        if header(scope, b"origin"):
            await _respond_error(
                send, 403, "Requests from browsers are rejected. Call the agent from your server."
            )
        elif scope["method"] == "POST":
            await self._handle_post(scope, receive, send)
        elif scope["method"] not in ("GET", "HEAD"):
            await _respond_error(send, 405, "Send a POST.")
        elif path.endswith(CARD_PATHS):
            await self._show_card(scope, send)
        else:
            await _respond_error(
                send, 404, f"Nothing is served at this path. The card is at {CARD_PATHS[0]}; send a POST."
            )

    async def _show_card(self, scope: Scope, send: Send) -> None:
        body = encode(card(self._profile, self._url or _base_url(scope)))
        tag = f'"{sha256(body).hexdigest()[:32]}"'
        headers = [(b"etag", tag.encode()), (b"cache-control", b"no-cache")]
        if header(scope, b"if-none-match") == tag:
            await respond(send, 304, b"", headers)
        else:
            await respond(send, 200, body, headers)

    async def _handle_post(self, scope: Scope, receive: Receive, send: Send) -> None:
        body: Json = None
        try:
            body = _decoded(await read_body(receive, self._max_body_bytes))
            answered = await while_connected(receive, self._answer(body, header(scope, b"a2a-version")))
        except RequestError as exc:
            headers = [(b"retry-after", b"1")] if isinstance(exc, TooManyTasks) else []
            await respond(send, *_error_response(body, exc), headers)
            return
        except ClientDisconnected:
            raise
        # The outermost frame of a request: a bug in the kit must not become an HTML error page.
        except Exception:  # noqa: BLE001
            log.exception("A call could not be answered")
            await respond(send, *_error_response(body, RequestError(INTERNAL_ERROR, "Internal error")))
            return
        if isinstance(answered, TaskEventStream):
            await while_connected(receive, respond_with_events(send, answered.events()))
        else:
            await respond(send, 200, encode(answered))

    async def _answer(self, body: Json, version: str) -> Json | TaskEventStream:
        dispatcher = self._dispatcher()
        if isinstance(body, list):
            if not 0 < len(body) <= MAX_BATCH:
                raise RequestError(INVALID_REQUEST, f"Invalid Request: a batch has 1 to {MAX_BATCH} requests")
            return list(await asyncio.gather(*(dispatcher.answer_in_batch(item, version) for item in body)))
        if isinstance(body, dict) and simple_a2a.is_simple(body):
            return await self._answer_simple_a2a(body)
        return await dispatcher.answer(body, version)

    async def _answer_simple_a2a(self, body: JsonObject) -> JsonObject:
        execution = self._tasks.submit(simple_a2a.read_request(body), self._require_handler())
        await execution.wait_until_idle()
        if execution.is_asking:
            simple_a2a.give_up_asking(execution)
        return simple_a2a.answer(body["task_id"], execution)

    def _dispatcher(self) -> RpcDispatcher:
        return RpcDispatcher(self._tasks, self._require_handler())

    def _require_handler(self) -> Handler:
        if self._handler is None:
            raise RequestError(INTERNAL_ERROR, _NO_HANDLER)
        return self._handler


def _decoded(body: bytes) -> Json:
    try:
        return decode(body.removeprefix(b"\xef\xbb\xbf"))
    except JsonTooDeep as exc:
        raise RequestError(INVALID_REQUEST, f"Invalid Request: {exc}") from exc
    except InvalidJson as exc:
        raise RequestError(PARSE_ERROR, f"Parse error: {exc}") from exc


def _error_response(body: Json, exc: RequestError) -> tuple[int, bytes]:
    if isinstance(body, dict) and simple_a2a.is_simple(body):
        status = 400 if exc.status == 200 else exc.status
        return status, encode(simple_a2a.error(body["task_id"], exc.message))
    return exc.status, encode(error(id_of(body), exc))


def _base_url(scope: Scope) -> str:
    """The address at which the card was requested, without the card's path."""
    path: str = scope["path"]
    for known in CARD_PATHS:
        path = path.removesuffix(known)
    server: tuple[str, int] | None = scope.get("server")
    host = header(scope, b"host") or (f"{server[0]}:{server[1]}" if server else "localhost")
    return f"{scope.get('scheme', 'http')}://{host}{path or '/'}"


async def _respond_error(send: Send, status: int, text: str) -> None:
    await respond(send, status, encode({"error": text}))
