"""Workflow definitions over REST."""

from __future__ import annotations

import pytest
from tests.resources import read_resource

from trunkline.api.resources.workflows import SavedWorkflow, WorkflowPage, WorkflowResource
from trunkline.jsontypes import JsonObject
from trunkline.testing import RunningSystem
from trunkline.testing.system import objects_in

pytestmark = pytest.mark.anyio

YAML = b"name: w\nsteps:\n  a: {agent: A}\n"
SAME: JsonObject = {"steps": {"a": {"agent": "A"}}, "name": "w"}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a", "application/yaml"),
        ("b", "text/yaml"),
        ("c", "application/x-yaml"),
        ("d", "text/plain"),
        ("e", ""),
    ],
)
async def test_yaml_is_taken_under_any_name(shared_system: RunningSystem, name: str, kind: str) -> None:
    text = YAML.replace(b"name: w", b"name: " + name.encode())
    answer = await shared_system.call("POST", "/workflows", text, {"Content-Type": kind} if kind else None)
    assert answer.status == 201
    saved = read_resource(SavedWorkflow, answer.body)
    assert (saved["name"], saved["version"]) == (name, 1)
    assert [warning.get("line") for warning in saved["warnings"]] == [3]
    assert answer.headers["Location"] == f"/api/v1/workflows/{name}/versions/1"


async def test_unchanged_content_is_the_version_that_exists(system: RunningSystem) -> None:
    first = await system.call("POST", "/workflows", YAML)
    again = await system.call("POST", "/workflows", SAME)
    other = await system.call("POST", "/workflows", {**SAME, "description": "another"})
    assert [answer.status for answer in (first, again, other)] == [201, 200, 201]
    assert [answer.json["version"] for answer in (first, again, other)] == [1, 1, 2]
    assert first.json["id"] == again.json["id"] == other.json["id"]


async def test_findings_have_their_place_in_the_text(shared_system: RunningSystem) -> None:
    answer = await shared_system.call("POST", "/workflows", b"name: w\nsteps:\n  a: {agnet: A}\n")
    assert answer.status == 422
    errors = answer.json["errors"]
    assert isinstance(errors, list)
    assert any(
        isinstance(error, dict)
        and (error["path"], error["line"], error["column"]) == ("steps.a.agnet", 3, 7)
        and "agent" in str(error["message"])
        for error in errors
    )


@pytest.mark.parametrize("body", [b"", b"a\tb:\n\t- c", b"[]", b"null", b"- a\n- b", b"\xff\xfe\x00"])
async def test_what_is_no_definition_is_refused(shared_system: RunningSystem, body: bytes) -> None:
    assert (await shared_system.call("POST", "/workflows", body)).status == 422


async def test_every_version_stays_readable(system: RunningSystem) -> None:
    saved = await system.save(YAML.decode())
    await system.save({**SAME, "description": "second"})
    latest = read_resource(WorkflowResource, (await system.call("GET", "/workflows/w")).body)
    by_id = read_resource(WorkflowResource, (await system.call("GET", f"/workflows/{saved['id']}")).body)
    first = read_resource(WorkflowResource, (await system.call("GET", "/workflows/w/versions/1")).body)
    assert latest == by_id
    assert (latest["version"], latest["definition"]["description"]) == (2, "second")
    assert (first["version"], first["source"], first["definition"]) == (1, YAML.decode(), SAME)
    assert (await system.call("GET", "/workflows/w/versions/3")).status == 404


async def test_a_list_says_what_the_workflows_are_made_of(system: RunningSystem) -> None:
    steps: JsonObject = {
        "b": {"agent": "B"},
        "a": {"agent": "A"},
        "c": {"agent": "A"},
        "d": {"workflow": "Below"},
    }
    await system.save({"name": "Above", "description": "For readers", "steps": steps})
    await system.save({**SAME, "name": "Below"})
    page = read_resource(WorkflowPage, (await system.call("GET", "/workflows")).body)
    above, below = page["items"]
    assert (above["description"], above["steps"]) == ("For readers", 4)
    assert (above["agents"], above["workflows"]) == (["A", "B"], ["Below"])
    assert (below["description"], below["steps"]) == (None, 1)
    found = read_resource(WorkflowPage, (await system.call("GET", "/workflows?q=LOW")).body)
    assert [workflow["name"] for workflow in found["items"]] == ["Below"]


async def test_a_list_has_the_last_runs_where_they_are_asked_for(system: RunningSystem) -> None:
    await system.save(SAME)
    runs = [(await system.call("POST", "/workflows/w/execute", {})).json["id"] for _ in range(3)]
    answer = (await system.call("GET", "/workflows?last_runs=2")).body
    (workflow,) = read_resource(WorkflowPage, answer)["items"]
    assert [run["id"] for run in workflow.get("last_runs", ())] == [runs[2], runs[1]]
    assert b"last_runs" not in (await system.call("GET", "/workflows")).body
    assert (await system.call("GET", "/workflows?last_runs=21")).status == 422


async def test_lists_are_paged(system: RunningSystem) -> None:
    for name in ("b", "a", "c"):
        await system.save({**SAME, "name": name})
    await system.save({**SAME, "name": "a", "description": "second"})
    page = read_resource(WorkflowPage, (await system.call("GET", "/workflows?limit=2")).body)
    assert [(workflow["name"], workflow["version"]) for workflow in page["items"]] == [("a", 2), ("b", 1)]
    rest = await system.call("GET", f"/workflows?limit=2&cursor={page['next_cursor']}")
    last = read_resource(WorkflowPage, rest.body)
    assert [workflow["name"] for workflow in last["items"]] == ["c"]
    assert last["next_cursor"] is None

    versions = read_resource(WorkflowPage, (await system.call("GET", "/workflows/a/versions?limit=1")).body)
    assert [workflow["version"] for workflow in versions["items"]] == [2]
    older = await system.call("GET", f"/workflows/a/versions?limit=1&cursor={versions['next_cursor']}")
    assert [workflow["version"] for workflow in read_resource(WorkflowPage, older.body)["items"]] == [1]


async def test_expressions_are_checked_with_the_outputs_of_child_workflows(system: RunningSystem) -> None:
    await system.save({"name": "below", "steps": {"a": {"set": {"total": 1}}}})
    text = """name: above
input: {type: object, properties: {city: {type: string}}}
steps:
  c: {workflow: below, input: "${ input.city }"}
  d: {set: {x: "${ steps.c.output.totl }"}}
"""
    refused = await system.call("POST", "/workflows", text.encode(), {"Content-Type": "application/yaml"})
    (error,) = objects_in(refused.json["errors"])
    assert (refused.status, error["line"], error["column"]) == (422, 5, 20)
    assert error["message"] == "steps.c.output cannot have 'totl'; it has total; did you mean 'total'?"
    right = text.replace("totl", "total").encode()
    saved = await system.call("POST", "/workflows", right, {"Content-Type": "application/yaml"})
    (warning,) = objects_in(saved.json["warnings"])
    assert (saved.status, warning["path"], warning["line"]) == (201, "steps.c.input", 4)
    assert warning["message"] == "input.city may be missing; test it first: has(input.city)"
