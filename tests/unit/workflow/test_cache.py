"""The key `cache` of a step: what is accepted, and what is said of everything else."""

from __future__ import annotations

import pytest

from trunkline.errors import Invalid
from trunkline.workflow import (
    Cache,
    canonical_form,
    compile_workflow,
    definition_from_canonical,
    load_workflow,
)


def step_with(cache: str, step: str = "agent: A") -> str:
    return f"name: w\nsteps:\n  first: {{agent: A}}\n  a: {{{step}, cache: {cache}}}\n"


@pytest.mark.parametrize(
    ("cache", "expected"),
    [
        ('{key: "${ input.q }"}', Cache("${ input.q }")),
        ("{key: [1, x], ttl: 5m, scope: agent}", Cache([1, "x"], "5m", "agent")),
        ("{key: fixed, scope: global}", Cache("fixed", scope="global")),
    ],
)
def test_a_cache_is_read_and_stored(cache: str, expected: Cache) -> None:
    definition = load_workflow(step_with(cache)).definition
    assert definition.steps["a"].cache == expected
    assert definition_from_canonical(canonical_form(definition)) == definition


def test_a_step_waits_for_what_its_key_reads() -> None:
    workflow = compile_workflow(load_workflow(step_with('{key: "${ steps.first.output }"}')).definition)
    assert workflow.steps["a"].needs == ("first",)


@pytest.mark.parametrize(
    ("cache", "step", "message"),
    [
        ("{ttl: 1h}", "agent: A", "'key' is missing"),
        ('{key: ""}', "agent: A", "'key' must be a value with expressions"),
        ("{key: x, ttl: 0s}", "agent: A", "'ttl' must be greater than zero"),
        ("{key: x, ttl: 5}", "agent: A", "'ttl' must be a duration"),
        ("{key: x, scope: run}", "agent: A", "'scope' must be workflow, agent or global"),
        ("{key: {$secret: s}}", "agent: A", "secret"),
        ("{key: x, scope: agent}", "skill: s", "needs a step whose 'agent' is a name"),
        ("{key: x, scope: agent}", "workflow: v", "needs a step whose 'agent' is a name"),
        ("{key: x}", "sleep: 1s", "'cache' applies only to a step that calls an agent"),
        ('{key: "${ steps.none.output }"}', "agent: A", "none"),
        ("yes", "agent: A", "'cache' must be a mapping"),
    ],
)
def test_what_does_not_fit_is_reported(cache: str, step: str, message: str) -> None:
    with pytest.raises(Invalid) as refused:
        load_workflow(step_with(cache, step))
    assert any(message in finding.message for finding in refused.value.findings), refused.value.findings


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("agent: A, compensate: {agent: A, cache: {key: x}}", "'cache' is not possible in a compensation"),
        (
            "agent: A, compensate: {steps: {b: {agent: A, cache: {key: x}}}}",
            "'cache' is not possible in a compensation",
        ),
        ("agent: A, cache: {key: x}, compensate: {agent: A}", "a step with 'cache' cannot have 'compensate'"),
    ],
)
def test_what_is_undone_or_undoes_is_not_reused(step: str, message: str) -> None:
    with pytest.raises(Invalid) as refused:
        load_workflow(f"name: w\nsteps:\n  a: {{{step}}}\n")
    assert [finding.message for finding in refused.value.findings if message in finding.message]
    assert len(refused.value.findings) == 1, refused.value.findings
