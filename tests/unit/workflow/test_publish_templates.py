"""The templates of `publish`: what they can read, and what is stored of them."""

from __future__ import annotations

import pytest

from trunkline.errors import Invalid
from trunkline.jsontypes import JsonObject
from trunkline.workflow import compile_workflow, load_workflow
from trunkline.workflow.output_reads import output_reads


def text_of(publish: str) -> str:
    return f"name: flow\nsteps: {{a: {{agent: A}}}}\npublish: {publish}\n"


def test_templates_are_kept_as_they_were_written() -> None:
    loaded = load_workflow(
        text_of("{input: {q: '${ run.message.text }'}, artifacts: {r: '${ steps.a.output }'}}")
    )
    assert b'"input":{"q":"${ run.message.text }"}' in loaded.canonical
    compiled = compile_workflow(loaded.definition)
    assert compiled.publish.input is not None
    scope: JsonObject = {"run": {"message": {"text": "hi"}, "correlation_id": "c"}}
    assert compiled.publish.input.evaluate(scope.__getitem__) == {"q": "hi"}
    assert [(read.step, read.place) for read in output_reads(loaded.definition)] == [
        ("a", "publish.artifacts.r")
    ]


@pytest.mark.parametrize(
    ("publish", "message"),
    [
        ("{input: '${ input.q }'}", "cannot read 'input'"),
        ("{input: {q: ['${ steps.a.output }']}}", "cannot read 'steps.a'"),
        ("{input: '${ run.id }'}", "cannot read 'run.id'"),
        ("{input: '${ run }'}", "cannot read 'run'"),
        ("{input: '${ run.message. }'}", ""),
        ("{input: {$secret: s}}", "a secret is only allowed"),
        ("{artifacts: {r: '${ steps.b.output }'}}", "'b'"),
        ("{artifacts: {r: {$secret: s}}}", "a secret is only allowed"),
        ("{artifacts: {'': x}}", "'publish.artifacts' is invalid"),
        ("{artifacts: [a]}", "'publish.artifacts' is invalid"),
    ],
)
def test_what_a_template_cannot_read_is_an_error(publish: str, message: str) -> None:
    with pytest.raises(Invalid) as caught:
        load_workflow(text_of(publish))
    assert message in str([finding.message for finding in caught.value.findings])
