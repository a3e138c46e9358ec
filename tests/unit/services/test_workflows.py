"""Workflows as immutable versions, over a real store."""

from __future__ import annotations

import asyncio

import pytest

from trunkline.errors import Invalid, NotFound
from trunkline.services.agents.registry import AgentRegistry, AgentSpec
from trunkline.services.workflows import Workflows
from trunkline.stores.base import Store
from trunkline.workflow import CompiledWorkflow

pytestmark = pytest.mark.anyio

ONE = b"name: greet\nsteps:\n  hello:\n    agent: Greeter\n"
SAME = b'{"name": "greet", "steps": {"hello": {"agent": "Greeter"}}}'
OTHER = b"name: greet\nsteps:\n  hello:\n    agent: Greeter\n    timeout: 5s\n"


async def test_the_first_save_is_version_one(workflows: Workflows) -> None:
    saved = await workflows.save(ONE, "greet.yaml")
    assert saved.created
    assert (saved.version.name, saved.version.version, saved.version.source) == ("greet", 1, ONE)
    assert await workflows.get("greet") == saved.version
    assert await workflows.get(saved.version.workflow_id, 1) == saved.version


async def test_unchanged_content_gives_the_version_that_exists(workflows: Workflows) -> None:
    first = await workflows.save(ONE)
    again = await workflows.save(SAME)
    assert not again.created
    assert again.version == first.version


async def test_changed_content_is_the_next_version_and_the_old_one_stays(workflows: Workflows) -> None:
    first = (await workflows.save(ONE)).version
    second = (await workflows.save(OTHER)).version
    assert (second.workflow_id, second.version) == (first.workflow_id, 2)
    assert await workflows.get("greet") == second
    assert await workflows.get("greet", 1) == first
    # Going back is a change as well.
    assert (await workflows.save(ONE)).version.version == 3
    assert [each.version for each in await workflows.versions("greet", limit=10)] == [3, 2, 1]
    assert [each.version for each in await workflows.versions("greet", limit=10, before=2)] == [1]


async def test_saves_at_the_same_time_make_one_version(workflows: Workflows) -> None:
    saves = await asyncio.gather(*(workflows.save(ONE) for _ in range(5)))
    assert sum(saved.created for saved in saves) == 1
    assert {saved.version.version for saved in saves} == {1}


async def test_an_unknown_agent_is_a_warning_with_its_place(
    workflows: Workflows, registry: AgentRegistry
) -> None:
    (warning,) = (await workflows.save(ONE)).warnings
    assert "Greeter" in warning.message
    assert warning.line == 4

    await registry.create(AgentSpec(name="Greeter", url="http://greeter"))
    assert list((await workflows.save(OTHER)).warnings) == []


async def test_an_invalid_definition_is_refused_and_nothing_is_saved(workflows: Workflows) -> None:
    with pytest.raises(Invalid) as caught:
        await workflows.save(b"name: greet\nsteps:\n  hello:\n    agnet: Greeter\n    needs: [nobody]\n")
    assert len(caught.value.findings) >= 2
    with pytest.raises(NotFound):
        await workflows.get("greet")


async def test_what_does_not_exist_is_not_found(workflows: Workflows) -> None:
    await workflows.save(ONE)
    for call in (workflows.get("x"), workflows.get("greet", 2), workflows.versions("x", limit=1)):
        with pytest.raises(NotFound, match="There is no workflow"):
            await call
    with pytest.raises(NotFound):
        await workflows.compiled("x", 1)


async def test_workflows_are_listed_by_name(workflows: Workflows) -> None:
    for name in (b"b", b"a"):
        await workflows.save(ONE.replace(b"greet", name))
    assert [each.name for each in await workflows.list(limit=10)] == ["a", "b"]
    assert [each.name for each in await workflows.list(limit=10, after="a")] == ["b"]


async def test_a_version_is_compiled_once_for_all(workflows: Workflows) -> None:
    first = (await workflows.save(ONE)).version
    second = (await workflows.save(OTHER)).version
    compiled = await asyncio.gather(*(workflows.compiled(first.workflow_id, 1) for _ in range(5)))
    assert list(compiled[0].steps) == ["hello"]
    assert all(each is compiled[0] for each in compiled)
    assert await workflows.compiled(second.workflow_id, 2) is not compiled[0]


def calling(name: str, *children: str) -> bytes:
    """A workflow that begins these; `b@1` is version 1 of b."""
    steps = [
        f"  s{number}: {{workflow: {child.partition('@')[0]}, version: {child.partition('@')[2]}}}"
        if "@" in child
        else f"  s{number}: {{workflow: {child}}}"
        for number, child in enumerate(children)
    ]
    return "\n".join([f"name: {name}", "steps:", *steps, "  own: {agent: Greeter}"]).encode()


async def test_a_circle_of_workflows_is_refused_and_named(workflows: Workflows) -> None:
    await workflows.save(calling("c"))
    await workflows.save(calling("b", "c"))
    await workflows.save(calling("a", "b"))
    with pytest.raises(Invalid) as caught:
        await workflows.save(calling("c", "x", "a"))
    (finding,) = caught.value.findings
    assert (finding.path, finding.line) == ("steps.s1.workflow", 4)
    assert "a workflow cannot start itself: c -> a -> b -> c" in finding.message


async def test_a_version_that_stays_as_it_is_makes_no_circle(workflows: Workflows) -> None:
    await workflows.save(calling("b"))
    await workflows.save(calling("a", "b@1"))
    assert (await workflows.save(calling("b", "a"))).version.version == 2
    # The next version of b could be itself.
    with pytest.raises(Invalid, match="cannot start itself: b -> b"):
        await workflows.save(calling("b", "b@3"))


async def test_a_workflow_that_is_not_saved_yet_is_a_warning(workflows: Workflows) -> None:
    warnings = (await workflows.save(calling("a", "b", "c@2"))).warnings
    assert [warning.path for warning in warnings] == [
        "steps.s0.workflow", "steps.s1.workflow", "steps.own.agent",
    ]  # fmt: skip
    await workflows.save(calling("b"))
    assert len((await workflows.save(calling("a", "b"))).warnings) == 1


async def test_compiled_workflows_take_a_bounded_amount_of_memory(store: Store) -> None:
    workflows = Workflows(store, max_compiled_steps=3)
    saved = [
        (await workflows.save(b"name: %s\nsteps:\n  a: {agent: A}\n  b: {agent: A}\n" % name)).version
        for name in (b"one", b"two")
    ]

    async def compiled(number: int) -> CompiledWorkflow:
        return await workflows.compiled(saved[number].workflow_id, saved[number].version)

    first, second = await compiled(0), await compiled(1)
    # The last one is kept; there is no place for the one before it.
    assert await compiled(1) is second
    assert await compiled(0) is not first
    assert await compiled(1) is not second
