"""`for_each`: what a definition can contain, and what expressions in it can read."""

from __future__ import annotations

import pytest

from trunkline.errors import Finding, Invalid
from trunkline.workflow import (
    ForEach,
    compile_workflow,
    definition_from_canonical,
    item_index,
    item_name,
    load_workflow,
    parse_item_name,
    step_of_item,
)


def text_of(step: str) -> str:
    return f"name: flow\nsteps:\n  a: {{agent: A}}\n  s: {step}\n"


def the_finding_in(step: str) -> Finding:
    with pytest.raises(Invalid) as caught:
        load_workflow(text_of(step))
    (finding,) = caught.value.findings
    return finding


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ('"${ input.items }"', ForEach("${ input.items }")),
        ("[1, two]", ForEach([1, "two"])),
        ("{items: [], mode: sequential}", ForEach([], "sequential")),
        (
            '{items: "${ steps.a.output }", limit: 5, on_error: collect}',
            ForEach("${ steps.a.output }", "parallel", 5, "collect"),
        ),
    ],
)
def test_a_loop_is_read_and_kept_as_it_was_meant(written: str, meant: ForEach) -> None:
    loaded = load_workflow(text_of(f"{{agent: A, for_each: {written}}}"))
    assert loaded.definition.steps["s"].for_each == meant
    assert definition_from_canonical(loaded.canonical) == loaded.definition


@pytest.mark.parametrize(
    ("step", "path", "message"),
    [
        ("{agent: A, for_each: 5}", "steps.s.for_each", "must be an expression that returns a list"),
        ("{agent: A, for_each: items}", "steps.s.for_each", "must be an expression that returns a list"),
        ("{agent: A, for_each: {limit: 5}}", "steps.s.for_each", "'items' is missing"),
        ("{agent: A, for_each: {items: 5}}", "steps.s.for_each.items", "must be an expression"),
        ("{agent: A, for_each: {items: [], limit: 1001}}", "steps.s.for_each.limit", "from 1 to 1,000"),
        ("{agent: A, for_each: {items: [], mode: both}}", "steps.s.for_each.mode", "parallel or sequential"),
        (
            "{agent: A, for_each: {items: [], mode: sequential, limit: 2}}",
            "steps.s.for_each.limit",
            "has no effect",
        ),
        ("{agent: A, for_each: {items: [], on_error: fail}}", "steps.s.for_each.on_error", "stop, continue"),
        ("{agent: A, for_each: {items: [], itmes: []}}", "steps.s.for_each.itmes", "did you mean 'items'"),
        ("{agent: A, for_each: '${ item }'}", "steps.s.for_each", "only available in the 'input' and 'when'"),
        ("{agent: A, for_each: '${ steps.x.output }'}", "steps.s.for_each", "unknown step 'x'"),
        ("{agent: A, input: '${ item.name }'}", "steps.s.input", "only available in the 'input' and 'when'"),
        ("{agent: A, when: index > 3}", "steps.s.when", "only available in the 'input' and 'when'"),
    ],
)  # fmt: skip
def test_a_loop_that_cannot_be_is_refused_where_it_stands(step: str, path: str, message: str) -> None:
    finding = the_finding_in(step)
    assert message in finding.message
    assert (finding.path, finding.line) == (path, 4)


def test_what_a_loop_reads_is_added_to_what_its_step_needs() -> None:
    step = compile_workflow(
        load_workflow(text_of("{agent: A, for_each: '${ steps.a.output }', input: '${ item }'}")).definition
    ).steps["s"]
    assert step.needs == ("a",)
    assert step.for_each is not None
    assert not step.for_each.filters_items


def test_a_macro_may_still_call_its_own_variable_item() -> None:
    load_workflow(text_of("{agent: A, input: '${ input.list.map(item, item.name) }'}"))


def test_an_item_is_named_by_its_step_and_its_place() -> None:
    assert item_name("research", 17) == "research[17]"
    assert (step_of_item("research[17]"), step_of_item("research"), item_index("research[17]")) == (
        "research",
        "research",
        17,
    )
    assert parse_item_name("research[17]") == ("research", 17)
    assert [parse_item_name(name) for name in ("research", "a[]", "a[x]", "a[01]", "a[1]b", "[1]")] == [
        None
    ] * 6
