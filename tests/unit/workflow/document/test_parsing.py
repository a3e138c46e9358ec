from __future__ import annotations

import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.workflow.document_values import values_with

from trunkline.errors import Finding, Invalid
from trunkline.jsontypes import Json
from trunkline.workflow.document.locations import SourceSpan
from trunkline.workflow.document.parsing import MAX_BYTES, locate_values, read_document


def refused(text: str | bytes) -> Finding:
    with pytest.raises(Invalid) as caught:
        read_document(text, "flow.yaml")
    (finding,) = caught.value.findings
    return finding


def test_only_true_and_false_are_booleans_and_dates_stay_text() -> None:
    value = read_document("on: yes\noff: no\nday: 2024-01-01\nt: true\nf: FALSE\nclock: 12:30:45", "x").value
    assert value == {
        "on": "yes",
        "off": "no",
        "day": "2024-01-01",
        "t": True,
        "f": False,
        "clock": "12:30:45",
    }


def test_numbers_and_null_are_those_of_the_core_schema() -> None:
    value = read_document(
        "[1, -2, 0x1F, 0o17, .5, 1e3, 1_000, 010, ~, null, '1', \"true\", +.5e-1, 1.]", "x"
    ).value
    assert value == [1, -2, 31, 15, 0.5, 1000.0, "1_000", 10, None, None, "1", "true", 0.05, 1.0]


def test_json_is_read_with_its_escapes() -> None:
    assert read_document('{"a": "\\ud83d\\ude00\\/\\u0000", "b": [1.5]}', "x").value == {
        "a": "😀/\0",
        "b": [1.5],
    }


def test_a_byte_order_mark_is_ignored() -> None:
    assert read_document(b"\xef\xbb\xbfa: 1", "x").value == {"a": 1}


@given(values_with(st.text()))
def test_json_objects_are_read_as_they_are(value: Json) -> None:
    document: Json = {"value": value}
    assert read_document(json.dumps(document), "x").value == document


@pytest.mark.parametrize(
    ("text", "line", "column", "part"),
    [
        ("a:\n\tb: 1", 2, 1, "YAML cannot be indented with tabs; use spaces"),
        ("a: 1\n---\nb: 2", 2, 1, "a second document starts here"),
        ("a: [1, 2\n", 2, 1, "close the bracket"),
        ("a: {b: ${ input.x }}", 1, 9, 'put expressions in quotes: "${ … }"'),
        ("a: 'x", 1, 6, "a closing quote is missing"),
        ("a: b: c", 1, 5, "a string that contains ': ' in quotes"),
        ("a: @x", 1, 4, "put a string that starts with @"),
        ("a: x\x01", 1, 5, "#x0001 is not allowed"),
        ("x: &a [1, *a]", 1, 11, "is inside its own anchor"),
        ("x: *a", 1, 4, "has no anchor"),
        ("? [a]\n: b", 1, 3, "a key must be a string"),
        ("a: 1\nb\nc: 2", 2, 1, "put ':' and a space after a key"),
        ("[" * 100_000, 1, 101, "nested deeper than 100 levels"),
        ('{"a":' * 200 + "1" + "}" * 200, 1, 501, "nested deeper than 100 levels"),
        (b"a: 1\nbc: \xff", 2, 5, "not UTF-8"),
    ],
)
def test_what_cannot_be_read_says_where_and_why(text: str | bytes, line: int, column: int, part: str) -> None:
    finding = refused(text)
    assert part in finding.message
    assert (finding.line, finding.column) == (line, column)


def test_the_first_finding_is_in_the_message_with_its_place() -> None:
    with pytest.raises(Invalid, match=r"^flow\.yaml:2:1: YAML cannot be indented with tabs; use spaces$"):
        read_document("a:\n\tb: 1", "flow.yaml")


def test_a_source_larger_than_the_limit_is_refused() -> None:
    assert "split the workflow" in refused("#" * (MAX_BYTES + 1)).message


@pytest.mark.parametrize("text", ["[" + "a, " * 501_000 + "]", '{"a": [' + "1," * 501_000 + "1]}"])
def test_more_values_than_memory_should_hold_are_refused(text: str) -> None:
    assert "more than 500,000 keys and values" in refused(text).message


def test_half_a_surrogate_pair_is_refused() -> None:
    finding = refused("a: 1\nb: \ud800")
    assert (finding.line, finding.column) == (2, 4)


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("a: 1\nb: 2\na: 3", 3, 1, "duplicate key 'a', first used in line 1; remove one of them"),
        (
            '{"a": 1,\n "b": {"c": 1, "c": 2}}',
            2,
            16,
            "duplicate key 'c', first used in line 2; remove one of them",
        ),
        ("1: x", 1, 1, "the key 1 is not a string; put it in quotes"),
        ("x:\n  true: x", 2, 3, "the key true is not a string; put it in quotes"),
        (
            "x: .nan",
            1,
            4,
            ".nan cannot be represented as a JSON number; put it in quotes to make it a string",
        ),
        ("x: 1e999", 1, 4, "the number 1e999 is out of range"),
        (
            f"x: {'9' * 5000}",
            1,
            4,
            "the number has 5000 characters, which is too long; put it in quotes to make it a string",
        ),
        (
            "x: !!python/object:os.system 1",
            1,
            4,
            "the tag tag:yaml.org,2002:python/object:os.system is not supported; remove it",
        ),
        ("x: !mine {a: 1}", 1, 4, "the tag !mine is not supported; remove it"),
        ("b: &b {x: 1}\nc: {<<: *b}", 2, 5, "merge keys (<<) are not supported; write the keys out"),
    ],
)
def test_what_can_be_read_but_is_wrong_is_found(text: str, line: int, column: int, message: str) -> None:
    (problem,) = read_document(text, "x").problems
    assert (problem.line, problem.column, problem.message) == (line, column, message)


def test_an_anchor_may_be_used_again() -> None:
    value = read_document("a: &r {max_attempts: 2}\nb: *r\nc: [*r, *r]", "x").value
    retry: Json = {"max_attempts": 2}
    assert value == {"a": retry, "b": retry, "c": [retry, retry]}


def laughs(levels: int, width: int) -> str:
    lines = ["a0: &a0 [" + ", ".join(["lol"] * width) + "]"]
    lines += [f"a{n}: &a{n} [" + ", ".join([f"*a{n - 1}"] * width) + "]" for n in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    "bomb",
    [
        laughs(9, 9),
        laughs(60, 2),
        f"a: &a {'x' * 10_000}\nb: [{', '.join(['*a'] * 1_000)}]",
        "a: &a [" + "x, " * 2_000 + "]\nb: [" + "*a, " * 2_000 + "]",
    ],
)
def test_aliases_that_multiply_are_refused_before_they_take_memory(bomb: str) -> None:
    tracemalloc.start()
    try:
        finding = refused(bomb)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "the aliases expand to more than the size limit" in finding.message
    assert peak < 8 * 1024 * 1024


def test_places_are_those_of_the_source() -> None:
    places = locate_values("é: 1\nsteps:\n  a: {needs: [x, y]}\n  日本: |\n    text\n")
    assert places[("é",)].value[:2] == (1, 4)
    assert places[("steps", "a")].key == SourceSpan(3, 3, 14, 15)
    assert places[("steps", "a", "needs", 1)].value[:2] == (3, 18)
    assert places[("steps", "日本")].value[:2] == (4, 7)
    assert places[()].value[:2] == (1, 1)


def test_positions_in_json_are_found_next_to_characters_that_yaml_rejects() -> None:
    places = locate_values('{"a": "\\ud83d\\ude00",\t"b": 1}')
    assert places[("b",)].value[:2] == (1, 28)
