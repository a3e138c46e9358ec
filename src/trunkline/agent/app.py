"""
An agent: a handler behind one URL.

    agent = Agent("Researcher", description="Finds things out.")

    @agent
    async def answer(task):
        yield f"Here is what I know about {task.text}: "
        yield "nothing."

    POST, any path                      Simple A2A; A2A 0.2 and 0.3 (`message/send`, …); A2A 1.0 (`SendMessage`, …)
    GET  …/.well-known/agent-card.json  the card; also …/.well-known/agent.json

The agent is an ASGI app. It asks nobody who they are: whoever can reach it can use it. Browsers are turned away, since
a page must not be able to call what only the machine that it is looked at from can reach.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from datetime import timedelta
from functools import partial
from hashlib import sha256
from typing import Any, TypeVar, overload

from trunkline.agent import simple_a2a
from trunkline.agent.calls import Calls, Following
from trunkline.agent.cards import CARD_PATHS, Profile, card
from trunkline.agent.handlers import Handler, check_handler, log
from trunkline.agent.http import (
    CallerGone,
    Receive,
    Scope,
    Send,
    header,
    read_body,
    respond,
    respond_with_events,
    while_connected,
)
from trunkline.agent.refusals import INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR, Busy, Refusal
from trunkline.agent.rpc import error, id_of
from trunkline.agent.shelf import KEEP, MAX_TASKS, Shelf
from trunkline.agent.values import Json, JsonObject, NotJson, TooDeep, decode, encode

MAX_BODY_BYTES = 10 * 1024 * 1024
MAX_BATCH = 100

# Without a limit a caller that waits for a task without end would keep the server from stopping.
_STOP_SECONDS = 10
_NO_HANDLER = "The agent has no handler. Put @agent before the function that answers."

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
        `url` is the address that the card names; without it, the one at which the card was asked for. Of tasks that
        are over, up to `max_tasks` are kept for `keep`.
        """
        self._profile = Profile(name=name, description=description or name, version=version, skills=skills)
        self._url = url
        self._max_body_bytes = max_body_bytes
        self._shelf = Shelf(max_tasks=max_tasks, keep=keep)
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
                await self._live(receive, send)
            case "http":
                try:
                    await self._serve(scope, receive, send)
                except CallerGone:
                    return
            case other:
                raise RuntimeError(f"An agent is served over HTTP, not over {other}.")

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            event = await receive()
            if event["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            else:
                await self._shelf.close()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        if header(scope, b"origin"):
            await _say(send, 403, "Browsers are turned away; let a server of your own call the agent.")
        elif scope["method"] == "POST":
            await self._take(scope, receive, send)
        elif scope["method"] not in ("GET", "HEAD"):
            await _say(send, 405, "Send a POST.")
        elif path.endswith(CARD_PATHS):
            await self._show_card(scope, send)
        else:
            await _say(
                send, 404, f"There is nothing to read here. The card is at {CARD_PATHS[0]}; send a POST."
            )

    async def _show_card(self, scope: Scope, send: Send) -> None:
        body = encode(card(self._profile, self._url or _home(scope)))
        tag = f'"{sha256(body).hexdigest()[:32]}"'
        headers = [(b"etag", tag.encode()), (b"cache-control", b"no-cache")]
        if header(scope, b"if-none-match") == tag:
            await respond(send, 304, b"", headers)
        else:
            await respond(send, 200, body, headers)

    async def _take(self, scope: Scope, receive: Receive, send: Send) -> None:
        body: Json = None
        try:
            body = _decoded(await read_body(receive, self._max_body_bytes))
            answered = await while_connected(receive, self._answer(body, header(scope, b"a2a-version")))
        except Refusal as refused:
            headers = [(b"retry-after", b"1")] if isinstance(refused, Busy) else []
            await respond(send, *_refused(body, refused), headers)
            return
        except CallerGone:
            raise
        # The outermost frame of a call: a mistake of the kit's own must not become a page of HTML.
        except Exception:  # noqa: BLE001
            log.exception("A call could not be answered")
            await respond(send, *_refused(body, Refusal(INTERNAL_ERROR, "Internal error")))
            return
        if isinstance(answered, Following):
            await while_connected(receive, respond_with_events(send, answered.events()))
        else:
            await respond(send, 200, encode(answered))

    async def _answer(self, body: Json, version: str) -> Json | Following:
        calls = self._calls()
        if isinstance(body, list):
            if not 0 < len(body) <= MAX_BATCH:
                raise Refusal(INVALID_REQUEST, f"Invalid Request: a batch has 1 to {MAX_BATCH} requests")
            return list(await asyncio.gather(*(calls.answer_in_batch(item, version) for item in body)))
        if isinstance(body, dict) and simple_a2a.is_simple(body):
            return await self._answer_simply(body)
        return await calls.answer(body, version)

    async def _answer_simply(self, body: JsonObject) -> JsonObject:
        work = self._shelf.take(simple_a2a.read_request(body), self._handled())
        await work.settled()
        if work.is_asking:
            simple_a2a.give_up_asking(work)
        return simple_a2a.answer(body["task_id"], work)

    def _calls(self) -> Calls:
        return Calls(self._shelf, self._handled())

    def _handled(self) -> Handler:
        if self._handler is None:
            raise Refusal(INTERNAL_ERROR, _NO_HANDLER)
        return self._handler


def _decoded(body: bytes) -> Json:
    try:
        return decode(body.removeprefix(b"\xef\xbb\xbf"))
    except TooDeep as exc:
        raise Refusal(INVALID_REQUEST, f"Invalid Request: {exc}") from exc
    except NotJson as exc:
        raise Refusal(PARSE_ERROR, f"Parse error: {exc}") from exc


def _refused(body: Json, refused: Refusal) -> tuple[int, bytes]:
    if isinstance(body, dict) and simple_a2a.is_simple(body):
        status = 400 if refused.status == 200 else refused.status
        return status, encode(simple_a2a.refusal(body["task_id"], refused))
    return refused.status, encode(error(id_of(body), refused))


def _home(scope: Scope) -> str:
    """The address at which the card was asked for, without the card's own path."""
    path: str = scope["path"]
    for known in CARD_PATHS:
        path = path.removesuffix(known)
    server: tuple[str, int] | None = scope.get("server")
    host = header(scope, b"host") or (f"{server[0]}:{server[1]}" if server else "localhost")
    return f"{scope.get('scheme', 'http')}://{host}{path or '/'}"


async def _say(send: Send, status: int, text: str) -> None:
    await respond(send, status, encode({"error": text}))
