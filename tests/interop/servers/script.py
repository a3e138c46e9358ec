"""
What every agent here does with a message: the first word of its text says it.

    work NAME       works until the file NAME exists in the agent's folder
    stream NAME     says that it has begun, gives one half of a story, and the other when NAME exists
    fail REASON     ends as failed
    crash REASON    raises
    ask QUESTION    waits for a person; what the person says is repeated
    remember THING  keeps it for this context
    recall          says what it keeps for this context
    say WORDS       answers with a message instead of a task
    anything else   repeats the text, and gives back every other part as it came

The frameworks differ; each runs this script with its own reply channel. Every request is a line of FOLDER/calls.jsonl
when it arrives, every message that reaches the agent itself a line of FOLDER/executions.jsonl.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import uvicorn

FOLDER = Path(sys.argv[2]) if len(sys.argv) > 2 else Path()
# How often a file is looked for.
_LOOK_SECONDS = 0.02

_memory: dict[str, str] = {}


class ReplyChannel(Protocol):
    """How a framework tells its client what happens; a part is in the framework's own shape."""

    async def say(self, text: str) -> None: ...
    async def work(self, text: str | None = None) -> None: ...
    async def give(self, text: str | None, others: Sequence[Any] = ()) -> None: ...
    async def give_chunk(self, text: str, *, append: bool, last: bool) -> None: ...
    async def complete(self) -> None: ...
    async def fail(self, text: str) -> None: ...
    async def ask(self, text: str) -> None: ...


async def run_script(
    channel: ReplyChannel,
    text: str,
    others: Sequence[Any],
    context_id: str,
    message_id: str,
    *,
    answers: bool,
) -> None:
    """`answers`: the message is what a person said to a question."""
    note("executions", {"messageId": message_id, "contextId": context_id, "text": text})
    word, _, rest = text.partition(" ")
    if word == "say":
        await channel.say(rest)
        return
    await channel.work()
    match "" if answers else word:
        case "work":
            await wait_for_file(rest)
            await channel.give(f"Done: {rest}")
        case "stream":
            await channel.work("It begins")
            await channel.give_chunk("Once upon ", append=False, last=False)
            await wait_for_file(rest)
            await channel.give_chunk("a time", append=True, last=True)
        case "fail":
            await channel.fail(rest)
            return
        case "crash":
            raise RuntimeError(rest)
        case "ask":
            await channel.ask(rest)
            return
        case "remember" | "recall":
            await channel.give(remembered(context_id, rest))
        case _:
            await channel.give(f"Heard: {text}", others)
    await channel.complete()


def remembered(context_id: str, thing: str) -> str:
    if thing:
        _memory[context_id] = thing
        return f"Kept: {thing}"
    return f"You said: {_memory.get(context_id, 'nothing')}"


async def wait_for_file(name: str) -> None:
    while not (FOLDER / name).exists():
        await asyncio.sleep(_LOOK_SECONDS)


def note(kind: str, line: dict[str, Any]) -> None:
    with (FOLDER / f"{kind}.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")


class NotedCalls:
    """The application, with every request but that for the card written down before it is answered."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["path"].startswith("/.well-known/"):
            await self._app(scope, receive, send)
            return
        body, events = b"", []
        while True:
            event = await receive()
            events.append(event)
            body += event.get("body", b"")
            if event["type"] != "http.request" or not event.get("more_body"):
                break
        note("calls", seen(scope["path"], body))

        async def again() -> Any:
            return events.pop(0) if events else await receive()

        await self._app(scope, again, send)


def seen(path: str, body: bytes) -> dict[str, Any]:
    try:
        request = json.loads(body or b"{}")
    except ValueError:
        return {"path": path, "method": None}
    params = request.get("params", request)
    message = params.get("message", {})
    texts = [part["text"] for part in message.get("parts", []) if "text" in part]
    return {
        "at": time.time(),
        "path": path,
        "method": request.get("method"),
        "messageId": message.get("messageId"),
        "taskId": message.get("taskId") or params.get("id"),
        "contextId": message.get("contextId"),
        "text": "\n".join(texts),
    }


def listen() -> tuple[socket.socket, str]:
    """The port of the command line, and the address that belongs on the card."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", int(sys.argv[1])))
    return listener, f"http://127.0.0.1:{listener.getsockname()[1]}"


def serve(app: Any, listener: socket.socket, url: str) -> None:
    listener.listen()
    server = uvicorn.Server(uvicorn.Config(NotedCalls(app), log_level="warning"))

    async def run() -> None:
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        while not server.started and not serving.done():
            await asyncio.sleep(_LOOK_SECONDS)
        print(url, flush=True)  # noqa: T201 - the line that the test waits for
        await serving

    asyncio.run(run())
