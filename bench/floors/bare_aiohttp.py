"""
An aiohttp server that reads a request and answers the same bytes each time. Prints its URL.

    python -m bench.floors.bare_aiohttp ANSWER_FILE
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import uvloop
from aiohttp import web

from trunkline.serving import base_url, listen


async def _main(answer: bytes) -> None:
    async def respond(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(body=answer, content_type="application/json")

    app = web.Application()
    app.router.add_post("/", respond)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    with listen("127.0.0.1", 0) as listener:
        await web.SockSite(runner, listener).start()
        print(base_url(listener), flush=True)
        await asyncio.get_running_loop().create_future()


if __name__ == "__main__":
    uvloop.run(_main(Path(sys.argv[1]).read_bytes()))
