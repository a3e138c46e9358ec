"""One step of the job: a POST to the agent, with aiohttp. What surrounds it belongs to the system that is measured."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import aiohttp
import msgspec

from bench.harness.job import TEXT, request_body


class AgentCaller:
    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self._url = url
        self._session = session

    async def call(self, text: str) -> str:
        body = msgspec.json.encode(request_body(str(uuid.uuid4()), text))
        async with self._session.post(self._url, data=body) as response:
            answer = msgspec.json.decode(await response.read())
        return answer["result"]["artifacts"][0]["parts"][0]["text"]


@asynccontextmanager
async def agent_caller(url: str) -> AsyncGenerator[AgentCaller]:
    connector = aiohttp.TCPConnector(limit=0)
    headers = {"Content-Type": "application/json"}
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
        yield AgentCaller(url, session)


def check_text(text: object) -> None:
    """The agent answers with the text of the request, so the last step must have the first one's."""
    if text != TEXT:
        raise RuntimeError(f"The workflow ended with {text!r}.")
