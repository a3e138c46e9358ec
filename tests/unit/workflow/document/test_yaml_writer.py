"""Definitions that were saved as JSON, written as YAML."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.unit.workflow.document_values import values_with

from trunkline.jsontypes import Json
from trunkline.workflow.document.parsing import read_document
from trunkline.workflow.document.yaml_writer import MAX_CHARACTERS, write_yaml

LETTER = r"""
{"name": "letter", "deadline": "5m", "steps": {
  "write": {"agent": "Writer", "input": {"n": 1.0, "big": 1E+2, "of": [], "with": {}, "not": null},
    "needs": ["a", "b c"], "when": "steps.a.output.n > 3"},
  "say it": {"agent": "true", "input": {"text": "${ input.topic }", "note": "a: b", "lines": "One\n\n  Two #2\n"}},
  "each": [{"a": 1, "b": [[2]]}, "-", "\ud83d\ude00", "\u202e"]
}}
"""
WRITTEN = r"""name: letter
deadline: 5m
steps:
  write:
    agent: Writer
    input:
      n: 1.0
      big: 1E+2
      of: []
      with: {}
      not: null
    needs:
      - a
      - b c
    when: steps.a.output.n > 3
  "say it":
    agent: "true"
    input:
      text: ${ input.topic }
      note: "a: b"
      lines: |
        One

          Two #2
  each:
    - a: 1
      b:
        - - 2
    - "-"
    - "😀"
    - "\u202e"
"""


def test_it_reads_like_a_file_written_by_hand_in_the_same_order() -> None:
    assert write_yaml(LETTER) == WRITTEN


@given(values_with(st.text() | st.text("ab \n#:-$ {}|>'\"", max_size=12)))
@example("first\n  second\n\n")
@example("...")
@example([["\n"], {"": "~"}])
def test_it_means_the_same(value: Json) -> None:
    document: Json = {"value": value}
    written = write_yaml(json.dumps(document))
    assert written is not None
    assert read_document(written, "x").value == document


@pytest.mark.parametrize(
    "source",
    [
        "name: yaml already",
        "{name: yaml, too: 1}",
        '{"broken": ',
        '{"n": 0.%s}' % ("1" * 50),
        '{"n": Infinity}',
        '{"long": "%s"}' % ("x" * MAX_CHARACTERS),
        '{"deep": %s}' % ("[" * 100_000),
    ],
    ids=lambda source: source[:20],
)
def test_what_is_no_json_or_cannot_be_said_in_yaml_stays_as_it_is(source: str) -> None:
    assert write_yaml(source) is None
