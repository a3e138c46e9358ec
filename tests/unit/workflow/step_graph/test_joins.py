"""`join`: what a definition can contain, and which steps belong to its branches."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from trunkline.errors import Invalid
from trunkline.workflow import (
    CompiledWorkflow,
    Join,
    canonical_form,
    compile_workflow,
    definition_from_canonical,
    load_workflow,
)

THREE = "a: {agent: A}\nb: {agent: B}\nc: {agent: C}\n"


def text_of(steps: str) -> str:
    return "name: flow\nsteps:\n" + indent(dedent(steps), "  ")


def workflow(steps: str) -> CompiledWorkflow:
    return compile_workflow(load_workflow(text_of(steps)).definition)


@pytest.mark.parametrize(
    ("written", "meant", "quorum"),
    [
        ("any", Join("any"), 1),
        ("majority", Join("majority"), 2),
        ("{at_least: 3}", Join(at_least=3), 3),
        ("{policy: any, cancel_rest: false}", Join("any", None, False), 1),
        ("{at_least: 2, cancel_rest: false}", Join("all", 2, False), 2),
    ],
)
def test_a_join_is_read_and_kept_as_it_was_written(written: str, meant: Join, quorum: int) -> None:
    loaded = load_workflow(text_of(f"{THREE}last: {{agent: Z, needs: [a, b, c], join: {written}}}"))
    assert loaded.definition.steps["last"].join == meant
    assert definition_from_canonical(loaded.canonical) == loaded.definition
    join = compile_workflow(loaded.definition).steps["last"].join
    assert join is not None
    assert (join.branches, join.quorum) == ({"a", "b", "c"}, quorum)


def test_waiting_for_all_is_the_default_and_not_written_down() -> None:
    loaded = load_workflow(text_of(f"{THREE}last: {{agent: Z, needs: [a, b], join: all, deadline: 1m}}"))
    assert b"join" not in canonical_form(loaded.definition)
    assert b'"deadline":"1m"' in loaded.canonical
    assert compile_workflow(loaded.definition).steps["last"].join is None


@pytest.mark.parametrize(
    ("step", "path", "message"),
    [
        ("{agent: Z, needs: [a, b], join: most}", "steps.last.join", "must be all, any or majority"),
        ("{agent: Z, needs: [a, b], join: {at_least: 0}}", "steps.last.join.at_least", "from 1 to"),
        ("{agent: Z, needs: [a, b], join: {at_least: 3}}", "steps.last.join", "lists only 2 steps"),
        ("{agent: Z, needs: [a, a], join: any}", "steps.last.join", "at least two steps"),
        ("{agent: Z, join: any}", "steps.last.join", "at least two steps"),
        ("{agent: Z, needs: [a, b], join: {}}", "steps.last.join", "either 'policy' or 'at_least'"),
        (
            "{agent: Z, needs: [a, b], join: {policy: any, at_least: 1}}",
            "steps.last.join",
            "either 'policy' or 'at_least'",
        ),
        ("{agent: Z, needs: [a, b], join: {policy: all, cancel_rest: false}}", "steps.last.join", "has no effect"),
        ("{agent: Z, needs: [a, b], join: {at_lest: 2, policy: any}}", "steps.last.join.at_lest", "at_least"),
        ("{agent: Z, needs: [a, x], join: any}", "steps.last.needs[1]", "unknown step 'x'"),
        ("{agent: Z, needs: [a, bad], join: any}", "steps.last.join", "cannot be joined as well"),
    ],
)  # fmt: skip
def test_a_join_that_cannot_be_is_refused_where_it_stands(step: str, path: str, message: str) -> None:
    with pytest.raises(Invalid) as caught:
        load_workflow(text_of(f"{THREE}bad: {{agent: A, on_error: {{goto: last}}}}\nlast: {step}"))
    findings = [finding for finding in caught.value.findings if "bad.on_error" not in (finding.path or "")]
    assert [finding.path for finding in findings if message in finding.message] == [path]
    assert all(finding.line == 7 for finding in findings)


def test_a_branch_shelters_what_leads_to_nothing_else() -> None:
    steps = workflow("""\
        top: {agent: T}
        a1: {agent: A, needs: [top]}
        a2: {agent: A, needs: [a1]}
        b: {agent: B, needs: [top]}
        c: {agent: C, needs: [top]}
        inner: {agent: I, needs: [b, c], join: any}
        last: {agent: Z, needs: [a2, inner], join: any}
        other: {agent: Y, needs: [c]}
        """).steps
    assert [name for name, step in steps.items() if step.inside_join] == ["a1", "a2", "b", "inner"]
    assert [name for name, step in steps.items() if step.handles_failure] == ["a1", "a2", "b", "inner"]
