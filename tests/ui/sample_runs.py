"""
Runs in which everything happens that a run's page tells apart.

    voyage   a retry, a branch that is not taken, items one of which fails, a run of another workflow, a failure that
             leads elsewhere, an agent that works for a while; `harbour` waits for a gate, then asks a question
    fleet    is a voyage, as a run of another workflow
    wreck    fails
    coast    is long, and fails far from its beginning
    bottle   is called at most once, and the answer is lost
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.ui.agents import ThreadedAgents
from tests.ui.wheel_install import trunkline_up

from trunkline.cli.rest.client import Client
from trunkline.jsontypes import JsonObject, encode
from trunkline.testing import jsonrpc_task, simple_error, simple_success
from trunkline.testing.agents import Call, Hangup, Reply, Script, Scripted

LEGS = 12
SUNK = 7
ONCE: JsonObject = {"max_attempts": 1}

STOCK: JsonObject = {
    "name": "stock",
    "input": {"type": "object", "required": ["crew"]},
    "steps": {
        "water": {"agent": "Worker", "input": {"barrels": "${ input.crew }"}},
        "bread": {"agent": "Worker", "input": {"loaves": "${ input.crew }"}},
        "load": {"agent": "Worker", "needs": ["water", "bread"]},
        "stow": {"workflow": "hold", "needs": ["load"]},
    },
}
HOLD: JsonObject = {
    "name": "hold",
    "steps": {
        "sort": {"agent": "Worker"},
        "lash": {"agent": "Worker", "needs": ["sort"]},
    },
}
VOYAGE: JsonObject = {
    "name": "voyage",
    "steps": {
        "plan": {"agent": "Worker", "input": {"crew": 4}},
        "scout": {
            "agent": "Flaky",
            "needs": ["plan"],
            "retry": {"max_attempts": 2, "backoff": "fixed", "first_delay": "150ms", "jitter": False},
        },
        "detour": {"agent": "Worker", "needs": ["plan"], "when": "input.storm"},
        "legs": {
            "agent": "Legs",
            "needs": ["scout", "plan"],
            "for_each": {"items": "${ input.legs }", "on_error": "collect"},
            "input": {"leg": "${ item }"},
            "retry": ONCE,
        },
        "provisions": {"workflow": "stock", "needs": ["plan"], "input": {"crew": 4}},
        "radio": {"agent": "Broken", "needs": ["plan"], "retry": ONCE, "on_error": {"goto": "flags"}},
        "flags": {"agent": "Worker"},
        "drift": {"agent": "Drifter", "needs": ["scout"]},
        "harbour": {"agent": "Harbour", "needs": ["legs", "provisions", "flags", "detour", "drift"]},
    },
    "output": "${ steps.harbour.output.text }",
}
FLEET: JsonObject = {
    "name": "fleet",
    "steps": {"ship": {"workflow": "voyage", "input": {"storm": False, "legs": "${ input.legs }"}}},
}
WRECK: JsonObject = {
    "name": "wreck",
    "steps": {"sail": {"agent": "Broken", "retry": ONCE}, "land": {"agent": "Worker", "needs": ["sail"]}},
}
CAPES = 24
LOST = 17
COAST: JsonObject = {
    "name": "coast",
    "steps": {
        f"cape{number}": {
            "agent": "Reef" if number == LOST else "Worker",
            "needs": [f"cape{number - 1}"] if number else [],
            "retry": ONCE,
        }
        for number in range(CAPES)
    },
}
BOTTLE: JsonObject = {"name": "bottle", "steps": {"throw": {"agent": "Sea", "delivery": "at_most_once"}}}


class SampleRuns:
    def __init__(self, client: Client, agents: ThreadedAgents) -> None:
        self.client = client
        self._agents = agents
        self._gate = agents.portal.call(_closed_gate)

    @property
    def url(self) -> str:
        return self.client.url

    def open_gate(self) -> None:
        self._agents.portal.call(self._gate.set)

    def close_gate(self) -> None:
        self._agents.portal.call(self._gate.clear)

    def start(self, workflow: str, *, legs: int = LEGS) -> str:
        return self.client.execute(workflow, {"storm": False, "legs": list(range(legs))})["id"]

    def statuses(self, run: str) -> dict[str, str]:
        """As REST has them; the run itself under its id."""
        shown = self.client.run(run)
        return {run: shown["status"], **{step["name"]: step["status"] for step in shown["steps"]}}

    def prepare(self) -> None:
        self._register("Worker", simple_success({"text": "Aye."}))
        self._register("Flaky", _flaky)
        self._register("Broken", simple_error("The mast is broken."))
        self._register("Reef", Reply(503))
        self._register("Legs", _leg, max_concurrency=3)
        self._register("Sea", Hangup())
        self._register("Drifter", _drift, protocol="jsonrpc-2.0")
        self._register("Harbour", self._harbour, protocol="jsonrpc-2.0")
        for workflow in (HOLD, STOCK, VOYAGE, FLEET, WRECK, COAST, BOTTLE):
            self.client.save_workflow(encode(workflow))

    def _register(
        self, name: str, script: Script, *, protocol: str = "simple-a2a", max_concurrency: int = 16
    ) -> None:
        url = self._agents.start(script).url
        spec: JsonObject = {
            "name": name,
            "url": url,
            "protocol": protocol,
            "max_concurrency": max_concurrency,
        }
        self.client.create_agent(spec)

    async def _harbour(self, call: Call) -> Scripted:
        await self._gate.wait()
        if call.message.get("taskId") is None:
            return jsonrpc_task("Which berth?", state="input-required")(call)
        return jsonrpc_task("Moored.")(call)


async def _closed_gate() -> asyncio.Event:
    return asyncio.Event()


def _flaky(call: Call) -> Scripted:
    first = str(call.id).endswith("/0")
    return Reply(503, b"Fog.") if first else simple_success({"text": "Clear."})(call)


def _leg(call: Call) -> Scripted:
    given = call.body.get("input")
    leg = given.get("leg") if isinstance(given, dict) else None
    return simple_error(f"Leg {leg} has sunk.")(call) if leg == SUNK else simple_success({"leg": leg})(call)


def _drift(call: Call) -> Scripted:
    ashore = call.method == "tasks/get"
    return jsonrpc_task("Ashore." if ashore else "", state="completed" if ashore else "working")(call)


@contextmanager
def sample_runs(agents: ThreadedAgents, session: Path, folder: Path) -> Generator[SampleRuns]:
    with trunkline_up(session, folder) as url:
        stage = SampleRuns(Client(url), agents)
        stage.prepare()
        yield stage
