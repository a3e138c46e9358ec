"""
The job written by hand for nothing else: what both floors have in common.

aiohttp, four saves a run, the state of each step durable before the next begins. No recovery, no retries, no API, no
workflow language. No real system is expected to be faster.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from typing import Protocol

import aiohttp
import msgspec

from bench.harness.job import STEPS, TEXT, request_body
from bench.harness.load import take_orders

_encoder = msgspec.json.Encoder()


class _Part(msgspec.Struct):
    text: str


class _Artifact(msgspec.Struct):
    parts: list[_Part]


class _Task(msgspec.Struct):
    artifacts: list[_Artifact]


class _Answer(msgspec.Struct):
    id: str
    result: _Task


_answers = msgspec.json.Decoder(_Answer)


class Writer(Protocol):
    async def save(self, run: str, step: int, state: bytes) -> None:
        """Returns when it is durable."""
        ...


async def serve_handwritten(agent_url: str, writer: Writer) -> None:
    """Takes orders until there are no more."""
    connector = aiohttp.TCPConnector(limit=0)
    headers = {"Content-Type": "application/json"}
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:

        def slot(number: int) -> Callable[[], Awaitable[None]]:
            del number
            return lambda: _run_workflow(session, agent_url, writer)

        await take_orders(slot)


async def _run_workflow(session: aiohttp.ClientSession, url: str, writer: Writer) -> None:
    run = str(uuid.uuid4())
    text = TEXT
    await writer.save(run, 0, _encoder.encode({"text": text}))
    for step in range(1, STEPS + 1):
        task_id = f"{run}/{step}"
        async with session.post(url, data=_encoder.encode(request_body(task_id, text))) as response:
            answer = _answers.decode(await response.read())
        assert answer.id == task_id
        text = answer.result.artifacts[0].parts[0].text
        await writer.save(run, step, _encoder.encode({"text": text}))
