from __future__ import annotations

import json
from datetime import timedelta
from textwrap import dedent

import jsonschema_rs
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.jsontypes import Json, JsonObject
from trunkline.retry_policy import RetryPolicy
from trunkline.workflow import (
    Goto,
    Scope,
    StepDefinition,
    WorkflowDefinition,
    canonical_form,
    compile_workflow,
    definition_from_canonical,
    load_workflow,
    workflow_json_schema,
)
from trunkline.workflow.expressions import KEYWORDS

EXAMPLE = dedent("""\
    name: research-and-write
    description: From a topic to a text
    input:
      type: object
      required: [topic]
      properties: {topic: {type: string}}
    deadline: 1h
    max_parallel: 2
    steps:
      research:
        agent: ResearchAgent
        input: {query: "${ input.topic }"}
        context: none
      check:
        agent: FactChecker
        needs: [research]
        when: ${ steps.research.output.data.score < 0.8 }
        input: {text: "${ steps.research.output.text }"}
        retry:
          max_attempts: 5
          backoff: linear
          first_delay: 90s
          jitter: false
          on: ["429", 5xx, -32000, no_answer]
        timeout: 60s
        reply_timeout: 48h
        on_error: {goto: write}
      write:
        agent: Writer
        needs: [research]
        input: null
        delivery: at_most_once
        on_error: continue
    output: ${ steps.write.output.text }
    """)


def test_a_definition_has_everything_that_was_written() -> None:
    definition = load_workflow(EXAMPLE).definition
    schema: JsonObject = {
        "type": "object",
        "required": ["topic"],
        "properties": {"topic": {"type": "string"}},
    }
    retry = RetryPolicy(
        max_attempts=5,
        backoff="linear",
        first_delay=timedelta(seconds=90),
        max_delay=timedelta(seconds=90),
        jitter=False,
        on=(429, "5xx", -32000, "no_answer"),
    )
    assert definition == WorkflowDefinition(
        name="research-and-write",
        description="From a topic to a text",
        input=schema,
        deadline=timedelta(hours=1),
        max_parallel=2,
        output="${ steps.write.output.text }",
        steps={
            "research": StepDefinition(
                name="research", agent="ResearchAgent", input={"query": "${ input.topic }"}, context="none"
            ),
            "check": StepDefinition(
                name="check",
                agent="FactChecker",
                needs=("research",),
                when="steps.research.output.data.score < 0.8",
                input={"text": "${ steps.research.output.text }"},
                retry=retry,
                timeout=timedelta(minutes=1),
                reply_timeout=timedelta(days=2),
                on_error=Goto("write"),
            ),
            "write": StepDefinition(
                name="write",
                agent="Writer",
                needs=("research",),
                input=None,
                delivery="at_most_once",
                on_error="continue",
            ),
        },
    )


def test_the_least_that_a_step_needs_is_an_agent() -> None:
    definition = load_workflow("name: x\nsteps: {a: {agent: A}}").definition
    assert definition.steps["a"] == StepDefinition(name="a", agent="A")
    assert definition.output is msgspec.UNSET


def test_a_step_without_input_gets_the_input_of_the_run() -> None:
    workflow = compile_workflow(
        load_workflow("name: x\nsteps: {a: {agent: A}, b: {agent: B, input: null}}").definition
    )
    scope: Scope = lambda _: {"topic": "tea"}  # noqa: E731 - a scope is any callable
    assert workflow.steps["a"].input.evaluate(scope) == {"topic": "tea"}
    assert workflow.steps["a"].input.reads == {"input"}
    assert workflow.steps["b"].input.evaluate(scope) is None


def test_a_condition_may_be_written_as_true_or_false() -> None:
    steps = load_workflow(
        "name: x\nsteps: {a: {agent: A, when: true}, b: {agent: B, when: false}}"
    ).definition.steps
    assert [step.when for step in steps.values()] == ["true", "false"]


def test_the_schema_key_of_editors_is_ignored() -> None:
    plain = load_workflow('{"name": "x", "steps": {"a": {"agent": "A"}}}')
    assert (
        load_workflow('{"$schema": "s.json", "name": "x", "steps": {"a": {"agent": "A"}}}').canonical
        == plain.canonical
    )


def test_equal_content_has_equal_bytes_whatever_it_looked_like() -> None:
    one = load_workflow("""
# a comment
name:   x
steps:
  a:
    agent: 'A'
    timeout: 120s
    when: ${ input.x > 1 }
    delivery: at_least_once
    retry:
      max_attempts: 3
      backoff: exponential
      first_delay: 1000ms
      max_delay: 60s
      on: [no_answer, "408", 425, 429, 5xx]
""")
    other = load_workflow(
        '{"steps": {"a": {"retry": {}, "when": "input.x > 1", "timeout": "2m", "agent": "A"}}, "name": "x"}'
    )
    assert one.canonical == other.canonical
    assert one.definition == other.definition


def test_the_canonical_form_is_the_language_itself() -> None:
    canonical = json.loads(load_workflow(EXAMPLE).canonical)
    assert canonical["deadline"] == "1h"
    assert canonical["steps"]["check"]["timeout"] == "1m"
    assert canonical["steps"]["check"]["reply_timeout"] == "2d"
    assert canonical["steps"]["check"]["on_error"] == {"goto": "write"}
    assert canonical["steps"]["check"]["retry"]["first_delay"] == "90s"
    assert canonical["steps"]["write"]["input"] is None
    assert "input" not in json.loads(load_workflow("name: x\nsteps: {a: {agent: A}}").canonical)["steps"]["a"]


def test_a_workflow_may_be_written_in_any_language() -> None:
    loaded = load_workflow(
        "name: 研究\nsteps: {a: {agent: Ångström, input: {text: 'Grüße, ${ input.x } 😀'}}}"
    )
    assert definition_from_canonical(loaded.canonical) == loaded.definition


step_names = st.from_regex(r"\A[A-Za-z_][A-Za-z0-9_]{0,63}\Z").filter(lambda name: name not in KEYWORDS)
plain_text = st.text(max_size=8).filter(lambda text: "${" not in text)
plain_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | plain_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(plain_text, inner, max_size=3),
    max_leaves=6,
)
durations = st.builds("{}{}".format, st.integers(1, 5000), st.sampled_from(["ms", "s", "m"]))
retries = st.fixed_dictionaries(
    {},
    optional={
        "max_attempts": st.integers(1, 100),
        "backoff": st.sampled_from(["fixed", "linear", "exponential"]),
        "first_delay": durations,
        "jitter": st.booleans(),
        "on": st.lists(
            st.sampled_from(["no_answer", "any", "5xx", 429, -32000, "agent_timeout"]), max_size=3
        ),
    },
)


step_options = {
    "input": plain_json,
    "retry": retries,
    "timeout": durations,
    "reply_timeout": durations,
    "on_error": st.sampled_from(["fail", "continue"]),
    "delivery": st.sampled_from(["at_least_once", "at_most_once"]),
    "context": st.sampled_from(["run", "step", "none"]),
}
head_options = {"output": plain_json, "deadline": durations, "max_parallel": st.integers(1, 99)}


@st.composite
def documents(draw: st.DrawFn) -> dict[str, object]:
    names = draw(st.lists(step_names, min_size=1, max_size=6, unique=True))
    steps: dict[str, object] = {}
    for index, name in enumerate(names):
        step: dict[str, object] = {"agent": draw(st.text(min_size=1, max_size=20))}
        earlier = names[:index]
        if earlier:
            step["needs"] = draw(st.lists(st.sampled_from(earlier), max_size=3))
            step["when"] = f"steps.{draw(st.sampled_from(earlier))}.output.ok == true"
        for key, option in step_options.items():
            if draw(st.booleans()):
                step[key] = draw(option)
        steps[name] = step
    document: dict[str, object] = {"name": "flow", "steps": steps}
    for key, option in head_options.items():
        if draw(st.booleans()):
            document[key] = draw(option)
    return document


SCHEMA = jsonschema_rs.validator_for(workflow_json_schema())


@given(documents())
def test_a_definition_comes_back_from_its_canonical_form(document: dict[str, object]) -> None:
    loaded = load_workflow(json.dumps(document))
    assert definition_from_canonical(loaded.canonical) == loaded.definition
    assert load_workflow(loaded.canonical) == loaded
    assert canonical_form(definition_from_canonical(loaded.canonical)) == loaded.canonical
    SCHEMA.validate(document)
    SCHEMA.validate(json.loads(loaded.canonical))


@pytest.mark.parametrize(
    ("value", "paths"),
    [
        ({"topic": "tea"}, []),
        ({"topic": 5}, ["input.topic"]),
        ({}, ["input"]),
        (None, ["input"]),
        ([], ["input"]),
    ],
)
def test_the_input_of_a_run_is_checked_against_the_schema(value: Json, paths: list[str]) -> None:
    workflow = compile_workflow(load_workflow(EXAMPLE).definition)
    assert [finding.path for finding in workflow.check_input(value)] == paths


def test_a_workflow_without_a_schema_takes_any_input() -> None:
    workflow = compile_workflow(load_workflow("name: x\nsteps: {a: {agent: A}}").definition)
    assert workflow.check_input({"anything": [1]}) == []
    assert workflow.check_input(None) == []


def test_a_pattern_that_runs_away_is_stopped() -> None:
    text = "name: x\ninput: {properties: {s: {pattern: '^(a|a)*(?=x)b$'}}}\nsteps: {a: {agent: A}}"
    workflow = compile_workflow(load_workflow(text).definition)
    assert len(workflow.check_input({"s": "a" * 5_000})) == 1


def test_ten_thousand_steps_are_loaded_and_compiled() -> None:
    steps: dict[str, object] = {"s0": {"agent": "A", "input": {"text": "${ input.text }"}}}
    for n in range(1, 10_000):
        step = {"agent": "A", "needs": [f"s{n - 1}"], "input": {"text": f"${{ steps.s{n - 1}.output.text }}"}}
        steps[f"s{n}"] = step
    loaded = load_workflow(json.dumps({"name": "long", "steps": steps}))
    workflow = compile_workflow(definition_from_canonical(loaded.canonical))
    assert workflow.steps["s9999"].needs == ("s9998",)
