"""
Fifty agents that move, in a process of their own: each path is one, and speaks Simple A2A and JSON-RPC 2.0.

    python -m tests.crash.migrating_agents          prints its base URL, and lives until it is killed

    POST /{agent}          a task, or a question how one stands
    POST /_behave/{agent}  `well`, `fails` or `slow`: how its JSON-RPC side behaves from now on
    POST /_mark            a line in the log
    POST /_release         lets go what is held
    GET  /_log             everything that has arrived, in its order

What they answer follows from the request alone: `{agent} {text}`. A side that fails refuses the first message for
each text, and takes the next one. The step `second` of most runs is held until all are let go: in Simple A2A the
answer waits, in JSON-RPC the task is being worked on.
"""

from __future__ import annotations

import asyncio
import sys
from typing import cast

from aiohttp import web

from trunkline.jsontypes import Json, JsonObject, decode, encode

# Seconds that an answer takes; of a slow side; and until a long task is done.
_PAUSE = 0.02
_SLOW = 2.0
_LONG = 0.4
# A bridge has not room for the calls of many more.
_HELD_OF_A_WAVE = 200
# Every fifth agent's JSON-RPC side works on its tasks for long, and has to be asked.
_LONG_EVERY = 5


class Refusal(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class MigratingAgents:
    def __init__(self) -> None:
        self._log: list[Json] = []
        self._how: dict[str, str] = {}
        # By text: the message that was refused.
        self._refused: dict[str, str] = {}
        self._released = asyncio.Event()

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/_log", self._show_log)
        app.router.add_post("/_mark", self._mark)
        app.router.add_post("/_release", self._release)
        app.router.add_post("/_behave/{agent}", self._behave)
        app.router.add_post("/{agent}", self._answer)
        return app

    async def _show_log(self, request: web.Request) -> web.Response:
        del request
        return _json(self._log)

    async def _mark(self, request: web.Request) -> web.Response:
        self._log.append({"mark": await request.text()})
        return _json({})

    async def _release(self, request: web.Request) -> web.Response:
        del request
        self._released.set()
        return _json({})

    def _is_held(self, text: str) -> bool:
        key, _, step = text.partition("/")
        number = key.rpartition("-")[2]
        return step == "second" and int(number) < _HELD_OF_A_WAVE and not self._released.is_set()

    async def _behave(self, request: web.Request) -> web.Response:
        self._how[request.match_info["agent"]] = await request.text()
        return _json({})

    async def _answer(self, request: web.Request) -> web.Response:
        agent = request.match_info["agent"]
        try:
            body = decode(await request.read())
        except ValueError:
            return _error(None, Refusal(-32700, "Parse error"))
        if not isinstance(body, dict):
            return _error(None, Refusal(-32600, "Invalid Request"))
        if "task_id" in body:
            return await self._in_simple_a2a(agent, body)
        try:
            return _json({"jsonrpc": "2.0", "id": body.get("id"), "result": await self._result(agent, body)})
        except Refusal as refusal:
            return _error(body.get("id"), refusal)

    async def _in_simple_a2a(self, agent: str, body: JsonObject) -> web.Response:
        given = body.get("input")
        text = str(given.get("text")) if isinstance(given, dict) else ""
        self._note(agent, "old", "send", text, str(body["task_id"]))
        await asyncio.sleep(_PAUSE)
        if self._is_held(text):
            await self._released.wait()
        output: JsonObject = {"text": f"{agent} {text}"}
        return _json({"task_id": body["task_id"], "status": "success", "output": output, "error": None})

    async def _result(self, agent: str, body: JsonObject) -> JsonObject:
        if body.get("jsonrpc") != "2.0" or not isinstance(body.get("method"), str):
            raise Refusal(-32600, "Invalid Request")
        params = body.get("params")
        match body["method"]:
            case "message/send":
                return await self._take(agent, params)
            case "tasks/get":
                return await self._ask(agent, params)
            case method:
                raise Refusal(-32601, f"Method not found: {method}")

    async def _take(self, agent: str, params: Json) -> JsonObject:
        match params:
            case {
                "message": {"messageId": str(message), "parts": [{"kind": "text", "text": str(given)}, *_]}
            }:
                text = _input_text(given)
            case _:
                raise Refusal(-32602, "Invalid params: message.parts must begin with a text")
        self._note(agent, "new", "send", text, message)
        how = self._how.get(agent, "well")
        await asyncio.sleep(_SLOW if how == "slow" else _PAUSE)
        if how == "fails" and self._refused.setdefault(f"{agent} {text}", message) == message:
            raise Refusal(-32603, "Internal error: a new release")
        if self._is_held(text) or int(agent.rpartition("-")[2]) % _LONG_EVERY == 0:
            done_at = asyncio.get_running_loop().time() + _LONG
            # The id says it all: nothing is lost with this process, and nothing has to be kept.
            return {
                "kind": "task",
                "id": f"{done_at}|{text}",
                "contextId": "c",
                "status": {"state": "working"},
            }
        return _done(f"done|{text}", agent, text)

    async def _ask(self, agent: str, params: Json) -> JsonObject:
        task = str(params.get("id")) if isinstance(params, dict) else ""
        done_at, _, text = task.partition("|")
        if not text:
            raise Refusal(-32001, "Task not found")
        self._note(agent, "new", "poll", text, task)
        is_early = done_at != "done" and asyncio.get_running_loop().time() < float(done_at)
        if is_early or self._is_held(text):
            return {"kind": "task", "id": task, "contextId": "c", "status": {"state": "working"}}
        return _done(task, agent, text)

    def _note(self, agent: str, side: str, kind: str, text: str, message: str) -> None:
        key, _, step = text.partition("/")
        line = {"agent": agent, "side": side, "kind": kind, "key": key, "step": step, "message": message}
        self._log.append(cast("JsonObject", line))


def _input_text(given: str) -> str:
    """The target of a migration from Simple A2A gets the whole input, as JSON text."""
    try:
        whole = decode(given)
    except ValueError:
        return given
    return str(whole["text"]) if isinstance(whole, dict) else given


def _done(task: str, agent: str, text: str) -> JsonObject:
    parts: list[Json] = [{"kind": "text", "text": f"{agent} {text}"}]
    return {
        "kind": "task",
        "id": task,
        "contextId": "c",
        "status": {"state": "completed"},
        "artifacts": [{"artifactId": "answer", "parts": parts}],
    }


def _json(value: Json) -> web.Response:
    return web.Response(body=encode(value), content_type="application/json")


def _error(call_id: Json, refusal: Refusal) -> web.Response:
    return _json({"jsonrpc": "2.0", "id": call_id, "error": {"code": refusal.code, "message": str(refusal)}})


async def main() -> None:
    runner = web.AppRunner(MigratingAgents().app(), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
    host, port = runner.addresses[0][:2]
    sys.stdout.write(f"http://{host}:{port}\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
