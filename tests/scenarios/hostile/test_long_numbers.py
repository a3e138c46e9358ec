"""Integers of any length in answers: a run that has one is shown, and no step ends as our own error."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest
from tests.scenarios.hostile.agents import RawAgent, running

from trunkline.cli.rest.client import Client
from trunkline.jsontypes import JsonObject
from trunkline.testing import RunningSystem

pytestmark = [pytest.mark.anyio, pytest.mark.embedded_only]

WORKFLOW: JsonObject = {
    "name": "one",
    "steps": {
        "give": {"agent": "Agent", "retry": {"max_attempts": 1}},
        "take": {
            "agent": "Agent",
            "needs": ["give"],
            "input": {"n": "${steps.give.output.data.n}"},
            "retry": {"max_attempts": 1},
        },
    },
}
# From so many bytes on, an answer is not looked at closely.
LARGE = 100_000


async def answers(
    digits: int, padding: int, agent: RawAgent, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    await agent.request(reader)
    output = b'{"n":%s,"text":"%s"}' % (b"9" * digits, b"x" * padding)
    body = b'{"task_id":"any","status":"success","output":%s}' % output
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(body) + body)


@pytest.mark.parametrize("padding", [1, LARGE])
@pytest.mark.parametrize("digits", [30, 400, 5_000])
async def test_a_long_integer_is_shown_and_is_no_internal_error(
    system: RunningSystem, digits: int, padding: int
) -> None:
    async with running(partial(answers, digits, padding)) as agent:
        await system.register("Agent", agent.url, protocol="simple-a2a")
        await system.save(WORKFLOW)
        run_id = await system.start("one")
        # As people read it: our own client in Python would not read such a number either.
        client, shown = Client(system.url), None
        while shown is None or shown["status"] in {"PENDING", "RUNNING"}:
            shown = await asyncio.to_thread(client.run, run_id)
    errors = [shown["error"], *(step["error"] for step in shown["steps"])]
    assert "internal_error" not in [error["code"] for error in errors if error is not None]
