"""Workflows of litecone, imported and run: they give what they gave there."""

from __future__ import annotations

import asyncio

import pytest
from tests.scenarios.litecone import (
    AT_ONCE,
    BRANCHED,
    DECIDED,
    IN_A_ROW,
    IN_PARALLEL,
    ONE_BY_ONE,
    READS_A_LATE_BRANCH,
    READS_BRANCHES_LATER,
    SEVERAL_STEPS_EACH,
    AgentRefused,
    Answers,
    agents,
    forked,
)

from trunkline.importing.litecone import import_files
from trunkline.jsontypes import Json, JsonObject
from trunkline.testing import RunningSystem
from trunkline.testing.system import error_of, step_of

# The language is the same on every backend.
pytestmark = [pytest.mark.anyio, pytest.mark.embedded_only]


def echo(given: JsonObject) -> Json:
    return given


def weigh(given: JsonObject) -> Json:
    if given["item"] == "air":
        raise AgentRefused("It weighs nothing.")
    return {**given, "weight": len(str(given["item"]))}


def judge(given: JsonObject) -> Json:
    words = str(given["text"]).split()
    return {"score": len(words) / 10, "words": [*words]}


def price(given: JsonObject) -> Json:
    return {"price": len(str(given["of"])) * int(str(given["factor"]))}


ANSWERS: Answers = {
    "Echo": echo,
    "Weigh": weigh,
    "Judge": judge,
    "Price": price,
    "Brewer": lambda given: {"cup": f"{given['grams']} g of {given['leaves']}"},
    "Taster": lambda given: {"said": f"{given['note']}: {given['cup']} is fine."},
    "Fetch": lambda given: {"items": [f"{given['source']}-{number}" for number in range(5)]},
}


async def run_imported(system: RunningSystem, source: JsonObject, run_input: Json) -> JsonObject:
    imported = import_files([("source.json", source)])
    assert imported.lost == 0, imported.remarks
    for workflow in imported.workflows:
        await system.save(workflow.definition)
    return await system.run(str(source["name"]), run_input)


async def output_of(system: RunningSystem, source: JsonObject, run_input: Json) -> Json:
    run = await run_imported(system, source, run_input)
    assert run["status"] == "COMPLETED", run
    output = run["output"]
    return output["data"] if isinstance(output, dict) and "data" in output else output


async def test_imported_workflows_give_what_they_gave(system: RunningSystem) -> None:
    async with agents(system, ANSWERS):
        brewed = await output_of(system, IN_A_ROW, {"leaves": "Assam", "amount": {"grams": 4}})
        prices = await output_of(system, IN_PARALLEL, {"ware": "tea"})
        good = await output_of(system, DECIDED, {"text": "a nice cup of tea is all one needs"})
        bad = await output_of(system, DECIDED, {"text": "tea"})
        in_order = await output_of(system, ONE_BY_ONE, {"source": "box"})
        at_once = await output_of(system, AT_ONCE, {"items": ["iron", "air", "gold"]})
        washed = await output_of(system, SEVERAL_STEPS_EACH, {"items": ["iron", "tin"], "unit": "g"})
    assert brewed == {"said": "A cup of 4 g of Assam, please: 4 g of Assam is fine."}
    assert prices == {
        "a": 3, "all": {"shop-a": {"price": 3}, "shop-b": {"price": 6}, "shop-c": {"price": 9}}, "c": 9,
    }  # fmt: skip
    assert good == {"was": "then", "by": "good", "said": {"verdict": "good", "score": 0.9}}
    assert bad == {"was": "else", "by": "bad", "said": {"verdict": "bad"}}
    assert in_order == {
        "weights": [
            {"item": f"box-{n}", "place": n, "of": 3, "first": n == 0, "weight": 5} for n in range(3)
        ],
        "count": 3,
    }  # fmt: skip
    assert at_once == {
        "weights": [
            {"item": "iron", "last": False, "weight": 4}, None, {"item": "gold", "last": True, "weight": 4},
        ],
        "failed": 1,
    }  # fmt: skip
    assert washed == {
        "weights": [{"item": "iron", "unit": "g", "weight": 4}, {"item": "tin", "unit": "g", "weight": 3}]
    }


@pytest.mark.parametrize(
    ("kind", "again", "ran"),
    [
        ("incomplete", "", {"intake", "ask"}),
        ("standard", "", {"intake", "health", "money", "premium", "welcome"}),
        ("declined", "", {"intake", "health", "money", "decline"}),
        ("odd", "fine", {"intake", "health", "money", "review", "premium", "welcome"}),
        ("odd", "declined", {"intake", "health", "money", "review", "decline"}),
    ],
)
async def test_decisions_in_decisions_lead_where_they_led(
    system: RunningSystem, kind: str, again: str, ran: set[str]
) -> None:
    async with agents(system, {"Echo": echo}):
        run = await run_imported(system, BRANCHED, {"kind": kind, "again": again})
    assert isinstance(run["steps"], list)
    completed = {
        str(step["name"]) for step in run["steps"] if isinstance(step, dict) and step["status"] == "COMPLETED"
    }
    assert (run["status"], completed) == ("COMPLETED", ran)
    if "welcome" in ran:
        assert step_of(run, "welcome")["output"] == {"data": {"welcome": "health and money"}}


def ways(*failing: str) -> Answers:
    def way(name: str, given: JsonObject) -> Json:
        if name in failing:
            raise AgentRefused(f"No way {name}.")
        return {"went": name, "way": given["way"]}

    return {
        "Echo": echo,
        "North": lambda given: way("north", given),
        "South": lambda given: way("south", given),
        "West": lambda given: way("west", given),
    }


@pytest.mark.parametrize(
    ("policy", "more", "failing"),
    [
        ("all", {}, ()),
        ("any", {}, ("south", "west")),
        ("majority", {}, ("west",)),
        ("n_of_m", {"n_required": 2}, ("north",)),
    ],
)
async def test_a_fork_gives_the_branches_that_its_policy_needs(
    system: RunningSystem, policy: str, more: JsonObject, failing: tuple[str, ...]
) -> None:
    async with agents(system, ways(*failing)):
        output = await output_of(system, forked(policy, **more), {"way": "out"})
    assert output == {
        "all": {
            name: None if name in failing else {"went": name, "way": "out"}
            for name in ("north", "south", "west")
        }
    }


@pytest.mark.parametrize(
    ("policy", "more", "failing", "code"),
    [
        ("all", {}, ("south",), "agent_reported_error"),
        ("any", {}, ("north", "south", "west"), "join_failed"),
        ("majority", {}, ("north", "west"), "join_failed"),
        ("n_of_m", {"n_required": 3}, ("west",), "join_failed"),
    ],
)
async def test_a_fork_whose_policy_cannot_be_met_fails_the_run(
    system: RunningSystem, policy: str, more: JsonObject, failing: tuple[str, ...], code: str
) -> None:
    async with agents(system, ways(*failing)):
        run = await run_imported(system, forked(policy, **more), {"way": "out"})
    assert (run["status"], error_of(run)["code"]) == ("FAILED", code)


@pytest.mark.parametrize("fails", [False, True])
async def test_what_comes_after_a_fork_reads_null_for_a_branch_that_is_late(
    system: RunningSystem, *, fails: bool
) -> None:
    went_on = asyncio.Event()

    async def late(_given: JsonObject) -> Json:
        await went_on.wait()
        if fails:
            raise AgentRefused("Too late.")
        return {"word": "late", "n": 1}

    def following(given: JsonObject) -> Json:
        went_on.set()
        return given

    async with agents(system, {"Echo": echo, "Late": late, "Next": following}):
        run = await run_imported(system, READS_A_LATE_BRANCH, {})
    assert (run["status"], step_of(run, "heard")["status"]) == ("COMPLETED", "SKIPPED"), run
    assert step_of(run, "late")["status"] == ("FAILED" if fails else "COMPLETED")
    assert step_of(run, "unheard")["output"] == {
        "data": {
            "one": None, "two": None, "all": {"slow": None, "quick": {"word": "soon"}},
            "line": "I heard soon and null",
        },
    }  # fmt: skip


async def test_a_branch_that_is_not_needed_may_fail_though_later_steps_read_it(system: RunningSystem) -> None:
    async with agents(system, ways("north", "west")):
        output = await output_of(system, READS_BRANCHES_LATER, {"way": "out"})
    assert output == {
        "north": None, "within": "out", "south": "south",
        "all": {"north": None, "south": {"went": "south", "way": "out"}, "west": None},
    }  # fmt: skip


async def test_what_was_not_carried_over_fails_the_run_that_comes_there(system: RunningSystem) -> None:
    source: JsonObject = {
        "name": "odd",
        "start_step": "c",
        "steps": {
            "c": {"type": "conditional", "condition": {"expression": "1 + 1"}, "if_true_step": "a"},
            "a": {"agent_name": "Echo", "input_mapping": {}},
        },
    }
    imported = import_files([("odd.json", source)])
    assert imported.lost == 1
    async with agents(system, {"Echo": echo}) as agent:
        await system.save(imported.workflows[0].definition)
        run = await system.run("odd", {})
    assert (run["status"], error_of(run)["code"]) == ("FAILED", "expression_failed")
    assert "not carried over: the condition of c" in str(error_of(run)["message"])
    assert agent.calls == []
