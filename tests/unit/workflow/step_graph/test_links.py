"""How steps wait for one another: what is written, what is read, and where a failure leads."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.errors import Finding, Invalid
from trunkline.workflow import CompiledWorkflow, compile_workflow, load_workflow
from trunkline.workflow.step_graph.cycles import cyclic_groups


def workflow(text: str) -> CompiledWorkflow:
    return compile_workflow(load_workflow("name: flow\nsteps:\n" + indent(dedent(text), "  ")).definition)


def the_finding_in(text: str) -> Finding:
    with pytest.raises(Invalid) as caught:
        load_workflow("name: flow\nsteps:\n" + indent(dedent(text), "  "))
    (finding,) = caught.value.findings
    return finding


def test_what_a_step_reads_is_added_to_what_it_needs() -> None:
    steps = workflow("""\
         a: {agent: A}
         b: {agent: B, input: "${ steps.a.output.text }"}
         c: {agent: C, needs: [b], when: steps.a.output.ok, input: {x: ["${ steps.b.output }"]}}
        """).steps
    assert {name: step.needs for name, step in steps.items()} == {"a": (), "b": ("a",), "c": ("b", "a")}
    assert {name: step.dependents for name, step in steps.items()} == {"a": ("b", "c"), "b": ("c",), "c": ()}
    assert [step.index for step in steps.values()] == [0, 1, 2]


def test_steps_may_be_written_in_any_order() -> None:
    steps = workflow("""\
         last: {agent: A, needs: [first, first]}
         first: {agent: B}
        """).steps
    assert list(steps) == ["last", "first"]
    assert steps["last"].needs == ("first",)


def test_the_target_of_a_goto_waits_for_the_steps_it_catches() -> None:
    steps = workflow("""\
         a: {agent: A, on_error: {goto: rescue}}
         b: {agent: B, needs: [a], on_error: {goto: rescue}}
         rescue: {agent: R, input: {why: "${ steps.a.error }"}}
        """).steps
    assert steps["rescue"].catches == ("a", "b")
    assert steps["rescue"].needs == ("a", "b")
    assert steps["a"].dependents == ("b", "rescue")
    assert steps["a"].catches == ()


def test_a_circle_of_needs_is_shown() -> None:
    finding = the_finding_in("""\
         a: {agent: A}
         b: {agent: B, needs: [a, d]}
         c: {agent: C, needs: [b]}
         d: {agent: D, needs: [c]}
        """)
    assert "in a cycle: b -> d -> c -> b" in finding.message
    assert (finding.path, finding.line, finding.column) == ("steps.b.needs[1]", 4, 28)


def test_two_circles_are_two_findings() -> None:
    with pytest.raises(Invalid) as caught:
        load_workflow("""\
name: flow
steps:
  a: {agent: A, needs: [b]}
  b: {agent: B, needs: [a]}
  c: {agent: C, needs: [d, a]}
  d: {agent: D, needs: [c]}
""")
    assert [finding.path for finding in caught.value.findings] == ["steps.a.needs[0]", "steps.c.needs[0]"]


def test_reading_a_step_that_waits_for_the_reader_is_found_where_it_reads() -> None:
    finding = the_finding_in("""\
         a: {agent: A, input: {x: "first ${ input.x }, then ${ steps.c.output }"}}
         b: {agent: B, needs: [a]}
         c: {agent: C, needs: [b]}
        """)
    assert "'a' reads the step 'c', but c runs after it (c -> b -> a)" in finding.message
    assert (finding.path, finding.line) == ("steps.a.input.x", 3)


def test_steps_that_read_one_another_are_a_circle() -> None:
    finding = the_finding_in("""\
         a: {agent: A, when: steps.c.output.ok}
         b: {agent: B, input: "${ steps.a.output }"}
         c: {agent: C, input: "${ steps.b.output }"}
        """)
    assert "in a cycle: a -> c -> b -> a" in finding.message
    assert (finding.path, finding.line, finding.column) == ("steps.a.when", 3, 23)


def test_a_goto_must_not_lead_upstream() -> None:
    finding = the_finding_in("""\
         a: {agent: A}
         b: {agent: B, input: "${ steps.a.output }"}
         c: {agent: C, needs: [b], on_error: {goto: a}}
        """)
    assert "'c' cannot continue at 'a', because a runs before it (c -> b -> a)" in finding.message
    assert (finding.path, finding.line, finding.column) == ("steps.c.on_error.goto", 5, 46)


def test_a_goto_that_closes_a_circle_with_another_goto_is_found() -> None:
    finding = the_finding_in("""\
         a: {agent: A, on_error: {goto: b}}
         b: {agent: B, on_error: {goto: a}}
        """)
    assert "in a cycle" in finding.message


def test_a_long_circle_is_shown_by_its_ends() -> None:
    steps = "".join(f" s{n}: {{agent: A, needs: [s{(n + 1) % 50}]}}\n" for n in range(50))
    assert (
        "s0 -> s1 -> s2 -> s3 -> s4 -> s5 -> s6 -> s7 -> s8 -> s9 -> … -> s0" in the_finding_in(steps).message
    )


@given(st.dictionaries(st.integers(0, 8), st.sets(st.integers(0, 8)), max_size=9))
def test_tangles_are_the_steps_that_reach_themselves(graph: dict[int, set[int]]) -> None:
    edges = {
        str(step): [str(need) for need in sorted(needs) if need != step and need in graph]
        for step, needs in graph.items()
    }

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        rest = list(edges[start])
        while rest:
            step = rest.pop()
            if step not in seen:
                seen.add(step)
                rest += edges[step]
        return seen

    reach = {step: reached(step) for step in edges}
    expected = {
        frozenset(other for other in edges if other in reach[step] and step in reach[other])
        for step in edges
        if step in reach[step]
    }
    assert set(cyclic_groups(edges)) == expected
