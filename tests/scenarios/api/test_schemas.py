"""Saved JSON Schemas over REST, and workflows that refer to them."""

from __future__ import annotations

import pytest

from trunkline.jsontypes import Json, JsonObject
from trunkline.testing import RunningSystem, ScriptedAgent, simple_success
from trunkline.testing.system import error_of, objects_in

pytestmark = pytest.mark.anyio

SCORE: JsonObject = {"type": "object", "required": ["score"]}
GRADE: JsonObject = {"type": "object", "required": ["grade"]}


def reviewing(schema: str = "review") -> JsonObject:
    return {
        "name": "scored",
        "steps": {"s": {"agent": "Critic", "repair": 0, "output_schema": {"$ref": f"schemas/{schema}"}}},
    }


async def test_a_schema_is_saved_changed_and_deleted(system: RunningSystem) -> None:
    created = await system.call("PUT", "/schemas/review", SCORE)
    again = await system.call("PUT", "/schemas/review", SCORE)
    changed = await system.call("PUT", "/schemas/review", GRADE)
    assert [(answer.status, answer.json["version"]) for answer in (created, again, changed)] == [
        (201, 1), (200, 1), (200, 2),
    ]  # fmt: skip
    assert (await system.call("GET", "/schemas/review")).json["schema"] == GRADE
    (listed,) = await system.items("/schemas")
    assert (listed["name"], "schema" in listed) == ("review", False)
    assert (await system.call("DELETE", "/schemas/review")).status == 204
    for method in ("GET", "DELETE"):
        assert (await system.call(method, "/schemas/review")).status == 404


@pytest.mark.parametrize(
    ("name", "schema", "status", "words"),
    [
        ("a%20b", SCORE, 422, "is not a valid schema name"),
        ("review", {"type": "objekt"}, 422, "is not valid JSON Schema"),
        ("review", {"const": "x" * 70_000}, 422, "the limit is 65,536"),
        ("review", {"$ref": "https://example.com/schema"}, 422, "review"),
        ("review", [SCORE], 422, "object"),
    ],
)
async def test_what_is_no_schema_is_refused(
    system: RunningSystem, name: str, schema: Json, status: int, words: str
) -> None:
    refused = await system.call("PUT", f"/schemas/{name}", schema)
    assert refused.status == status
    assert words in refused.body.decode()


async def test_a_workflow_keeps_the_schema_with_which_it_was_saved(system: RunningSystem) -> None:
    await system.call("PUT", "/schemas/review", SCORE)
    async with ScriptedAgent(simple_success({"score": 1})) as agent:
        await system.register("Critic", agent.url, protocol="simple-a2a")
        await system.save(reviewing())
        await system.call("PUT", "/schemas/review", GRADE)
        before = await system.run("scored")
        await system.call("DELETE", "/schemas/review")
        deleted = await system.run("scored")
        await system.call("PUT", "/schemas/review", GRADE)
        saved = await system.save(reviewing())
        after = await system.run("scored")
    assert [run["status"] for run in (before, deleted, after)] == ["COMPLETED", "COMPLETED", "FAILED"]
    assert saved["version"] == 2
    assert error_of(after)["code"] == "output_invalid"


async def test_an_unknown_schema_is_an_error_with_its_place(system: RunningSystem) -> None:
    refused = await system.call(
        "POST", "/workflows", b"name: w\nsteps:\n  s: {agent: A, output_schema: {$ref: schemas/nothing}}\n"
    )
    (error,) = objects_in(refused.json["errors"])
    assert refused.status == 422
    assert (error["line"], error["path"]) == (3, "steps.s.output_schema.$ref")
    assert "trunkline schemas apply" in str(error["message"])
