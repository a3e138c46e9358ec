"""Blocks as they are written: what can be read where, what is refused and where, and what is stored."""

from __future__ import annotations

import json

import jsonschema_rs
import pytest
import yaml

from trunkline.errors import Finding, Invalid
from trunkline.jsontypes import Json
from trunkline.workflow import (
    compile_workflow,
    definition_from_canonical,
    load_workflow,
    output_reads,
    workflow_json_schema,
)
from trunkline.workflow.validate import MAX_STEPS

SCHEMA = jsonschema_rs.validator_for(workflow_json_schema())
NESTED = """
name: flow
steps:
  a: {agent: A}
  b:
    for_each: ${ input.items }
    needs: [a]
    steps:
      c: {agent: C, input: "${ item }${ steps.a.output.text }"}
      d:
        steps:
          e: {agent: E, input: "${ steps.c.output.text + steps.a.output.text + string(index) }"}
          f: {agent: F}
        output: ${ steps.e.output }
    output: ${ steps.d.output }
"""


def the_finding_in(text: str) -> Finding:
    with pytest.raises(Invalid) as caught:
        load_workflow(text)
    (finding,) = caught.value.findings
    return finding


def test_what_a_block_reads_from_outside_is_known_and_waited_for() -> None:
    workflow = compile_workflow(load_workflow(NESTED).definition)
    outer = workflow.steps["b"]
    assert outer.block is not None
    inner = outer.block.steps["d"]
    assert outer.input.reads == {"input", "item", "index", "steps.a"}
    assert outer.needs == ("a",)
    assert inner.input.reads == {"input", "index", "steps.a", "steps.c"}
    assert inner.needs == ("c",)
    assert workflow.block("b/d").steps.keys() == {"e", "f"}
    assert workflow.step_count == 6


def test_the_stored_form_is_the_language_and_gives_the_same_definition() -> None:
    loaded = load_workflow(NESTED)
    assert definition_from_canonical(loaded.canonical) == loaded.definition
    assert load_workflow(loaded.canonical).canonical == loaded.canonical
    assert SCHEMA.is_valid(json.loads(loaded.canonical))
    assert SCHEMA.is_valid(yaml.safe_load(NESTED))


def test_reads_of_outputs_are_found_inside_blocks() -> None:
    reads = {(read.step, read.agent, read.place) for read in output_reads(load_workflow(NESTED).definition)}
    assert ("c", "C", "steps.b.steps.d.steps.e.input") in reads
    assert ("a", "A", "steps.b.steps.c.input") in reads


@pytest.mark.parametrize(
    ("block", "path", "line", "message"),
    [
        ("{steps: {}}", "steps.b.steps", 4, "'steps' is missing or empty; a block needs at least one step"),
        ("{steps: {c: {agent: C, inptu: 1}}}", "steps.b.steps.c.inptu", 4, "unknown key 'inptu'"),
        ("{steps: {c: {agent: C, needs: [a]}}}", "steps.b.steps.c.needs[0]", 4, "unknown step 'a'"),
        (
            "{steps: {c: {agent: C, needs: [d]}, d: {agent: D, needs: [c]}}}",
            "steps.b.steps.c.needs[0]",
            4,
            "in a cycle: c -> d -> c",
        ),
        (
            "{steps: {c: {agent: C, input: '${ steps.nothing.output }'}}}",
            "steps.b.steps.c.input",
            4,
            "unknown step 'nothing'",
        ),
        (
            "{steps: {c: {agent: C, input: '${ steps.b.output }'}}}",
            "steps.b.steps.c.input",
            4,
            "a step cannot read its own output",
        ),
        (
            "{steps: {c: {agent: C, input: '${ item }'}}}",
            "steps.b.steps.c.input",
            4,
            "'item' is only available",
        ),
        (
            "{steps: {c: {agent: C}}, input: 1}",
            "steps.b.input",
            4,
            "'input' has no effect in a step with 'steps'",
        ),
        ("{steps: {c: {agent: C}}, agent: A}", "steps.b.agent", 4, "a step has either 'steps' or 'agent'"),
        ("{steps: {c: {agent: C}}, sleep: 1s}", "steps.b.sleep", 4, "a step has either 'steps' or 'sleep'"),
        ("{agent: A, output: 1}", "steps.b.output", 4, "'output' applies only to a step with 'steps'"),
        (
            "{steps: {c: {agent: C, on_error: {goto: a}}}}",
            "steps.b.steps.c.on_error.goto",
            4,
            "unknown step 'a'",
        ),
    ],
)
def test_a_mistake_in_a_block_is_found_at_its_place(block: str, path: str, line: int, message: str) -> None:
    finding = the_finding_in(f"name: flow\nsteps:\n  a: {{agent: A}}\n  b: {block}\n")
    assert (finding.path, finding.line) == (path, line)
    assert message in finding.message


def test_steps_outside_cannot_read_the_steps_of_a_block() -> None:
    text = "name: w\nsteps:\n  b: {steps: {c: {agent: C}}}\n  d: {agent: D, input: '${ steps.c.output }'}\n"
    finding = the_finding_in(text)
    assert (finding.path, finding.line, finding.column) == ("steps.d.input", 4, 28)
    assert finding.message.startswith("unknown step 'c'")


def test_a_block_that_reads_a_step_that_waits_for_it_is_a_cycle() -> None:
    text = """name: w
steps:
  b: {steps: {c: {agent: C, input: "${ steps.d.output }"}}}
  d: {agent: D, needs: [b]}
"""
    finding = the_finding_in(text)
    assert (finding.path, finding.line) == ("steps.b.steps.c.input", 3)
    assert "'b' reads the step 'd', but d runs after it" in finding.message


def test_a_workflow_inside_a_block_cannot_start_itself() -> None:
    finding = the_finding_in("name: w\nsteps:\n  b: {steps: {c: {workflow: w}}}\n")
    assert (finding.path, "cannot start itself" in finding.message) == ("steps.b.steps.c.workflow", True)


def test_the_steps_of_all_blocks_count_together() -> None:
    inside = {f"s{number}": {"agent": "A"} for number in range(MAX_STEPS // 2)}
    steps = {"a": {"steps": inside}, "b": {"steps": inside}}
    finding = the_finding_in(json.dumps({"name": "w", "steps": steps}))
    assert finding.path == "steps"
    assert "10,002 steps, more than 10,000" in finding.message


def test_an_agent_is_sent_no_secret_of_another_block_without_its_redaction() -> None:
    text = """name: w
steps:
  a: {agent: A, input: {token: {$secret: one}}}
  b: {steps: {c: {agent: A, input: {token: {$secret: two}}}}}
"""
    workflow = compile_workflow(load_workflow(text).definition)
    assert workflow.steps["a"].told_secrets == ("one", "two")
    assert workflow.block("b").steps["c"].told_secrets == ("one", "two")


ROUNDS = """
name: flow
steps:
  a: {agent: A}
  write:
    repeat: {until: "steps.review.output.good || steps.a.output.good", max_rounds: 3, delay: 1s, on_max: continue}
    steps:
      draft: {agent: W, input: "${ [round, previous.steps.review.output] }"}
      review: {agent: R, input: "${ steps.draft.output.text }"}
  poll: {agent: P, repeat: {until: steps.poll.output.data.done}, input: "${ steps.write.output }"}
  sort:
    switch:
      - {when: steps.poll.output.data.x > 1, steps: {b: {agent: B}}}
      - {when: input.y, steps: {b: {agent: C, input: "${ steps.a.output }"}}, output: "${ steps.b.output.text }"}
      - {else: true, steps: {d: {agent: D}}}
"""


def test_rounds_and_branches_read_and_wait_for_what_is_outside() -> None:
    workflow = compile_workflow(load_workflow(ROUNDS).definition)
    write, poll, sort = (workflow.steps[name] for name in ("write", "poll", "sort"))
    assert write.needs == ("a",)
    assert write.block is not None
    assert write.block.round is not None
    assert (write.input.reads, write.block.round.carried) == ({"steps.a"}, ("review",))
    assert (poll.needs, poll.input.reads, poll.block is not None) == (("write",), {"steps.write"}, True)
    assert sort.block is not None
    assert (set(sort.needs), list(sort.block.steps)) == ({"poll", "a"}, ["branch-1", "branch-2", "branch-3"])
    assert sort.block.steps["branch-3"].needs == ("branch-1", "branch-2")


def test_the_stored_form_of_rounds_and_branches_gives_the_same_definition() -> None:
    loaded = load_workflow(ROUNDS)
    assert definition_from_canonical(loaded.canonical) == loaded.definition
    assert load_workflow(loaded.canonical).canonical == loaded.canonical
    assert SCHEMA.is_valid(json.loads(loaded.canonical))
    assert SCHEMA.is_valid(yaml.safe_load(ROUNDS))


def test_reads_of_outputs_are_found_in_rounds_and_branches() -> None:
    reads = {(read.step, read.agent, read.place) for read in output_reads(load_workflow(ROUNDS).definition)}
    assert ("review", "R", "steps.write.repeat.until") in reads
    assert ("poll", "P", "steps.poll.repeat.until") in reads
    assert ("a", "A", "steps.sort.switch[1].steps.b.input") in reads
    assert ("poll", "P", "steps.sort.switch[0].when") in reads


def test_a_branch_runs_only_if_none_before_it_does() -> None:
    sort = compile_workflow(load_workflow(ROUNDS).definition).block("sort")
    values: dict[str, Json] = {"steps.branch-1": {"status": "COMPLETED"}, "input": {"y": True}}
    condition = sort.steps["branch-2"].when
    assert condition is not None
    assert not condition.holds(values.__getitem__)
    values["steps.branch-1"] = {"status": "SKIPPED"}
    assert condition.holds(values.__getitem__)


@pytest.mark.parametrize(
    ("step", "path", "message"),
    [
        ("{agent: A, repeat: {}}", "steps.s.repeat", "'until' is missing"),
        ("{agent: A, repeat: {until: 3}}", "steps.s.repeat.until", "'until' must be an expression"),
        ("{agent: A, repeat: {until: a b}}", "steps.s.repeat.until", "invalid CEL"),
        ("{agent: A, repeat: {until: steps.q.output}}", "steps.s.repeat.until", "unknown step 'q'"),
        (
            "{agent: A, repeat: {until: true, max_rounds: 0}}",
            "steps.s.repeat.max_rounds",
            "from 1 to 100,000",
        ),
        ("{agent: A, repeat: {until: true, delay: 5}}", "steps.s.repeat.delay", "must be a duration"),
        ("{agent: A, repeat: {until: true, on_max: stop}}", "steps.s.repeat.on_max", "fail or continue"),
        (
            "{agent: A, repeat: {until: true}, input: '${ steps.q.output }'}",
            "steps.s.input",
            "unknown step 'q'",
        ),
        ("{agent: A, input: '${ round }'}", "steps.s.input", "only available in a step with 'repeat'"),
        (
            "{agent: A, input: '${ previous.steps.s.output }'}",
            "steps.s.input",
            "only available in a step with 'repeat'",
        ),
        ("{switch: []}", "steps.s.switch", "must have 1 to 100 branches"),
        ("{switch: [1]}", "steps.s.switch[0]", "a branch must be a mapping"),
        (
            "{switch: [{steps: {b: {agent: B}}}]}",
            "steps.s.switch[0].when",
            "a branch needs 'when', or 'else: true'",
        ),
        (
            "{switch: [{else: true, steps: {b: {agent: B}}}, {when: true, steps: {b: {agent: B}}}]}",
            "steps.s.switch[0].else",
            "must be the last one",
        ),
        (
            "{switch: [{when: true, else: true, steps: {b: {agent: B}}}]}",
            "steps.s.switch[0].when",
            "a branch has either 'when' or 'else'",
        ),
        (
            "{switch: [{else: false, steps: {b: {agent: B}}}]}",
            "steps.s.switch[0].else",
            "'else' must be true",
        ),
        (
            "{switch: [{when: true, steps: {b: {agent: B, inptu: 1}}}]}",
            "steps.s.switch[0].steps.b.inptu",
            "unknown key 'inptu'",
        ),
        (
            "{switch: [{when: steps.q.output, steps: {b: {agent: B}}}]}",
            "steps.s.switch[0].when",
            "unknown step 'q'",
        ),
        (
            "{agent: A, switch: [{when: true, steps: {b: {agent: B}}}]}",
            "steps.s.agent",
            "either 'switch' or 'agent'",
        ),
    ],
)
def test_a_mistake_in_rounds_or_branches_is_found_at_its_place(step: str, path: str, message: str) -> None:
    finding = the_finding_in(f"name: flow\nsteps:\n  s: {step}\n")
    assert (finding.path, finding.line) == (path, 3)
    assert message in finding.message
