"""What the tests let an agent do: the workflows, and how a run of one is followed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tests.interop.agents import Agent

from trunkline.jsontypes import Json, JsonObject
from trunkline.testing import RunningSystem
from trunkline.testing.system import step_of

Definition = Callable[[str], JsonObject]


def one(agent: str) -> JsonObject:
    """What the run is given is what the agent gets."""
    return {"name": f"one-{_plain(agent)}", "steps": {"only": {"agent": agent, "retry": {"max_attempts": 1}}}}


def quick_client(agent: str) -> JsonObject:
    """As `one`, for a task that never ends."""
    step: JsonObject = {"agent": agent, "timeout": "2s", "retry": {"max_attempts": 1}}
    return {"name": f"quick_client-{_plain(agent)}", "steps": {"only": step}}


def stubborn(agent: str) -> JsonObject:
    """As `one`, and once more when there is no answer."""
    step: JsonObject = {"agent": agent, "retry": {"max_attempts": 3, "first_delay": "100ms"}}
    return {"name": f"stubborn-{_plain(agent)}", "steps": {"only": step}}


def two_turns(agent: str) -> JsonObject:
    first: JsonObject = {"agent": agent, "input": {"text": "remember tea"}}
    second: JsonObject = {"agent": agent, "input": {"text": "recall"}, "needs": ["first"]}
    return {"name": f"two-turns-{_plain(agent)}", "steps": {"first": first, "second": second}}


WORKFLOWS: tuple[Definition, ...] = (one, quick_client, stubborn, two_turns)


def name_of(definition: Definition, agent: Agent) -> str:
    return str(definition(agent.name)["name"])


def _plain(agent: str) -> str:
    return agent.replace(".", "-")


async def run_workflow(system: RunningSystem, agent: Agent, text: str, *parts: JsonObject) -> JsonObject:
    """Sends one message and waits for the end of the run: the run."""
    return await system.run(name_of(one, agent), message(text, *parts))


async def begin(system: RunningSystem, agent: Agent, text: str, definition: Definition = one) -> str:
    """Sends one message and waits until the agent has told its task's id: the run's id."""
    run_id = await system.start(name_of(definition, agent), message(text))
    while not (agent.executions(text) and await _is_followed(system, run_id)):
        await asyncio.sleep(0.02)
    return run_id


async def _is_followed(system: RunningSystem, run_id: str) -> bool:
    run = await system.get(run_id)
    assert run["status"] in ("PENDING", "RUNNING"), run["error"]
    waiting_for = step_of(run, "only")["waiting_for"]
    return isinstance(waiting_for, dict) and waiting_for["kind"] == "remote"


def message(text: str, *parts: JsonObject) -> JsonObject:
    return {"parts": [{"text": text}, *parts]} if parts else {"text": text}


def output_of(run: JsonObject, step: str = "only") -> JsonObject:
    assert run["status"] == "COMPLETED", run["error"]
    output = step_of(run, step)["output"]
    assert isinstance(output, dict)
    return output


def parts_of(output: JsonObject) -> list[Json]:
    """The parts of all artifacts."""
    artifacts = output["artifacts"]
    assert isinstance(artifacts, list)
    return [
        part for artifact in artifacts if isinstance(artifact, dict) for part in _listed(artifact["parts"])
    ]


def _listed(value: Json) -> list[Json]:
    assert isinstance(value, list)
    return value
