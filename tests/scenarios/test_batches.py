"""Tasks that wait for one agent travel together where the agent asks for it."""

from __future__ import annotations

import pytest
from aiohttp import web

from trunkline.jsontypes import Json, JsonObject, decode, encode
from trunkline.testing import RunningSystem
from trunkline.testing.system import objects_in, step_of

pytestmark = pytest.mark.anyio

STEPS: Json = {f"s{number}": {"agent": "Batcher", "input": {"query": str(number)}} for number in range(6)}


class BatchAgent:
    """A JSON-RPC server that takes batches, answers in the reverse order, and forgets one task the first time."""

    def __init__(self) -> None:
        self.requests: list[list[JsonObject]] = []
        self._forgot = False

    async def serve(self, request: web.Request) -> web.Response:
        asked = decode(await request.read())
        calls = objects_in(asked) if isinstance(asked, list) else [asked] if isinstance(asked, dict) else []
        self.requests.append(calls)
        answers = [answer for call in reversed(calls) if (answer := self._answer(call)) is not None]
        body: Json = [*answers] if isinstance(asked, list) else answers[0]
        return web.Response(body=encode(body), content_type="application/json")

    def _answer(self, call: JsonObject) -> JsonObject | None:
        params = call["params"]
        assert isinstance(params, dict)
        if params["query"] == "3" and not self._forgot:
            self._forgot = True
            return None
        return {"jsonrpc": "2.0", "id": call["id"], "result": {"doubled": 2 * int(str(params["query"]))}}


async def test_tasks_of_one_agent_share_a_request_and_one_that_is_forgotten_fails_alone(
    system: RunningSystem,
) -> None:
    agent = BatchAgent()
    app = web.Application()
    app.router.add_post("/", agent.serve)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        port = runner.addresses[0][1]
        await system.register(
            "Batcher",
            f"http://127.0.0.1:{port}/",
            protocol="jsonrpc-call",
            protocol_config={"method": "double", "batch": {"max": 10, "wait_ms": 200}},
            retry={"max_attempts": 2, "backoff": "fixed", "first_delay": "10ms"},
        )
        await system.save({"name": "many", "steps": STEPS})
        run = await system.run("many")
    finally:
        await runner.cleanup()
    assert run["status"] == "COMPLETED"
    for number in range(6):
        step = step_of(run, f"s{number}")
        output = step["output"]
        assert isinstance(output, dict)
        assert output["data"] == {"doubled": 2 * number}
        assert step["attempts"] == (2 if number == 3 else 1)
    assert max(len(calls) for calls in agent.requests) > 1
    ids = [call["id"] for calls in agent.requests for call in calls]
    assert len(ids) == 7
    assert len(set(map(str, ids))) == 6
