"""Steps that choose their agent when they begin, as the language has them."""

from __future__ import annotations

import jsonschema_rs
import pytest
from tests.unit.workflow.test_findings import findings_in, unmarked

from trunkline.workflow import (
    AllowTag,
    Hedge,
    called_agents,
    canonical_form,
    compile_workflow,
    definition_from_canonical,
    load_workflow,
    workflow_json_schema,
)

STEP = "name: w\nsteps:\n  a: {agent: A}\n  b: {"
PLAN = """
name: w
steps:
  plan: {agent: Planner}
  work: {agent: "${ steps.plan.output.data.agent }", allow: [Writer, Editor]}
  check: {agent: "${ input.who }", allow: {tag: review}}
  translate:
    skill: translate
    tags: [fast]
    input_modes: [text/plain]
    select: cheapest
    repeatable: true
    hedge: {after: 5s, max: 3}
"""


def test_the_stored_form_gives_the_same_definition() -> None:
    definition = load_workflow(PLAN).definition
    assert definition_from_canonical(canonical_form(definition)) == definition
    work, check, translate = (definition.steps[name] for name in ("work", "check", "translate"))
    assert (work.agent, work.allow) == ("", ("Writer", "Editor"))
    assert check.allow == AllowTag("review")
    assert (translate.skill, translate.select, translate.hedge) == ("translate", "cheapest", Hedge("5s", 3))


def test_the_stored_form_can_be_saved_again() -> None:
    canonical = load_workflow(PLAN).canonical
    assert load_workflow(canonical.decode()).canonical == canonical


def test_an_expression_for_the_agent_orders_the_steps() -> None:
    steps = compile_workflow(load_workflow(PLAN).definition).steps
    assert steps["work"].needs == ("plan",)
    assert steps["translate"].needs == ()


def test_the_agents_of_allow_count_as_called() -> None:
    assert called_agents(load_workflow(PLAN).definition) == ("Planner", "Writer", "Editor")


def test_a_routed_step_hides_the_secrets_of_all_steps() -> None:
    text = """
name: w
steps:
  a: {agent: A, input: {token: {$secret: of-a}}}
  b: {agent: B}
  c: {skill: s, input: {token: {$secret: of-c}}}
"""
    steps = compile_workflow(load_workflow(text).definition).steps
    told = {name: step.told_secrets for name, step in steps.items()}
    assert told == {"a": ("of-a", "of-c"), "b": ("of-c",), "c": ("of-a", "of-c")}


@pytest.mark.parametrize(
    ("marked", "path", "message"),
    [
        (STEP + "agent: ▸'${ input.x }'}", "steps.b.agent", "needs the agents that it may name; add allow:"),
        (
            STEP + "agent: A, allow: ▸[A]}",
            "steps.b.allow",
            "applies only to a step whose 'agent' is an expression",
        ),
        (STEP + "agent: '${ input.x }', allow: ▸A}", "steps.b.allow", "must be a list of agents or a tag"),
        (STEP + "agent: '${ input.x }', allow: ▸[]}", "steps.b.allow", "1 to 100 agents, but it has 0"),
        (STEP + "agent: '${ input.x }', allow: [A, ▸5]}", "steps.b.allow[1]", "must list names of agents"),
        (STEP + "agent: '${ input.x }', allow: ▸{}}", "steps.b.allow", "'tag' is missing"),
        (STEP + "agent: '${ ▸nope }', allow: [A]}", "steps.b.agent", "unknown name 'nope'"),
        (STEP + "skill: s, agent: ▸A}", "steps.b.agent", "either 'agent' or 'skill'"),
        (STEP + "skill: ▸''}", "steps.b.skill", "must be a string of 1 to 100 characters"),
        (STEP + "skill: s, allow: ▸[A]}", "steps.b.allow", "whose 'agent' is an expression"),
        (STEP + "skill: s, workflow: w2}", "steps.b.skill", "either 'skill' or 'workflow'"),
        (STEP + "sleep: 1s, hedge: ▸{after: 1s}}", "steps.b.hedge", "has no effect in a step with 'sleep'"),
        (STEP + "agent: A, select: ▸first}", "steps.b.select", "applies only to a step with 'skill'"),
        (STEP + "skill: s, select: ▸cheap}", "steps.b.select", "did you mean 'cheapest'?"),
        (STEP + "skill: s, tags: ▸fast}", "steps.b.tags", "must be a list"),
        (STEP + "skill: s, input_modes: [▸5]}", "steps.b.input_modes[0]", "must list strings"),
        (STEP + "skill: s, hedge: ▸{max: 2}}", "steps.b.hedge", "'after' is missing"),
        (STEP + "skill: s, hedge: {after: ▸0s}}", "steps.b.hedge.after", "must be greater than zero"),
        (STEP + "skill: s, hedge: {after: 1s, max: ▸1}}", "steps.b.hedge.max", "from 2 to 5, but it is 1"),
        (
            STEP + "skill: s, delivery: at_most_once, hedge: ▸{after: 1s}}",
            "steps.b.hedge",
            "which delivery: at_most_once rules out",
        ),
        (
            STEP + "skill: s, delivery: at_most_once, repeatable: ▸true}",
            "steps.b.repeatable",
            "which delivery: at_most_once rules out",
        ),
    ],
)
def test_a_mistake_is_found_at_its_place(marked: str, path: str, message: str) -> None:
    text, line, column = unmarked(marked)
    finding = next(finding for finding in findings_in(text) if message in finding.message)
    assert finding.path == path
    if "▸" in marked:
        assert (finding.line, finding.column) == (line, column)


SCHEMA = jsonschema_rs.validator_for(workflow_json_schema())


@pytest.mark.parametrize(
    ("step", "is_valid"),
    [
        ({"skill": "s"}, True),
        ({"agent": "", "skill": "s", "tags": ["t"], "hedge": {"after": "5s"}}, True),
        ({"agent": "${ input.x }", "allow": ["A"]}, True),
        ({"agent": "${ input.x }", "allow": {"tag": "t"}}, True),
        ({"agent": "${ input.x }"}, False),
        ({"agent": "A", "allow": ["A"]}, False),
        ({"agent": "A", "skill": "s"}, False),
        ({"agent": "A", "select": "first"}, False),
        ({"skill": "s", "delivery": "at_most_once"}, True),
        ({"skill": "s", "delivery": "at_most_once", "hedge": {"after": "5s"}}, False),
        ({"skill": "s", "delivery": "at_most_once", "repeatable": True}, False),
        ({"workflow": "w", "skill": "s"}, False),
        ({"sleep": "1s", "skill": "s"}, False),
    ],
)
def test_editors_know_what_goes_together(step: object, *, is_valid: bool) -> None:
    assert SCHEMA.is_valid({"name": "w", "steps": {"a": step}}) == is_valid
