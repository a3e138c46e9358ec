"""Outputs are compared with the schema of their step, and JSON inside of texts is found."""

from __future__ import annotations

import pytest

from trunkline.bridge.calls.embedded_json import embedded_values
from trunkline.bridge.calls.output_check import FOUND_IN_TEXT, check_output
from trunkline.jsontypes import Json, JsonObject, decode, encode
from trunkline.workflow import InputSchema

SCORE: JsonObject = {
    "type": "object",
    "properties": {"score": {"type": "number"}},
    "required": ["score"],
}
FENCED = 'Here you are:\n```json\n{"score": 3}\n```\nHave a nice day!'


def check(output: Json, schema: JsonObject = SCORE, *, is_data: bool = False) -> tuple[Json, list[str]]:
    checked = check_output(InputSchema(schema, "output.data"), encode(output), is_data=is_data)
    return decode(checked.output), checked.errors


def test_data_that_matches_is_left_as_it_is() -> None:
    output = b'{"text":"ok",  "data":{"score":1}}'
    checked = check_output(InputSchema(SCORE, "output.data"), output, is_data=False)
    assert checked == (output, [], ())


def test_errors_say_where_the_output_is_wrong() -> None:
    _, errors = check({"data": {"score": "high"}})
    assert errors == ['output.data.score: "high" is not of type "number"']


def test_an_answer_without_json_has_no_data() -> None:
    assert check({"text": "no idea"})[1] == ["output.data is missing: the answer has no JSON"]


@pytest.mark.parametrize(
    "text",
    [
        FENCED,
        'I think that {"score": 3} is right.',
        '```\n{"score": 3}\n```',
        '```{"score": 3}```',
        'First [1], then {"note": 1}, at last {"score": 3}!',
        'A draft: {"score": 1}\nThe answer: {"score": 3}',
        'A draft: {"score": {"of": 2}} and a broken {"score": 4, with {"score": 3}',
        '{"score": 1}\n```json\n{"score": 3}\n```\n{"score": 2}',
    ],
)
def test_json_inside_of_a_text_becomes_the_data(text: str) -> None:
    output, errors = check({"text": text})
    assert (output, errors) == ({"text": text, "data": {"score": 3}}, [])


def test_json_that_was_found_is_a_warning() -> None:
    checked = check_output(InputSchema(SCORE, "output.data"), encode({"text": FENCED}), is_data=False)
    assert checked.warnings == (FOUND_IN_TEXT,)


def test_data_that_does_not_match_gives_way_to_json_in_the_text_that_does() -> None:
    output, errors = check({"text": FENCED, "data": {"title": "x"}})
    assert (output, errors) == ({"text": FENCED, "data": {"score": 3}}, [])


def test_a_text_is_the_data_of_a_schema_that_expects_one() -> None:
    assert check({"text": "blue"}, {"type": "string", "enum": ["blue"]})[0] == {
        "text": "blue",
        "data": "blue",
    }


def test_the_whole_output_is_checked_where_the_data_is_the_output() -> None:
    assert check({"score": 3}, is_data=True) == ({"score": 3}, [])
    assert check(FENCED, is_data=True) == ({"score": 3}, [])
    assert check({"data": {"score": 3}}, is_data=True)[1] == ['output.data: "score" is a required property']


def test_an_output_that_is_no_json_is_an_error() -> None:
    checked = check_output(InputSchema(SCORE, "output.data"), b'{"data": 1e', is_data=False)
    assert checked.errors[0].startswith("output cannot be read as JSON")


@pytest.mark.parametrize(
    "text",
    ["{" * 100_000, "[" * 100_000 + "]" * 100_000, '{"a":' * 50_000, "```" * 50_000, '{"a": NaN} ' * 50_000],
)
def test_a_hostile_text_is_read_a_few_times_at_most(text: str) -> None:
    assert len([*embedded_values(text)]) <= 400
