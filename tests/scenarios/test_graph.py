"""The order in which steps run: in parallel where the graph allows it, and on after a failure where it is told to."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from trunkline.jsontypes import Json, JsonObject
from trunkline.testing import (
    Call,
    FakeClock,
    RunningSystem,
    ScriptedAgent,
    jsonrpc_error,
    jsonrpc_task,
    running_system,
    simple_error,
    simple_success,
)
from trunkline.testing.system import error_of, step_of

pytestmark = pytest.mark.anyio


class BarrierAgent:
    """Answers nobody before so many are there: only calls that overlap ever end."""

    def __init__(self, guests: int) -> None:
        self._guests = guests
        self._present = 0
        self.most_present = 0
        self._complete = asyncio.Event()

    async def __call__(self, call: Call) -> Json:
        self._present += 1
        self.most_present = max(self.most_present, self._present)
        if self._present == self._guests:
            self._complete.set()
        await self._complete.wait()
        self._present -= 1
        return {"task_id": call.id, "status": "success", "output": {"from": call.id}, "error": None}


async def test_branches_that_do_not_need_each_other_run_at_the_same_time(system: RunningSystem) -> None:
    async with ScriptedAgent(BarrierAgent(3)) as branch, ScriptedAgent(simple_success("joined")) as join:
        await system.register("Branch", branch.url, protocol="simple-a2a")
        await system.register("Join", join.url, protocol="simple-a2a")
        await system.save(
            {
                "name": "fan",
                "steps": {
                    "start": {"agent": "Join"},
                    "left": {"agent": "Branch", "needs": ["start"]},
                    "middle": {"agent": "Branch", "needs": ["start"]},
                    "right": {"agent": "Branch", "needs": ["start"]},
                    "end": {
                        "agent": "Join",
                        "input": [
                            "${ steps.left.output }",
                            "${ steps.middle.output }",
                            "${ steps.right.output }",
                        ],
                    },
                },
            }
        )
        run = await system.run("fan")
    assert run["status"] == "COMPLETED"
    names = [f"{run['id']}/{name}/0" for name in ("left", "middle", "right")]
    assert join.calls[1].body["input"] == [{"data": {"from": name}} for name in names]


async def test_max_parallel_lets_no_more_steps_run_than_it_says(system: RunningSystem) -> None:
    barrier = BarrierAgent(2)
    async with ScriptedAgent(barrier) as agent:
        await system.register("Agent", agent.url, protocol="simple-a2a")
        steps: JsonObject = {f"step_{number}": {"agent": "Agent"} for number in range(6)}
        await system.save({"name": "narrow", "max_parallel": 2, "steps": steps})
        run = await system.run("narrow")
    assert run["status"] == "COMPLETED"
    assert barrier.most_present == 2
    assert len(agent.calls) == 6


WHEN = """
name: conditional
steps:
  score: {agent: Score}
  check:
    agent: Check
    when: steps.score.output.data.score < 0.8
  write:
    agent: Write
    needs: [check]
    input: {checked: "${ steps.check.output }", status: "${ steps.check.status }"}
"""


@pytest.mark.parametrize(
    ("score", "status", "checked"), [(0.5, "COMPLETED", {"text": "fine"}), (0.9, "SKIPPED", None)]
)
async def test_a_step_runs_only_when_its_condition_holds_and_skipped_it_still_satisfies_needs(
    system: RunningSystem, score: float, status: str, checked: Json
) -> None:
    async with (
        ScriptedAgent(simple_success({"score": score})) as scorer,
        ScriptedAgent(simple_success("fine")) as checker,
        ScriptedAgent(simple_success("written")) as writer,
    ):
        for name, agent in (("Score", scorer), ("Check", checker), ("Write", writer)):
            await system.register(name, agent.url, protocol="simple-a2a")
        await system.save(WHEN)
        run = await system.run("conditional")
    assert run["status"] == "COMPLETED"
    assert step_of(run, "check")["status"] == status
    assert step_of(run, "check")["output"] == checked
    assert len(checker.calls) == (1 if status == "COMPLETED" else 0)
    assert writer.calls[0].body["input"] == {"checked": checked, "status": status}


async def test_a_condition_that_is_no_boolean_fails_its_step_with_the_reason(system: RunningSystem) -> None:
    async with ScriptedAgent(simple_success("never")) as agent:
        await system.register("Agent", agent.url, protocol="simple-a2a")
        await system.save({"name": "odd", "steps": {"only": {"agent": "Agent", "when": "input.flag"}}})
        run = await system.run("odd", {"flag": "yes"})
    assert run["status"] == "FAILED"
    assert error_of(run)["code"] == "expression_failed"
    assert error_of(run)["fix"]
    assert not agent.calls


async def test_a_failed_step_ends_the_run_and_starts_nothing_after_it(system: RunningSystem) -> None:
    async with ScriptedAgent(simple_error("no paper")) as bad, ScriptedAgent(simple_success("x")) as later:
        await system.register("Bad", bad.url, protocol="simple-a2a")
        await system.register("Later", later.url, protocol="simple-a2a")
        await system.save(
            {
                "name": "stops",
                "steps": {"bad": {"agent": "Bad"}, "later": {"agent": "Later", "needs": ["bad"]}},
            }
        )
        run = await system.run("stops")
    assert run["status"] == "FAILED"
    assert error_of(run)["step"] == "bad"
    assert error_of(run)["message"] == "no paper"
    assert step_of(run, "later")["status"] == "CANCELLED"
    assert not later.calls


async def test_on_error_continue_goes_on_with_a_null_output(system: RunningSystem) -> None:
    async with ScriptedAgent(simple_error("no paper")) as bad, ScriptedAgent(simple_success("x")) as later:
        await system.register("Bad", bad.url, protocol="simple-a2a")
        await system.register("Later", later.url, protocol="simple-a2a")
        await system.save(
            {
                "name": "goes-on",
                "steps": {
                    "bad": {"agent": "Bad", "on_error": "continue"},
                    "later": {
                        "agent": "Later",
                        "input": {"output": "${ steps.bad.output }", "why": "${ steps.bad.error.message }"},
                    },
                },
            }
        )
        run = await system.run("goes-on")
    assert run["status"] == "COMPLETED"
    assert run["error"] is None
    assert step_of(run, "bad")["status"] == "FAILED"
    assert later.calls[0].body["input"] == {"output": None, "why": "no paper"}


GOTO = """
name: rescued
steps:
  risky: {agent: Risky, on_error: {goto: rescue}}
  rescue: {agent: Rescue, input: {text: "${ steps.risky.error.message }"}}
output: {risky: "${ steps.risky.status }", rescue: "${ steps.rescue.status }"}
"""


async def test_goto_runs_its_step_after_a_failure_and_skips_it_otherwise(system: RunningSystem) -> None:
    risky_then_fine = (jsonrpc_error(-32602, "too hot"), jsonrpc_task("fine"))
    async with ScriptedAgent(*risky_then_fine) as risky, ScriptedAgent(jsonrpc_task("saved")) as rescue:
        await system.register("Risky", risky.url, protocol="jsonrpc-2.0")
        await system.register("Rescue", rescue.url, protocol="jsonrpc-2.0")
        await system.save(GOTO)
        failed = await system.run("rescued")
        fine = await system.run("rescued")
    assert failed["status"] == "COMPLETED"
    assert failed["output"] == {"risky": "FAILED", "rescue": "COMPLETED"}
    assert rescue.calls[0].message["parts"] == [{"kind": "text", "text": "JSON-RPC Error -32602: too hot"}]
    assert fine["output"] == {"risky": "COMPLETED", "rescue": "SKIPPED"}
    assert len(rescue.calls) == 1


async def never(call: Call) -> Json:
    await asyncio.Event().wait()
    return None


async def test_a_run_that_passes_its_deadline_fails_and_breaks_off_its_calls(tmp_path: Path) -> None:
    clock = FakeClock()
    async with ScriptedAgent(never) as agent, running_system(tmp_path / "data", clock=clock) as system:
        await system.register("Agent", agent.url, protocol="simple-a2a")
        await system.save({"name": "late", "deadline": "5s", "steps": {"only": {"agent": "Agent"}}})
        run_id = await system.start("late")
        await agent.called()
        clock.advance(timedelta(seconds=6))
        run = await system.wait_for(run_id)
        await agent.caller_left()
    assert run["status"] == "FAILED"
    assert error_of(run)["code"] == "deadline_exceeded"
    assert step_of(run, "only")["status"] == "CANCELLED"


async def test_a_deadline_holds_for_a_run_that_waits_for_a_person(tmp_path: Path) -> None:
    clock = FakeClock()
    asking = jsonrpc_task("Which?", state="input-required")
    async with ScriptedAgent(asking) as agent, running_system(tmp_path / "data", clock=clock) as system:
        await system.register("Agent", agent.url, protocol="jsonrpc-2.0")
        await system.save({"name": "late", "deadline": "5s", "steps": {"only": {"agent": "Agent"}}})
        run_id = await system.start("late")
        await system.wait_for(run_id, {"WAITING"})
        clock.advance(timedelta(seconds=6))
        run = await system.wait_for(run_id)
        cancelled = await agent.called(2)
    assert run["status"] == "FAILED"
    assert error_of(run)["code"] == "deadline_exceeded"
    assert cancelled.method == "tasks/cancel"


async def test_a_steps_timeout_is_per_attempt_and_wins_over_the_agents(system: RunningSystem) -> None:
    async with ScriptedAgent(never) as agent:
        await system.register("Agent", agent.url, protocol="simple-a2a", timeout_ms=60_000)
        retry: JsonObject = {"max_attempts": 2, "backoff": "fixed", "first_delay": "10ms"}
        await system.save(
            {"name": "slow", "steps": {"only": {"agent": "Agent", "timeout": "100ms", "retry": retry}}}
        )
        run = await system.run("slow")
    assert run["status"] == "FAILED"
    assert error_of(run)["code"] == "agent_timeout"
    assert error_of(run)["message"] == "The agent did not answer within 0.1 s."
    assert step_of(run, "only")["attempts"] == 2


async def test_without_an_output_a_run_has_those_of_its_last_steps(system: RunningSystem) -> None:
    async with ScriptedAgent(lambda call: simple_success(str(call.id).split("/")[1])(call)) as agent:
        await system.register("Agent", agent.url, protocol="simple-a2a")
        one: JsonObject = {"a": {"agent": "Agent"}, "b": {"agent": "Agent", "needs": ["a"]}}
        await system.save({"name": "one-end", "steps": one})
        await system.save({"name": "two-ends", "steps": {**one, "c": {"agent": "Agent", "needs": ["a"]}}})
        assert (await system.run("one-end"))["output"] == {"text": "b"}
        assert (await system.run("two-ends"))["output"] == {"b": {"text": "b"}, "c": {"text": "c"}}


async def test_an_output_that_cannot_be_computed_fails_the_run_with_the_reason(system: RunningSystem) -> None:
    async with ScriptedAgent(simple_success({"a": 1})) as agent:
        await system.register("Agent", agent.url, protocol="simple-a2a")
        await system.save(
            {
                "name": "bad-end",
                "steps": {"only": {"agent": "Agent"}},
                "output": "${ steps.only.output.data.b }",
            }
        )
        run = await system.run("bad-end")
    assert run["status"] == "FAILED"
    assert error_of(run)["code"] == "output_failed"
    assert step_of(run, "only")["status"] == "COMPLETED"


async def test_pinned_dialects_and_one_that_a_card_tells_mix_in_one_run(system: RunningSystem) -> None:
    async with (
        ScriptedAgent(simple_success({"score": 7})) as simple,
        ScriptedAgent(jsonrpc_task('{"score": 8}')) as pinned,
        ScriptedAgent(jsonrpc_task("9")) as carded,
    ):
        carded.publish({"name": "Carded", "protocolVersion": "0.3.0", "url": carded.url})
        await system.register("Simple", simple.url, protocol="simple-a2a")
        await system.register("Pinned", pinned.url, protocol="jsonrpc-2.0")
        await system.register("Carded", carded.url)
        await system.save(
            {
                "name": "mix",
                "steps": {
                    "one": {"agent": "Simple"},
                    "two": {"agent": "Pinned", "input": "${ steps.one.output.data }"},
                    "three": {"agent": "Carded", "input": "${ steps.two.output.data }"},
                },
                "output": "${ steps.one.output.data.score + steps.two.output.data.score + steps.three.output.data }",
            }
        )
        run = await system.run("mix")
    assert run["output"] == 24
    protocols = [step_of(run, name)["protocol"] for name in ("one", "two", "three")]
    assert protocols == ["simple-a2a", "jsonrpc-2.0", "a2a-0.3"]
    assert pinned.calls[0].message["parts"] == [{"kind": "text", "text": '{"score":7}'}]


async def test_a_run_waits_only_when_nothing_else_in_it_goes_on(system: RunningSystem) -> None:
    opened = asyncio.Event()

    async def gate(call: Call) -> Json:
        await opened.wait()
        return simple_success("done")(call)

    async with (
        ScriptedAgent(jsonrpc_task("Which?", state="input-required")) as asks,
        ScriptedAgent(gate) as slow,
    ):
        await system.register("Asks", asks.url, protocol="jsonrpc-2.0")
        await system.register("Slow", slow.url, protocol="simple-a2a")
        await system.save({"name": "both", "steps": {"asks": {"agent": "Asks"}, "slow": {"agent": "Slow"}}})
        run_id = await system.start("both")
        await slow.called()
        await system.wait_for_step(run_id, "asks", {"WAITING"})
        meanwhile = await system.get(run_id)
        opened.set()
        waiting = await system.wait_for(run_id, {"WAITING"})
    assert meanwhile["status"] == "RUNNING"
    assert step_of(waiting, "slow")["status"] == "COMPLETED"


async def test_a_failed_branch_lets_calls_end_and_withdraws_open_questions(system: RunningSystem) -> None:
    opened = asyncio.Event()

    async def gate(call: Call) -> Json:
        await opened.wait()
        return simple_error("no")(call)

    async with (
        ScriptedAgent(jsonrpc_task("Which?", state="input-required")) as asks,
        ScriptedAgent(gate) as fails,
        ScriptedAgent(simple_success("never")) as later,
    ):
        await system.register("Asks", asks.url, protocol="jsonrpc-2.0")
        await system.register("Fails", fails.url, protocol="simple-a2a")
        await system.register("Later", later.url, protocol="simple-a2a")
        steps: JsonObject = {
            "asks": {"agent": "Asks"},
            "fails": {"agent": "Fails"},
            "later": {"agent": "Later", "needs": ["fails"]},
        }
        await system.save({"name": "both", "steps": steps})
        run_id = await system.start("both")
        await system.wait_for_step(run_id, "asks", {"WAITING"})
        opened.set()
        run = await system.wait_for(run_id)
        await asks.called_for("tasks/cancel")
    assert run["status"] == "FAILED"
    assert error_of(run)["step"] == "fails"
    assert [step_of(run, name)["status"] for name in steps] == ["CANCELLED", "FAILED", "CANCELLED"]
    assert not later.calls


async def test_a_run_stays_with_the_version_it_was_started_with(system: RunningSystem) -> None:
    opened = asyncio.Event()

    async def gate(call: Call) -> Json:
        await opened.wait()
        return simple_success("done")(call)

    async with ScriptedAgent(gate) as first, ScriptedAgent(simple_success("old")) as old:
        await system.register("First", first.url, protocol="simple-a2a")
        await system.register("Old", old.url, protocol="simple-a2a")
        steps: JsonObject = {"first": {"agent": "First"}}
        await system.save({"name": "moves", "steps": {**steps, "then": {"agent": "Old", "needs": ["first"]}}})
        run_id = await system.start("moves")
        await first.called()
        saved = await system.save({"name": "moves", "steps": steps})
        opened.set()
        run = await system.wait_for(run_id)
        newer = await system.run("moves")
        older = await system.call("POST", "/workflows/moves/execute?wait=60&version=1", {})
    assert saved["version"] == 2
    assert run["workflow"] == {"name": "moves", "version": 1}
    assert step_of(run, "then")["status"] == "COMPLETED"
    assert newer["workflow"] == {"name": "moves", "version": 2}
    assert older.json["workflow"] == {"name": "moves", "version": 1}
    assert len(old.calls) == 2
