"""Actions: what a definition can contain, and which options only calls have."""

from __future__ import annotations

import json

import jsonschema_rs
import pytest
import yaml

from trunkline.errors import Finding, Invalid
from trunkline.workflow import (
    SleepUntil,
    compile_workflow,
    definition_from_canonical,
    load_workflow,
    output_reads,
    workflow_json_schema,
)

SCHEMA = jsonschema_rs.validator_for(workflow_json_schema())


def text_of(step: str) -> str:
    return f"name: flow\nsteps:\n  a: {{agent: A}}\n  s: {step}\n"


def findings_in(step: str) -> list[Finding]:
    with pytest.raises(Invalid) as caught:
        load_workflow(text_of(step))
    return list(caught.value.findings)


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        ("{set: {total: '${ input.price * 2.0 }', list: [1, {deep: true}]}}", "set"),
        ("{set: {a: 1}, needs: [a], when: input.ok, for_each: [1], on_error: continue, deadline: 1h}", "set"),
        ("{sleep: 2h}", "sleep"),
        ("{sleep: '${ input.delay }', needs: [a]}", "sleep"),
        ("{sleep: {until: '2026-12-24T08:00:00+01:00'}}", "sleep"),
        ("{sleep: {until: '${ input.send_at }'}, retry: {max_attempts: 2}}", "sleep"),
        (
            "{wait_for: {event: paid, key: '${ input.order }', match: '${ event.data.ok }', timeout: 3d}}",
            "wait_for",
        ),
        ("{wait_for: {any: [a, b], count: 3, timeout: '${ input.t }', on_timeout: continue}}", "wait_for"),
        ("{wait_for: {signal: go, match: 'steps.a.output.ok'}, for_each: [1]}", "wait_for"),
        ("{ask: {title: Approve}}", "ask"),
        (
            "{ask: {title: '${ input.t }', text: T, assignees: '${ input.all }', due: '${ input.due }'}}",
            "ask",
        ),
        (
            (
                "{ask: {title: T, options: [a b, c], form: {type: object, properties: {a: {type: string}}},"
                " assignees: [ada, '${ steps.a.output.boss }'], due: 2d, escalate: [{after: 1d, to: [boss]},"
                " {after: 2d, to: '${ input.all }'}], timeout: 5d, on_timeout: continue, required: 2,"
                " exclude_starter: true}, retry: {max_attempts: 2}, for_each: [1]}"
            ),
            "ask",
        ),
        ("{ask: {title: T, due: '2026-12-24T08:00:00+01:00'}}", "ask"),
    ],
)
def test_an_action_is_read_and_kept_as_it_was_meant(step: str, kind: str) -> None:
    loaded = load_workflow(text_of(step))
    assert compile_workflow(loaded.definition).steps["s"].kind == kind
    assert definition_from_canonical(loaded.canonical) == loaded.definition
    assert load_workflow(loaded.canonical).canonical == loaded.canonical
    assert SCHEMA.is_valid(yaml.safe_load(text_of(step)))
    assert SCHEMA.is_valid(json.loads(loaded.canonical))


def test_the_canonical_form_of_a_sleep_is_the_one_that_people_write() -> None:
    loaded = load_workflow(text_of("{sleep: {until: '2026-12-24T08:00:00Z'}}"))
    assert loaded.definition.steps["s"].sleep == SleepUntil("2026-12-24T08:00:00Z")
    assert json.loads(loaded.canonical)["steps"]["s"] == {
        "agent": "", "sleep": {"until": "2026-12-24T08:00:00Z"},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("step", "path", "message"),
    [
        ("{set: 5}", "steps.s.set", "'set' must be a mapping, but it is 5"),
        ("{set: {}}", "steps.s.set", "'set' must have 1 to 1,000 values, but it has 0"),
        ("{set: {a: 1}, agent: A}", "steps.s.set", "a step has either 'agent' or 'set'"),
        ("{set: {a: 1}, sleep: 2h}", "steps.s.sleep", "a step has either 'set' or 'sleep'"),
        ("{sleep: 2h, workflow: other}", "steps.s.sleep", "a step has either 'workflow' or 'sleep'"),
        (
            "{set: {a: 1}, input: {}}",
            "steps.s.input",
            "'input' has no effect in a step with 'set'; remove it",
        ),
        ("{sleep: 2h, timeout: 1h}", "steps.s.timeout", "'timeout' has no effect in a step with 'sleep'"),
        ("{set: {a: {$secret: token}}}", "steps.s.set.a.$secret", "a secret is only allowed in the input"),
        ("{sleep: }", "steps.s.sleep", "'sleep' must be a duration such as 2h, or {until: TIME}"),
        ("{sleep: 5}", "steps.s.sleep", "but it is 5; use 5s"),
        ("{sleep: 5x}", "steps.s.sleep", "'5x' is not a duration"),
        ("{sleep: {}}", "steps.s.sleep", "'until' is missing"),
        ("{sleep: {for: 2h, until: '2026-12-24T08:00:00Z'}}", "steps.s.sleep.for", "unknown key 'for'"),
        ("{sleep: {until: tomorrow}}", "steps.s.sleep.until", "'tomorrow' is not a time in ISO 8601"),
        ("{sleep: {until: '2026-12-24T08:00:00'}}", "steps.s.sleep.until", "has no time zone; add Z for UTC"),
        ("{wait_for: paid}", "steps.s.wait_for", "'wait_for' must be a mapping"),
        ("{wait_for: {}}", "steps.s.wait_for", "'wait_for' needs 'event', 'any' or 'signal'"),
        ("{wait_for: {event: a, signal: b}}", "steps.s.wait_for.signal", "has either 'event' or 'signal'"),
        ("{wait_for: {signal: b, key: c}}", "steps.s.wait_for.key", "'key' has no effect with 'signal'"),
        ("{wait_for: {any: []}}", "steps.s.wait_for.any", "'any' must have 1 to 20 event types"),
        ("{wait_for: {any: [a, 5]}}", "steps.s.wait_for.any[1]", "'any' must list event types, but it is 5"),
        ("{wait_for: {event: a, count: 0}}", "steps.s.wait_for.count", "'count' must be a whole number"),
        ("{wait_for: {event: a, timeout: 5}}", "steps.s.wait_for.timeout", "'timeout' must be a duration"),
        ("{wait_for: {event: a, on_timeout: continue}}", "steps.s.wait_for.on_timeout", "without 'timeout'"),
        ("{wait_for: {event: a, match: event.data.}}", "steps.s.wait_for.match", "invalid CEL"),
        ("{wait_for: {event: a, match: '1 + 1'}}", "steps.s.wait_for.match", "must be true or false"),
        ("{wait_for: {event: '${ event.type }'}}", "steps.s.wait_for.event", "event"),
        ("{ask: Approve}", "steps.s.ask", "'ask' must be a mapping"),
        ("{ask: {}}", "steps.s.ask", "'title' is missing"),
        ("{ask: {title: T, who: me}}", "steps.s.ask.who", "unknown key 'who'"),
        ("{ask: {title: T}, agent: A}", "steps.s.ask", "a step has either 'agent' or 'ask'"),
        (
            "{ask: {title: T}, reply_timeout: 1h}",
            "steps.s.reply_timeout",
            "has no effect in a step with 'ask'",
        ),
        ("{ask: {title: T, text: ''}}", "steps.s.ask.text", "'text' must be a string of 1 to 50,000"),
        ("{ask: {title: T, options: []}}", "steps.s.ask.options", "'options' must have 1 to 50 answers"),
        ("{ask: {title: T, options: [a, 5]}}", "steps.s.ask.options[1]", "but it is 5"),
        ("{ask: {title: T, options: [a, a]}}", "steps.s.ask.options[1]", "'options' has 'a' twice"),
        ("{ask: {title: T, assignees: ada}}", "steps.s.ask.assignees", "use assignees: [ada]"),
        ("{ask: {title: T, assignees: []}}", "steps.s.ask.assignees", "'assignees' must have 1 to 100 names"),
        ("{ask: {title: T, assignees: [5]}}", "steps.s.ask.assignees[0]", "must list people or groups"),
        ("{ask: {title: T, due: soon}}", "steps.s.ask.due", "'soon' is not a duration"),
        ("{ask: {title: T, due: 5}}", "steps.s.ask.due", "use 5s"),
        ("{ask: {title: T, escalate: {after: 1d}}}", "steps.s.ask.escalate", "'escalate' must be a list"),
        ("{ask: {title: T, escalate: []}}", "steps.s.ask.escalate", "must have 1 to 20 entries"),
        ("{ask: {title: T, escalate: [1d]}}", "steps.s.ask.escalate[0]", "{after: 1d, to: [boss]}"),
        ("{ask: {title: T, escalate: [{after: 1d}]}}", "steps.s.ask.escalate[0]", "'to' is missing"),
        ("{ask: {title: T, escalate: [{after: x, to: [a]}]}}", "steps.s.ask.escalate[0].after", "'x' is not"),
        ("{ask: {title: T, timeout: 0s}}", "steps.s.ask.timeout", "'timeout' must be greater than zero"),
        ("{ask: {title: T, on_timeout: continue}}", "steps.s.ask.on_timeout", "without 'timeout'"),
        ("{ask: {title: T, required: 21}}", "steps.s.ask.required", "a whole number from 1 to 20"),
        ("{ask: {title: T, exclude_starter: 1}}", "steps.s.ask.exclude_starter", "must be true or false"),
        ("{ask: {title: T, form: {type: objekt}}}", "steps.s.ask.form.type", "is not valid JSON Schema"),
        ("{ask: {title: T, form: {$ref: '#/nowhere'}}}", "steps.s.ask.form", "form"),
        ("{ask: {title: '${ steps.none.output }'}}", "steps.s.ask.title", "unknown step 'none'"),
        ("{set: {a: '${ steps.none.output }'}}", "steps.s.set.a", "unknown step 'none'"),
        ("{sleep: '${ steps.s.output }'}", "steps.s.sleep", "a step cannot read its own output"),
    ],
)
def test_a_mistake_in_an_action_is_reported_where_it_is(step: str, path: str, message: str) -> None:
    (finding,) = findings_in(step)
    assert finding.path == path
    assert message in finding.message
    assert finding.line is not None
    assert finding.column is not None


def test_the_schema_refuses_what_saving_refuses() -> None:
    for step in (
        "{set: {a: 1}, agent: A}",
        "{set: {}}",
        "{sleep: 5}",
        "{sleep: 2h, input: 1}",
        "{sleep: 2h, set: {a: 1}}",
        "{wait_for: {}}",
        "{wait_for: {event: a, signal: b}}",
        "{wait_for: {signal: b, key: c}}",
        "{wait_for: {event: a, on_timeout: continue}}",
        "{ask: {}}",
        "{ask: {title: T, options: [a, a]}}",
        "{ask: {title: T, assignees: ada}}",
        "{ask: {title: T, escalate: [{after: 1d}]}}",
        "{ask: {title: T, on_timeout: continue}}",
        "{ask: {title: T}, agent: A}",
    ):
        assert not SCHEMA.is_valid(yaml.safe_load(text_of(step)))


def test_a_form_whose_cost_has_no_limit_is_refused_when_it_is_saved() -> None:
    part = {"a0": {"type": "string"}}
    part |= {
        f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n - 1}"}, {"$ref": f"#/$defs/a{n - 1}"}]}
        for n in range(1, 20)
    }
    form = json.dumps({"$ref": "#/$defs/a19", "$defs": part})
    (finding,) = findings_in(f"{{ask: {{title: T, form: {form}}}}}")
    assert (finding.path, "the form is too complex" in finding.message) == ("steps.s.ask.form", True)


def test_the_form_of_a_step_checks_data_and_says_where_it_is_wrong() -> None:
    form = "{type: object, properties: {n: {type: number}}}"
    loaded = load_workflow(text_of(f"{{ask: {{title: T, form: {form}}}}}"))
    checks = compile_workflow(loaded.definition).steps["s"].form
    assert checks is not None
    assert checks.check({"n": 1}) == []
    assert [finding.path for finding in checks.check({"n": "x"})] == ["data.n"]


def test_a_step_waits_for_the_steps_that_its_action_reads() -> None:
    definition = load_workflow(text_of("{set: {text: '${ steps.a.output.text }'}}")).definition
    assert compile_workflow(definition).steps["s"].needs == ("a",)
    assert [(read.step, read.place) for read in output_reads(definition)] == [("a", "steps.s.set.text")]
