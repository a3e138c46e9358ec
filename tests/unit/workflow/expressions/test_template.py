from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.jsontypes import Json
from trunkline.workflow import ExpressionError, Template
from trunkline.workflow.expressions.cel_compiler import CelCompiler
from trunkline.workflow.expressions.errors import CompileError
from trunkline.workflow.expressions.interpolation import ExpressionSource, split_expressions, strip_delimiters
from trunkline.workflow.expressions.plain_paths import Scope
from trunkline.workflow.expressions.template import Condition, TemplateCompiler
from trunkline.workflow.validation_report import ValidationReport

SCOPE: Scope = {
    "input": {"topic": "tea", "count": 3, "none": None, "list": [1, "x"], "flag": True, "text": "true"},
    "steps.a": {"output": {"text": "${ input.topic }"}},
}.__getitem__  # type: ignore[assignment] - narrower than Json, which is what a scope returns

plain_text = st.text().filter(lambda text: "${" not in text)
plain_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | plain_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(plain_text, inner, max_size=4),
    max_leaves=20,
)


def template(value: Json) -> Template:
    report = ValidationReport()
    compiled, _ = TemplateCompiler(CelCompiler(["a"]), report).template(value, ("input",))
    assert report.errors == []
    return compiled


def evaluated(value: Json) -> Json:
    return template(value).evaluate(SCOPE)


@given(plain_json)
def test_a_template_without_expressions_is_what_it_says(value: Json) -> None:
    compiled = template(value)
    assert compiled.evaluate(SCOPE) is value
    assert compiled.reads == frozenset()


@given(plain_json)
def test_a_value_goes_through_an_expression_unchanged(value: Json) -> None:
    assert template({"x": ["${ input.value }"]}).evaluate(lambda _: {"value": value}) == {"x": [value]}


@pytest.mark.parametrize(
    ("value", "result"),
    [
        ("${ input.count }", 3),
        ("${input.none}", None),
        ("${ input.list }", [1, "x"]),
        ("${ input.count > 2 }", True),
        (" ${ input.count }", " 3"),
        ("${ input.topic }${ input.count }", "tea3"),
        (
            "<${ input.none }|${ input.flag }|${ input.list }|${ {'a': 1.5} }>",
            '<null|true|[1,"x"]|{"a":1.5}>',
        ),
        ("$${ input.topic }", "${ input.topic }"),
        ("$${ x }: ${ input.topic }", "${ x }: tea"),
        ("$$${ input.topic }", "$${ input.topic }"),
        ("costs $5 and {braces}", "costs $5 and {braces}"),
        ("${ {'a': {'b': '}'}}.a.b }", "}"),
        ("${ '${ }' + \"}\" }", "${ }}"),
        ("${ r'\\d' + '''it's }''' }", "\\dit's }"),
        ("${ input.count // }\n + 1 }", 4),
        ("${ 'it\\'s }' }", "it's }"),
        ({"a": ["${ input.count }", {"b": "x${ input.count }"}], "c": 1}, {"a": [3, {"b": "x3"}], "c": 1}),
        ({"$secret": "slack-bot"}, {"$secret": "slack-bot"}),
    ],
)
def test_expressions_in_strings_become_values_or_text(value: Json, result: Json) -> None:
    assert evaluated(value) == result


def test_what_data_says_is_never_an_expression() -> None:
    assert evaluated({"text": "${ steps.a.output.text }"}) == {"text": "${ input.topic }"}
    assert evaluated("> ${ steps.a.output.text }") == "> ${ input.topic }"


def test_parts_without_expressions_are_not_copied() -> None:
    constant: Json = {"deep": [1, 2, 3]}
    result = evaluated({"constant": constant, "topic": "${ input.topic }"})
    assert isinstance(result, dict)
    assert result["constant"] is constant


def test_a_template_reads_what_all_its_expressions_read() -> None:
    assert template(["${ input.topic }", "x ${ steps.a.output.text + run.id }"]).reads == {
        "input",
        "steps.a",
        "run",
    }


def test_a_missing_key_fails_the_template() -> None:
    with pytest.raises(ExpressionError, match="input has no key 'nothing'"):
        evaluated({"a": "x ${ input.nothing }"})


def test_a_text_that_repeats_a_long_value_too_often_is_refused() -> None:
    compiled = template("${ input.long }" * 20)
    with pytest.raises(ExpressionError, match="larger than 64 MiB"):
        compiled.evaluate(lambda _: {"long": "x" * 4_000_000})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("${ input.topic", "no closing brace"),
        ("${ {'a': 1} ", "no closing brace"),
        ("${ input.x // }", "no closing brace"),
        ("${ 'text }", "no closing quote"),
        ("${ " + "1+" * 2000 + "1 }", "longer than 2,000 characters"),
        ("${ '" + "x" * 3000 + "' }", "longer than 2,000 characters"),
    ],
)
def test_an_expression_that_does_not_end_is_found(text: str, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        split_expressions(text)


@given(st.text(alphabet="${}'\"\\ab\n/r", max_size=60))
def test_splitting_loses_nothing(text: str) -> None:
    try:
        parts = split_expressions(text)
    except CompileError:
        return
    written = "".join(
        "${" + part.text + "}" if isinstance(part, ExpressionSource) else part for part in parts
    )
    assert written == text.replace("$${", "${")


@pytest.mark.parametrize(
    ("text", "source"),
    [
        (" input.x > 1 ", "input.x > 1"),
        ("${ input.x > 1 }", "input.x > 1"),
        ("${input.x} > ${input.y}", "${input.x} > ${input.y}"),
        ("${ input.x", "${ input.x"),
    ],
)
def test_a_condition_may_stand_in_braces_or_not(text: str, source: str) -> None:
    assert strip_delimiters(text) == source


@pytest.mark.parametrize(
    ("source", "decision"), [("input.flag", True), ("input.count > 3", False), ("true", True)]
)
def test_a_condition_decides(source: str, decision: bool) -> None:
    assert Condition(CelCompiler([]).compile_condition(source)).holds(SCOPE) is decision


@pytest.mark.parametrize(
    "source", ["input.text", "input.none", "input.count", "input.list", "dyn(input.count)"]
)
def test_only_true_or_false_decides_a_condition(source: str) -> None:
    condition = Condition(CelCompiler([]).compile_condition(source))
    with pytest.raises(ExpressionError, match="a condition must be true or false, but this is"):
        condition.holds(SCOPE)


def test_an_error_does_not_decide_a_condition() -> None:
    condition = Condition(CelCompiler([]).compile_condition("input.count > 'x'"))
    with pytest.raises(ExpressionError, match="the types do not match"):
        condition.holds(SCOPE)


def test_the_expressions_of_a_template_share_one_budget() -> None:
    text = "a" * 2_000_000
    # Each of them makes some 8 MB of the 64 MiB.
    parts: list[Json] = ["${ input.text + input.text }"] * 10
    assert len(str(template(parts[:5]).evaluate(lambda _: {"text": text}))) > 20_000_000
    with pytest.raises(ExpressionError, match="together with the other expressions"):
        template({"a": parts}).evaluate(lambda _: {"text": text})
