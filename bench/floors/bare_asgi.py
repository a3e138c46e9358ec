"""
An ASGI application that does nothing: the price of an HTTP request on the same server.

    python -m bench.floors.bare_asgi ANSWER_FILE
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import uvloop
from starlette.types import ASGIApp, Receive, Scope, Send

from trunkline.api.server import base_url, listen, serving


def answering(answer: bytes) -> ASGIApp:
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(answer)).encode()),
        (b"location", b"/api/v1/runs/01890000-0000-7000-8000-000000000000"),
        (b"x-correlation-id", b"01890000-0000-7000-8000-000000000000"),
    ]

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        while (await receive()).get("more_body", False):
            pass
        await send({"type": "http.response.start", "status": 202, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    return app


async def _main(answer: bytes) -> None:
    with listen("127.0.0.1", 0) as listener:
        async with serving(answering(answer), listener):
            print(base_url(listener), flush=True)
            await asyncio.get_running_loop().create_future()


if __name__ == "__main__":
    uvloop.run(_main(Path(sys.argv[1]).read_bytes()))
