"""
Workflows of every kind, each with its agents and what people do meanwhile: told in both modes, they go the same way.

Nothing in a scenario depends on time: whoever acts waits first for what has to have happened.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from trunkline.jsontypes import Json, JsonObject
from trunkline.messages.codec import MAX_VALUE_BYTES
from trunkline.testing import (
    Call,
    RunningSystem,
    ScriptedAgent,
    jsonrpc_error,
    jsonrpc_task,
    simple_error,
    simple_success,
)
from trunkline.testing.agents import Hangup, Reply, Script


class ScenarioContext(NamedTuple):
    """One run of a scenario, with its agents."""

    system: RunningSystem
    run_id: str
    agents: Mapping[str, ScriptedAgent]
    # Of the agents that hold a call.
    gates: Mapping[str, asyncio.Event]

    async def send_command(self, send_command: str, body: Json = None) -> None:
        answer = await self.system.call("POST", f"/runs/{self.run_id}/{send_command}", body)
        assert answer.status == 202, answer.body

    async def waits(self) -> None:
        await self.system.wait_for(self.run_id, {"WAITING"})


# What people do; the run that it is about in the end, where that is another.
Act: TypeAlias = Callable[[ScenarioContext], Awaitable[str | None]]


class ScriptedPart(NamedTuple):
    """An agent: its dialect, and what it says to one run, made anew for each."""

    protocol: str
    scripts: Callable[[], Sequence[Script]]


class Scenario(NamedTuple):
    name: str
    steps: JsonObject
    agents: Mapping[str, ScriptedPart]
    act: Act
    more: JsonObject | None = None
    input: Json = None
    # The agent whose task is cancelled in the end.
    cancelled_at: str | None = None

    @property
    def definition(self) -> JsonObject:
        return {"name": self.name, "steps": self.steps, **(self.more or {})}


async def _watch(context: ScenarioContext) -> None:
    """Nothing to do but wait."""


def simple(*scripts: Script) -> ScriptedPart:
    return ScriptedPart("simple-a2a", lambda: scripts)


def rpc(*scripts: Script) -> ScriptedPart:
    return ScriptedPart("jsonrpc-2.0", lambda: scripts)


class _Gate:
    """Holds a call until it is opened."""

    def __init__(self, answer: Callable[[Call], Json]) -> None:
        self.opened = asyncio.Event()
        self._answer = answer

    async def __call__(self, call: Call) -> Json:
        await self.opened.wait()
        return self._answer(call)


def _gated(answer: Callable[[Call], Json]) -> ScriptedPart:
    return ScriptedPart("simple-a2a", lambda: [_Gate(answer)])


async def never(call: Call) -> Json:
    await asyncio.Event().wait()
    return None


RETRY: JsonObject = {
    "max_attempts": 3,
    "backoff": "linear",
    "first_delay": "20ms",
    "jitter": False,
    "on": ["any"],
}
WORKING = jsonrpc_task("", state="working")
ASKING = jsonrpc_task("Which city?", state="input-required")
ASKING_AGAIN = jsonrpc_task("Which day?", state="input-required")
CANCELLED = jsonrpc_task("", state="canceled")
LONG = "x" * (MAX_VALUE_BYTES + 1)


async def _resolve(context: ScenarioContext) -> None:
    await context.waits()
    await context.send_command("steps/pay/resolve", {"outcome": "succeeded", "output": {"paid": 5}})


async def _call_again(context: ScenarioContext) -> None:
    await context.waits()
    await context.send_command("steps/pay/resolve", {"outcome": "call_again"})


async def _reply_twice(context: ScenarioContext) -> None:
    await context.waits()
    await context.send_command("steps/ask/reply", {"text": "Rome"})
    await context.agents["Asks"].called(2)
    await context.waits()
    await context.send_command("steps/ask/reply", {"data": {"day": "Monday"}})


async def _cancel_call(context: ScenarioContext) -> None:
    await context.agents["Deaf"].called()
    await context.send_command("cancel")


async def _cancel_remote(context: ScenarioContext) -> None:
    await context.agents["Long"].called_for("tasks/get")
    await context.send_command("cancel")


async def _cancel_question(context: ScenarioContext) -> None:
    await context.waits()
    await context.send_command("cancel")


async def _pause_and_resume(context: ScenarioContext) -> None:
    await context.agents["Slow"].called()
    await context.send_command("pause")
    context.gates["Slow"].set()
    await context.system.wait_for_step(context.run_id, "first", {"COMPLETED"})
    await context.send_command("resume")


async def _fail_in_parallel_branch(context: ScenarioContext) -> None:
    """The other branch's call is under way while one fails, and ends after it."""
    await context.agents["Slow"].called()
    await context.system.wait_for_step(context.run_id, "fails", {"FAILED"})
    context.gates["Slow"].set()


async def _retry_the_run(context: ScenarioContext) -> str:
    await context.system.wait_for(context.run_id, {"FAILED"})
    answer = await context.system.call("POST", f"/runs/{context.run_id}/retry", {})
    assert answer.status == 202, answer.body
    return str(answer.json["id"])


def _one(agent: str, **more: Json) -> JsonObject:
    return {"only": {"agent": agent, **more}}


SCENARIOS = (
    Scenario(
        "graph",
        {
            "split": {"agent": "Splits"},
            "left": {"agent": "Left", "input": {"text": "${ steps.split.output.text }"}},
            "middle": {"agent": "Middle", "needs": ["split"]},
            "right": {"agent": "Right", "needs": ["middle"]},
            "join": {"agent": "Joins", "input": ["${ steps.left.output }", "${ steps.right.output.data.n }"]},
        },
        {
            "Splits": simple(simple_success("parts")),
            "Left": rpc(jsonrpc_task("left")),
            "Middle": simple(simple_success({"n": 1})),
            "Right": rpc(jsonrpc_task('{"n": 2}', context_id="c-2")),
            "Joins": simple(simple_success({"joined": True})),
        },
        _watch,
        {"output": {"all": "${ steps.join.output.data }"}},
        {"topic": "tides"},
    ),
    Scenario(
        "narrow",
        {name: {"agent": "Agent"} for name in ("a", "b", "c")},
        {"Agent": simple(simple_success("ok"))},
        _watch,
        {"max_parallel": 1},
    ),
    Scenario(
        "retried",
        _one("Flaky", retry=RETRY),
        {"Flaky": simple(Reply(503, b"busy"), Hangup(), simple_success("ok"))},
        _watch,
    ),
    Scenario(
        "asked-to-wait",
        _one("Busy", retry=RETRY),
        {"Busy": simple(Reply(429, b"", {"Retry-After": "0"}), simple_error("no"), simple_success("ok"))},
        _watch,
    ),
    Scenario(
        "exhausted",
        {**_one("Broken", retry=RETRY), "later": {"agent": "Never", "needs": ["only"]}},
        {"Broken": rpc(jsonrpc_error(-32000, "broken")), "Never": simple(simple_success("never"))},
        _watch,
    ),
    Scenario(
        "timed-out",
        _one("Deaf", timeout="1s", retry={**RETRY, "max_attempts": 2}),
        {"Deaf": simple(never)},
        _watch,
    ),
    Scenario(
        "conditional",
        {
            "score": {"agent": "Scores"},
            "check": {"agent": "Never", "when": "steps.score.output.data.score < 0.5"},
            "praise": {"agent": "Praises", "when": "steps.score.output.data.score > 0.5"},
            "end": {"agent": "Ends", "needs": ["check", "praise"], "input": "${ steps.check.status }"},
        },
        {
            "Scores": simple(simple_success({"score": 0.9})),
            "Never": simple(simple_success("never")),
            "Praises": simple(simple_success("well done")),
            "Ends": simple(simple_success("end")),
        },
        _watch,
    ),
    Scenario(
        "no-boolean",
        _one("Never", when="input.flag"),
        {"Never": simple(simple_success("x"))},
        _watch,
        input={"flag": 1},
    ),
    Scenario(
        "continues",
        {
            "bad": {"agent": "Bad", "on_error": "continue"},
            "later": {"agent": "Later", "input": {"why": "${ steps.bad.error.message }"}},
        },
        {"Bad": simple(simple_error("no paper")), "Later": simple(simple_success("ok"))},
        _watch,
    ),
    Scenario(
        "rescued",
        {
            "risky": {"agent": "Risky", "on_error": {"goto": "rescue"}},
            "rescue": {"agent": "Rescues", "input": "${ steps.risky.error.message }"},
            "fine": {"agent": "Fine", "on_error": {"goto": "unneeded"}},
            "unneeded": {"agent": "Never"},
        },
        {
            "Risky": rpc(jsonrpc_error(-32602, "too hot")),
            "Rescues": rpc(jsonrpc_task("saved")),
            "Fine": simple(simple_success("fine")),
            "Never": simple(simple_success("never")),
        },
        _watch,
    ),
    Scenario(
        "fails-in-parallel-branch",
        {
            "slow": {"agent": "Slow"},
            "fails": {"agent": "Fails"},
            "later": {"agent": "Never", "needs": ["slow"]},
        },
        {
            "Slow": _gated(simple_success("done")),
            "Fails": simple(simple_error("no")),
            "Never": simple(simple_success("never")),
        },
        _fail_in_parallel_branch,
    ),
    Scenario(
        "retried-run",
        {"good": {"agent": "Good"}, "bad": {"agent": "Bad", "needs": ["good"]}},
        {"Good": simple(simple_success("kept")), "Bad": simple(simple_error("no"), simple_success("yes"))},
        _retry_the_run,
    ),
    Scenario(
        "bad-end",
        _one("Agent"),
        {"Agent": simple(simple_success({"a": 1}))},
        _watch,
        {"output": "${ steps.only.output.data.b }"},
    ),
    Scenario(
        "no-answer-of-ours",
        _one("Odd", retry={**RETRY, "max_attempts": 2, "on": ["no_answer"]}),
        {"Odd": simple({"task_id": "other", "status": "success", "output": "x", "error": None})},
        _watch,
    ),
    Scenario("not-registered", _one("Nobody", retry={**RETRY, "max_attempts": 2}), {}, _watch),
    Scenario(
        "resolved",
        {
            "pay": {"agent": "Bank", "delivery": "at_most_once", "retry": RETRY},
            "after": {"agent": "After", "needs": ["pay"]},
        },
        {"Bank": simple(Hangup()), "After": simple(simple_success("thanks"))},
        _resolve,
    ),
    Scenario(
        "called-again",
        {"pay": {"agent": "Bank", "delivery": "at_most_once"}},
        {"Bank": simple(Hangup(), simple_success("paid"))},
        _call_again,
    ),
    Scenario(
        "remote",
        {"long": {"agent": "Long"}, "after": {"agent": "After", "needs": ["long"]}},
        {"Long": rpc(WORKING, WORKING, jsonrpc_task("at last")), "After": simple(simple_success("ok"))},
        _watch,
    ),
    Scenario(
        "asked",
        {"ask": {"agent": "Asks"}},
        {"Asks": rpc(ASKING, ASKING_AGAIN, jsonrpc_task("Sunny"))},
        _reply_twice,
    ),
    Scenario("cancelled-call", _one("Deaf"), {"Deaf": simple(never)}, _cancel_call),
    Scenario(
        "cancelled-remote",
        _one("Long"),
        {"Long": rpc(lambda call: (CANCELLED if call.method == "tasks/cancel" else WORKING)(call))},
        _cancel_remote,
    ),
    Scenario(
        "cancelled-question",
        _one("Asks"),
        {"Asks": rpc(ASKING, jsonrpc_task("", state="canceled"))},
        _cancel_question,
        cancelled_at="Asks",
    ),
    Scenario(
        "paused",
        {"first": {"agent": "Slow"}, "second": {"agent": "Next", "needs": ["first"]}},
        {"Slow": _gated(simple_success("one")), "Next": simple(simple_success("two"))},
        _pause_and_resume,
    ),
    Scenario("late", _one("Deaf"), {"Deaf": simple(never)}, _watch, {"deadline": "300ms"}),
    Scenario(
        "late-question",
        _one("Asks"),
        {"Asks": rpc(ASKING)},
        ScenarioContext.waits,
        {"deadline": "3s"},
        cancelled_at="Asks",
    ),
    Scenario(
        "long",
        {"first": {"agent": "Long"}, "second": {"agent": "Ends", "input": "${ steps.first.output }"}},
        {"Long": simple(simple_success({"text": LONG})), "Ends": simple(simple_success("ok"))},
        _watch,
        input={"text": LONG},
    ),
)


class ScenarioResult(NamedTuple):
    """How it went: the run in the end, its events, and what the agents were asked."""

    run: JsonObject
    events: Sequence[JsonObject]
    calls: Mapping[str, Sequence[JsonObject]]


async def run_scenario(
    scenario: Scenario, system: RunningSystem, agents: Mapping[str, ScriptedAgent]
) -> ScenarioResult:
    """In a system that has its agents and its workflow."""
    gates: dict[str, asyncio.Event] = {}
    for name, agent in agents.items():
        scripts = scenario.agents[name].scripts()
        for script in scripts:
            if isinstance(script, _Gate):
                gates[name] = script.opened
        agent.script(*scripts)
        agent.calls.clear()
    context = ScenarioContext(system, await system.start(scenario.name, scenario.input), agents, gates)
    run_id = await scenario.act(context) or context.run_id
    run = await system.wait_for(run_id)
    if scenario.cancelled_at is not None:
        await agents[scenario.cancelled_at].called_for("tasks/cancel")
    events = await system.items(f"/runs/{run_id}/events?limit=1000")
    return ScenarioResult(
        run, events, {name: [call.body for call in agent.calls] for name, agent in agents.items()}
    )
