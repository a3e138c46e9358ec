"""Every finding of a workflow that is wrong, with its line and column."""

from __future__ import annotations

from textwrap import dedent

import pytest

from trunkline.errors import Finding, Invalid
from trunkline.workflow import load_workflow


def findings_in(text: str, known_error_codes: list[str] | None = None) -> list[Finding]:
    with pytest.raises(Invalid) as caught:
        load_workflow(dedent(text), source="flow.yaml", known_error_codes=known_error_codes)
    return list(caught.value.findings)


def the_finding_in(text: str) -> Finding:
    (finding,) = findings_in(text)
    return finding


def test_a_workflow_of_litecone_is_refused_with_the_command_that_converts_it() -> None:
    finding = the_finding_in(
        """
        {"name": "x", "start_step": "one", "steps": {"one": {"id": "one", "agent_name": "A", "next_step": null}}}
        """
    )
    assert (finding.path, finding.line) == ("start_step", 2)
    assert "trunkline import --from litecone FILE" in finding.message


HEAD = "name: flow\nsteps:\n  a: {agent: A}\n"
STEP = HEAD + "  b: {agent: A, "


def unmarked(text: str) -> tuple[str, int | None, int | None]:
    """The text without its mark, and the line and column where the mark stood."""
    before, mark, after = text.partition("▸")
    if not mark:
        return text, None, None
    return before + after, before.count("\n") + 1, len(before) - before.rfind("\n")


@pytest.mark.parametrize(
    ("marked", "path", "message"),
    [
        ("", "", "a workflow must be a mapping with 'name' and 'steps', but it is empty"),
        ("▸- a\n- b", "", "a workflow must be a mapping with 'name' and 'steps', but it is a list"),
        ("▸just text", "", "but it is 'just text'"),
        ("name: x\nsteps: ▸{}", "steps", "'steps' is missing or empty"),
        ("name: x\nsteps:▸", "steps", "'steps' is missing or empty"),
        ("▸name: x", "", "'steps' is missing or empty"),
        ("name: x\nsteps: ▸[a, b]", "steps", "must be a mapping of step names to steps"),
        ("▸steps: {a: {agent: A}}", "", "'name' is missing; add it, such as name: my-workflow"),
        (
            "name: ▸5\nsteps: {a: {agent: A}}",
            "name",
            "'name' must be a string of 1 to 255 characters, but it is 5",
        ),
        ("name: ▸''\nsteps: {a: {agent: A}}", "name", "'name' must be a string of 1 to 255 characters"),
        ("name: ▸a/b\nsteps: {a: {agent: A}}", "name", "must not contain '/'"),
        ("name: ▸.\nsteps: {a: {agent: A}}", "name", "must not be '.' or '..'"),
        ("name: ▸..\nsteps: {a: {agent: A}}", "name", "must not be '.' or '..'"),
        (
            HEAD + "▸max_paralel: 3",
            "max_paralel",
            "unknown key 'max_paralel'; did you mean 'max_parallel'?",
        ),
        (HEAD + "▸zzz: 3", "zzz", "unknown key 'zzz'; known keys are name, description, input"),
        (HEAD + "max_parallel: ▸0", "max_parallel", "a whole number from 1 to 10,000, but it is 0"),
        (HEAD + "max_parallel: ▸true", "max_parallel", "but it is true"),
        (HEAD + "deadline: ▸60", "deadline", "but it is 60; use 60s or 60ms"),
        (HEAD + "deadline: ▸soon", "deadline", "'soon' is not a duration"),
        (HEAD + "deadline: ▸0s", "deadline", "must be greater than zero"),
        (HEAD + "input: ▸string", "input", "'input' must be a mapping, but it is 'string'"),
        (HEAD + "input:\n  type: ▸objekt", "input.type", "not valid JSON Schema"),
        (HEAD + "input: ▸{$ref: 'http://example.com/s'}", "input", "not valid JSON Schema"),
        (
            HEAD + "  b:▸",
            "steps.b",
            "a step must be a mapping with 'agent', 'skill', 'workflow', 'steps' or an action, but it is empty",
        ),
        (HEAD + "  b: ▸{}", "steps.b", "'agent' is missing; add it, such as agent: MyAgent"),
        (
            HEAD + "  ▸b-c: {agent: A}",
            "steps.b-c",
            "invalid step name 'b-c'; use up to 64 letters, digits",
        ),
        (HEAD + "  ▸9b: {agent: A}", "steps['9b']", "not starting with a digit"),
        (HEAD + "  ▸'in': {agent: A}", "steps.in", "a reserved word in CEL"),
        (STEP + "▸neds: [a]}", "steps.b.neds", "did you mean 'needs'?"),
        (STEP + "needs: ▸a}", "steps.b.needs", "must be a list, but it is 'a'; use needs: [a]"),
        (STEP + "needs: [a, ▸5]}", "steps.b.needs[1]", "must list step names"),
        (STEP + "needs: [▸c]}", "steps.b.needs[0]", "unknown step 'c'"),
        (STEP + "needs: [a, ▸b]}", "steps.b.needs[1]", "a step cannot need itself"),
        (STEP + "timeout: ▸5x}", "steps.b.timeout", "'5x' is not a duration"),
        (STEP + "reply_timeout: ▸0s}", "steps.b.reply_timeout", "must be greater than zero"),
        (STEP + "context: ▸runs}", "steps.b.context", "did you mean 'run'?"),
        (STEP + "delivery: ▸once}", "steps.b.delivery", "at_least_once or at_most_once"),
        (STEP + "on_error: ▸stop}", "steps.b.on_error", "fail or continue, but it is 'stop'"),
        (STEP + "on_error: {goto: ▸b}}", "steps.b.on_error.goto", "cannot continue at itself"),
        (STEP + "on_error: {goto: ▸c}}", "steps.b.on_error.goto", "unknown step 'c'"),
        (STEP + "on_error: ▸{step: a}}", "steps.b.on_error", "'goto' is missing"),
        (STEP + "when: ▸5}", "steps.b.when", "must be an expression such as input.count > 3"),
        (STEP + "when: ▸''}", "steps.b.when", "must be an expression"),
        (STEP + "when: input.x +▸}", "steps.b.when", "the expression is incomplete"),
        (STEP + 'when: "${ ▸inptu.x }"}', "steps.b.when", "did you mean 'input'?"),
        (STEP + "when: ▸size(input.x)}", "steps.b.when", "must be true or false, but this is int"),
        (STEP + "retry: ▸3}", "steps.b.retry", "'retry' must be a mapping, but it is 3"),
        (STEP + "retry: {max_attempts: ▸1001}}", "steps.b.retry.max_attempts", "from 1 to 1,000"),
        (STEP + "retry: {▸attempts: 2}}", "steps.b.retry.attempts", "did you mean 'max_attempts'?"),
        (STEP + "retry: {jitter: ▸'yes'}}", "steps.b.retry.jitter", "must be true or false"),
        (STEP + "retry: {backoff: ▸lineal}}", "steps.b.retry.backoff", "did you mean 'linear'?"),
        (STEP + "retry: {max_delay: ▸10ms}}", "steps.b.retry.max_delay", "shorter than 'first_delay'"),
        (STEP + "retry: {on: [5xx, ▸42]}}", "steps.b.retry.on[1]", "42 is neither an HTTP status"),
        (STEP + "retry: {on: [▸true]}}", "steps.b.retry.on[0]", "a retry condition must be no_answer"),
        (STEP + "retry: {on: [▸'6xx']}}", "steps.b.retry.on[0]", "a retry condition must be no_answer"),
        (STEP + "input: {x: '${ ▸steps.b.output }'}}", "steps.b.input.x", "cannot read its own output"),
        (STEP + "input: ['${ ▸steps.aa.output }']}", "steps.b.input[0]", "did you mean 'a'?"),
        (STEP + "input: {▸'${ x }': 1}}", "steps.b.input['${ x }']", "expressions are not allowed in keys"),
        (HEAD + "output: Result ${▸ steps.b.output", "output", "the expression has no closing brace"),
        (HEAD + "output: {x: {y: '${ ▸nope }'}}", "output.x.y", "unknown name 'nope'"),
    ],
)
def test_a_mistake_is_found_at_its_place(marked: str, path: str, message: str) -> None:
    text, line, column = unmarked(marked)
    finding = next(finding for finding in findings_in(text) if message in finding.message)
    assert (finding.path, finding.line, finding.column) == (path, line, column)


def test_a_position_inside_a_block_is_found() -> None:
    finding = the_finding_in("""\
        name: flow
        steps:
          a:
            agent: A
            input:
              text: |
                A text of several lines,
                and ${ input.topic + missing } in it.
        """)
    assert (finding.path, finding.line, finding.column) == ("steps.a.input.text", 8, 30)


def test_a_position_inside_an_expression_of_several_lines_is_found() -> None:
    finding = the_finding_in("""\
        name: flow
        steps:
          a:
            agent: A
            when: |
              input.topic == 'tea' &&
              input.count >
                missing
        """)
    assert (finding.path, finding.line, finding.column) == ("steps.a.when", 8, 9)


def test_a_position_behind_escapes_is_that_of_the_value() -> None:
    finding = the_finding_in("name: flow\nsteps: {a: {agent: A, when: \"'\\t' == missing\"}}")
    assert (finding.line, finding.column) == (2, 29)


def test_findings_in_json_have_their_places_too() -> None:
    finding = the_finding_in('{"name": "flow",\n "steps": {"a": {"agent": "A",\n   "needs": ["b"]}}}')
    assert (finding.path, finding.line, finding.column) == ("steps.a.needs[0]", 3, 14)


def test_all_mistakes_are_reported_together_in_the_order_of_the_text() -> None:
    found = findings_in("""\
        name: flow
        stpes: 1
        steps:
          a:
            agnt: A
            needs: [b]
          a:
            agent: A
            when: input.x +
          c: {agent: C, timeout: 3}
        output: ${ steps.d.output }
        """)
    assert [(finding.line, finding.path) for finding in found] == [
        (2, "stpes"),
        (7, "steps.a"),
        (9, "steps.a.when"),
        (10, "steps.c.timeout"),
        (11, "output"),
    ]


def test_the_error_itself_names_file_line_column_and_the_number_of_others() -> None:
    with pytest.raises(Invalid, match=r"^flow\.yaml:1:1: nme: unknown key 'nme'.* \(and 3 more\)$"):
        load_workflow("nme: x\nstep: 1", source="flow.yaml")


def test_a_mistake_in_every_step_is_reported_a_hundred_times_at_most() -> None:
    steps = "\n".join(
        f"  s{n}: {{agent: A, neds: [x], needs: [y{n}], when: zz.x{n} > 1}}" for n in range(3_000)
    )
    assert len(findings_in(f"name: flow\nsteps:\n{steps}")) == 100


def test_an_agent_that_is_not_registered_is_a_warning() -> None:
    loaded = load_workflow(
        "name: flow\nsteps:\n  a: {agent: Writr}\n  b: {agent: B}\n", known_agents=["Writer", "B"]
    )
    assert loaded.warnings == [
        Finding(
            path="steps.a.agent",
            message="the agent 'Writr' is not registered; did you mean 'Writer'?",
            line=3,
            column=14,
        )
    ]


def test_an_agent_without_a_similar_name_gets_the_command_that_registers_it() -> None:
    (warning,) = load_workflow("name: flow\nsteps: {a: {agent: A}}", known_agents=[]).warnings
    assert "trunkline agents create" in warning.message


def test_error_codes_are_checked_when_they_are_known() -> None:
    text = "name: flow\nsteps: {a: {agent: A, retry: {on: [agent_timout, any, no_answer, 5xx, -32000]}}}"
    load_workflow(text)
    (finding,) = findings_in(text, known_error_codes=["agent_timeout"])
    assert finding.message == "unknown error code 'agent_timout'; did you mean 'agent_timeout'?"
    assert (finding.path, finding.line, finding.column) == ("steps.a.retry.on[0]", 2, 36)


def test_more_expressions_than_can_be_compiled_in_seconds_are_refused() -> None:
    found = findings_in(
        "name: flow\nsteps: {a: {agent: A}}\noutput: ${ "
        + f"'{'x' * 1_900}' == '' }}${{" * 1_100
        + " 1 + 1 }"
    )
    assert found[0].message == "the workflow has too many expressions; use plain paths, which are not counted"
