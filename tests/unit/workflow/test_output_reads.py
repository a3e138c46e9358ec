"""What the expressions of a workflow read of steps' outputs."""

from __future__ import annotations

from trunkline.workflow import load_workflow, output_reads

TEXT = b"""
name: w
steps:
  a:
    agent: A
  b:
    agent: B
    for_each: ${ steps.a.output.data.items }
    when: ${ steps.a.output.data.ok && item.x > 1 }
    input:
      title: "About ${ steps.a.output.text } and ${ has(steps.a.output.artifacts) }"
      list: ["${ steps.a.output['data'].list[0].x }", "${ steps.a.status }", "${ item.x }"]
  c:
    agent: C
    input: {all: "${ steps.b.output.map(o, o.text) }", first: "${ steps.b.output[0].text }", it: "${ input.x }"}
output: ${ steps.c.output }
"""


def test_every_place_is_found_with_what_it_reads() -> None:
    definition = load_workflow(TEXT, source="w.yaml").definition
    found = [(read.step, read.keys, read.place) for read in output_reads(definition)]
    assert found == [
        ("a", ("data", "items"), "steps.b.for_each"),
        ("a", ("data", "ok"), "steps.b.when"),
        ("a", ("text",), "steps.b.input.title"),
        ("a", ("artifacts",), "steps.b.input.title"),
        ("a", ("data", "list"), "steps.b.input.list[0]"),
        ("b", (), "steps.c.input.all"),
        ("b", (), "steps.c.input.first"),
        ("c", (), "output"),
    ]
