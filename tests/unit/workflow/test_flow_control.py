"""The flow control of a workflow definition: read, stored and compiled, with clear errors."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.errors import Invalid
from trunkline.workflow import canonical_form, compile_workflow, definition_from_canonical, load_workflow
from trunkline.workflow.flow_control.definition import (
    ON_LIMITS,
    PERIODS,
    Concurrency,
    Debounce,
    FlowControl,
    StartRate,
    flow_control_from_json,
    flow_control_to_json,
)

STEPS = "name: a\nsteps: {work: {agent: A}}\n"
KEYS = st.none() | st.just("input.n")


@given(
    st.builds(
        FlowControl,
        concurrency=st.none()
        | st.builds(Concurrency, key=KEYS, limit=st.integers(1, 1_000), on_limit=st.sampled_from(ON_LIMITS)),
        throttle=st.none()
        | st.builds(StartRate, count=st.integers(1, 1_000_000), per=st.sampled_from([*PERIODS.values()])),
        debounce=st.none()
        | st.builds(Debounce, wait=st.integers(1, 86_400).map(lambda s: timedelta(seconds=s)), key=KEYS),
        priority=st.integers(-1_000, 1_000),
    )
)
def test_what_is_stored_is_read_back(flow: FlowControl) -> None:
    assert flow_control_from_json(flow_control_to_json(flow)) == (None if flow == FlowControl() else flow)


def test_a_definition_keeps_its_flow_control_through_its_canonical_form() -> None:
    text = (
        STEPS + "concurrency: {key: input.n, limit: 2}\nthrottle: 10/m\ndebounce: 30s by input.n\npriority: 5"
    )
    definition = load_workflow(text).definition
    stored = definition_from_canonical(canonical_form(definition))
    assert stored.flow == definition.flow != None  # noqa: E711 - a chain
    assert load_workflow(canonical_form(definition)).definition.flow == definition.flow
    assert compile_workflow(stored).flow_key is not None


def test_a_definition_without_it_has_none() -> None:
    assert load_workflow(STEPS).definition.flow is None
    assert b"priority" not in load_workflow(STEPS).canonical


@pytest.mark.parametrize(
    ("flow", "path", "line", "column"),
    [
        ("concurrency: {}", "concurrency", 3, 14),
        ("concurrency: {limit: 1_001}", "concurrency.limit", 3, 22),
        ("concurrency: {limit: 1, on_limit: wait}", "concurrency.on_limit", 3, 35),
        ("concurrency: {limit: 1, key: 'input.('}", "concurrency.key", 3, 37),
        ("concurrency: {limit: 1, key: steps.work.output}", "concurrency.key", 3, 30),
        ("throttle: 10/d", "throttle", 3, 11),
        ("debounce: {wait: 2d}", "debounce", 3, 11),
        ("debounce: 30s by input.(", "debounce", 3, 24),
        ("priority: 1_001", "priority", 3, 11),
    ],
)
def test_a_mistake_is_found_at_its_place(flow: str, path: str, line: int, column: int) -> None:
    with pytest.raises(Invalid) as caught:
        load_workflow(f"{STEPS}{flow}\n")
    assert (path, line, column) in [
        (found.path, found.line, found.column) for found in caught.value.findings
    ], caught.value.findings
