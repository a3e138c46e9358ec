"""A workflow's graph, and the check of a definition that an editor asks for, over REST."""

from __future__ import annotations

import pytest
from tests.resources import read_resource

from trunkline.api.resources.workflows import WorkflowGraph, WorkflowValidation
from trunkline.jsontypes import JsonObject
from trunkline.testing import RunningSystem
from trunkline.workflow import workflow_json_schema

pytestmark = pytest.mark.anyio

NEWS = """
name: news
steps:
  research:
    agent: Researcher
    on_error: {goto: apologize}
  check:
    workflow: checking
    version: 3
    when: steps.research.output.data.score < 0.8
  figures:
    agent: Statistician
    for_each: {items: "${ input.figures }", mode: sequential}
  write:
    agent: Writer
    needs: [research, check, figures]
    join: {at_least: 2}
    input: "${ steps.research.output.text }"
  apologize:
    agent: Writer
    needs: [figures]
"""


async def graph_of(system: RunningSystem, path: str) -> WorkflowGraph:
    answer = await system.call("GET", path)
    assert answer.status == 200, answer.body
    return read_resource(WorkflowGraph, answer.body)


async def validated(system: RunningSystem, text: str) -> WorkflowValidation:
    answer = await system.call("POST", "/workflow-validation", text.encode())
    assert answer.status == 200, answer.body
    return read_resource(WorkflowValidation, answer.body)


async def test_every_edge_says_why_it_is_there(system: RunningSystem) -> None:
    await system.save(NEWS)
    graph = await graph_of(system, "/workflows/news/graph")
    assert (graph["workflow"], graph["version"]) == ("news", 1)
    assert [(edge["from"], edge["to"], edge["why"]) for edge in graph["edges"]] == [
        ("research", "check", "reads"),
        # Written and read: what is written counts.
        ("research", "write", "needs"),
        ("check", "write", "needs"),
        ("figures", "write", "needs"),
        ("figures", "apologize", "needs"),
        ("research", "apologize", "on_error"),
    ]


async def test_the_steps_come_with_what_a_reader_wants_to_see_of_them(system: RunningSystem) -> None:
    await system.save(NEWS)
    steps = {step["name"]: step for step in (await graph_of(system, "/workflows/news/graph"))["steps"]}
    assert [*steps] == ["research", "check", "figures", "write", "apologize"]
    assert (steps["research"]["kind"], steps["research"]["agent"]) == ("agent", "Researcher")
    check = steps["check"]
    assert (check["kind"], check["agent"], check["workflow"], check["version"]) == (
        "workflow",
        None,
        "checking",
        3,
    )
    assert check["when"] == "steps.research.output.data.score < 0.8"
    each = steps["figures"]["for_each"]
    assert each is not None
    assert (each["items"], each["mode"], each["at_once"]) == ("${ input.figures }", "sequential", 1)
    join = steps["write"]["join"]
    assert join is not None
    assert (join["quorum"], join["of"], join["cancel_rest"]) == (2, ["check", "figures", "research"], True)


async def test_every_version_has_its_own_graph(system: RunningSystem) -> None:
    await system.save("name: w\nsteps:\n  a: {agent: A}\n")
    await system.save("name: w\nsteps:\n  a: {agent: A}\n  b: {agent: B}\n")
    assert len((await graph_of(system, "/workflows/w/graph"))["steps"]) == 2
    assert len((await graph_of(system, "/workflows/w/graph?version=1"))["steps"]) == 1
    assert (await system.call("GET", "/workflows/w/graph?version=3")).status == 404
    assert (await system.call("GET", "/workflows/w/graph?version=0")).status == 422


async def test_a_definition_is_checked_and_not_saved(system: RunningSystem) -> None:
    checked = await validated(system, NEWS)
    assert (checked["valid"], checked["name"], checked["errors"]) == (True, "news", [])
    assert checked["graph"] is not None
    assert len(checked["graph"]["edges"]) == 6
    # Neither its agents nor the workflow are there yet.
    places = [
        (warning["path"], warning.get("line"), warning.get("column")) for warning in checked["warnings"]
    ]
    assert places[:2] == [
        ("steps.research.agent", 5, 12),
        ("steps.check.workflow", 8, 15),
    ]
    assert (await system.call("GET", "/workflows/news")).status == 404


async def test_what_is_wrong_with_a_definition_is_an_answer_and_has_its_place(system: RunningSystem) -> None:
    checked = await validated(system, "name: w\nsteps:\n  a: {agnet: A}\n  b: {agent: B, needs: [c]}\n")
    assert (checked["valid"], checked["name"], checked["graph"]) == (False, None, None)
    assert [(error["path"], error.get("line"), error.get("column")) for error in checked["errors"]] == [
        ("steps.a", 3, 6),
        ("steps.a.agnet", 3, 7),
        ("steps.b.needs[0]", 4, 25),
    ]
    unreadable = await validated(system, "name: [w\nsteps: }")
    assert [error.get("line") for error in unreadable["errors"]] == [2]


async def test_json_that_is_none_is_refused_as_it_is_by_saving(system: RunningSystem) -> None:
    answer = await system.call("POST", "/workflow-validation", b"{", {"Content-Type": "application/json"})
    assert answer.status == 400


async def test_a_text_that_is_too_long_is_not_checked(system: RunningSystem) -> None:
    answer = await system.call("POST", "/workflow-validation", b"#" * (4 * 1024 * 1024 + 1))
    assert answer.status == 413


async def test_the_language_is_published_and_takes_no_name_away(system: RunningSystem) -> None:
    schema = await system.call("GET", "/workflow-schema")
    assert schema.json == workflow_json_schema()
    definition: JsonObject = {"name": "schema", "steps": {"a": {"agent": "A"}}}
    await system.save(definition)
    assert (await system.call("GET", "/workflows/schema")).json["definition"] == definition
