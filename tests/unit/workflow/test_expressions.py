from __future__ import annotations

import pytest

from trunkline.jsontypes import Json
from trunkline.workflow import ExpressionError
from trunkline.workflow.expressions.cel_compiler import CelCompiler, CelExpression
from trunkline.workflow.expressions.errors import CompileError
from trunkline.workflow.expressions.plain_paths import PlainPath, Scope

DATA: dict[str, Json] = {
    "input": {
        "topic": "tea",
        "count": 3,
        "ratio": 1.5,
        "list": [1, 2],
        "none": None,
        "flag": True,
        "odd key": {"x": 1},
        "items": [{"id": n, "tags": ["a", "b"]} for n in range(5)],
    },
    "run": {"id": "r1"},
    "steps.skipped": {"output": None, "status": "SKIPPED", "error": None},
    "steps.research": {
        "output": {"text": "hello", "data": {"score": 0.5}},
        "status": "COMPLETED",
        "error": None,
    },
}
SCOPE: Scope = DATA.__getitem__
ENGINE = CelCompiler(["research", "skipped", "if"])


def value_of(source: str) -> Json:
    return ENGINE.compile(source).evaluate(SCOPE)


def failure_of(source: str) -> str:
    with pytest.raises(ExpressionError) as caught:
        value_of(source)
    return caught.value.message


def refusal_of(source: str) -> CompileError:
    with pytest.raises(CompileError) as caught:
        ENGINE.compile(source)
    return caught.value


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("input.topic", "tea"),
        (" steps.research.output.text ", "hello"),
        ("steps.research.status", "COMPLETED"),
        ("input.list[1]", 2),
        ("input['odd key'].x", 1),
        ('input["odd key"]["x"]', 1),
        ("input.none", None),
        ("steps.skipped.output", None),
        ("run.id", "r1"),
        ("input", DATA["input"]),
    ],
)
def test_a_plain_path_needs_no_cel(source: str, value: Json) -> None:
    expression = ENGINE.compile(source)
    assert isinstance(expression, PlainPath)
    assert expression.evaluate(SCOPE) == value


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("input.count + 1", 4),
        ("input.ratio * 2.0", 3.0),
        ("steps.research.output.data.score < 0.8", True),
        ("input.count < 4.5", True),
        ("has(input.topic) && !has(input.nothing)", True),
        ("has(steps.research.output.data.score)", True),
        ("has(input.none)", True),
        ("has(input.nothing) ? input.nothing : 'none'", "none"),
        ("steps.skipped.output == null", True),
        ("steps.skipped.output != null && has(steps.skipped.output.text)", False),
        ("true || input.nothing", True),
        ("input.items.filter(i, i.id > 2).map(i, i.id)", [3, 4]),
        ("input.items.all(i, i.tags.exists(t, t == 'b'))", True),
        ("input.list.map(input, input * 2)", [2, 4]),
        ("input.list.map(x, x + .input.count)", [4, 5]),
        ("input.list.map(steps, steps + 1)", [2, 3]),
        ("[input.topic, null, {'k': [1.5, true]}]", ["tea", None, {"k": [1.5, True]}]),
        ("input['top' + 'ic']", "tea"),
        ("'tea' in input", False),
        ("'topic' in input", True),
        ("type(input.topic) == string", True),
        ("type(input.list) == string", False),
        ("input.list.map(string, string + 1)", [2, 3]),
        ("size(input.topic + 'é😀')", 5),
        ("{'a': input.list[0]}.a", 1),
        ("1u", 1),
        ("timestamp('2024-01-02T03:04:05Z')", "2024-01-02T03:04:05Z"),
        ("duration('90s')", "90s"),
        ("duration('-1500ms')", "-1.5s"),
        ("b'abc'", "YWJj"),
        ("'\\u0000'", "\0"),
        ("input.count // a comment with } and '\n + 1", 4),
        ("run.id + '!'", "r1!"),
    ],
)
def test_everything_else_is_cel(source: str, value: Json) -> None:
    expression = ENGINE.compile(source)
    assert isinstance(expression, CelExpression)
    assert expression.evaluate(SCOPE) == value


@pytest.mark.parametrize(
    ("source", "reads"),
    [
        ("input.topic", {"input"}),
        ("steps.research.output.text", {"steps.research"}),
        ("steps.research.output.text + input.topic + run.id", {"steps.research", "input", "run"}),
        ("'steps.research' + input.steps.research", {"input"}),
        ("input.list.map(steps, steps.research)", {"input"}),
        ("has(steps.skipped.output.a)", {"steps.skipped"}),
        (".steps.research.output == 1", {"steps.research"}),
        ("{'a': [steps.research.output]}.size() + steps.skipped.output", {"steps.research", "steps.skipped"}),
        ("1 + 2", set[str]()),
    ],
)
def test_what_an_expression_reads_is_known_exactly(source: str, reads: set[str]) -> None:
    assert ENGINE.compile(source).reads == reads


def test_only_what_is_read_is_asked_for() -> None:
    asked: list[str] = []

    def scope(name: str) -> Json:
        asked.append(name)
        return DATA[name]

    ENGINE.compile("steps.research.output.data.score < 0.8").evaluate(scope)
    assert asked == ["steps.research"]


def test_other_keys_do_not_matter() -> None:
    others: list[Json] = ["x\0y"] * 5_000
    data: Json = {"score": 1, "others": others}
    assert ENGINE.compile("input.score == 1 && [1].exists(x, x == 1)").evaluate(lambda _: data) is True


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("steps.research.output.txt", "steps.research.output has no key 'txt'; it has text, data"),
        ("steps.research.output.txt + ''", "steps.research.output has no key 'txt'; it has text, data"),
        ("input.list[2]", "input.list has 2 items, so there is no [2]"),
        ("input.list.first", "input.list is a list, so it has no 'first'"),
        ("input.topic[0]", "input.topic is text, so it has no 0"),
        ("input.flag.x", "input.flag is true or false, so it has no 'x'"),
        ("input.count.x", "input.count is a number, so it has no 'x'"),
        ("input.none.x", "input.none is null, so it has no 'x'; test input.none != null first"),
        (
            "steps.skipped.output.text",
            "steps.skipped.output is null (its step was skipped or failed), so it has no 'text'; test",
        ),
        (
            "has(steps.skipped.output.text)",
            "steps.skipped.output is null (its step was skipped or failed), so it has no 'text'; test",
        ),
        ("has(input.topic) ? input.nothing == 1 : false", "input has no key 'nothing'; it has "),
        ("input.items.map(i, i.nothing)", "the key 'nothing' does not exist; test it with has(…) first"),
        ("input.list[5] == 1", "index=5 size=2"),
        ("input.count / 0", "divide by zero"),
        ("9223372036854775807 + input.count", "integer overflow"),
        ("input.count + 1.5", "the types do not match, convert them with double(…), int(…) or string(…)"),
        ("input.topic && true", "the types do not match"),
        ("input.topic ? 1 : 2", "the types do not match"),
        ("1.0 / 0.0", "the result is inf, which cannot be represented in JSON"),
        ("[0.0 / 0.0]", "the result is nan, which cannot be represented in JSON"),
        ("{1: 2}", "JSON keys must be strings"),
        ("{'a': {true: 2}}", "JSON keys must be strings"),
        ("type(input)", "the result is a type"),
        ("{input.topic: 1, 'tea': 2}", "duplicate key"),
        ("int(input.topic)", ""),
    ],
)
def test_an_expression_without_a_value_says_why(source: str, message: str) -> None:
    assert message in failure_of(source)


def test_an_expression_error_names_its_source() -> None:
    with pytest.raises(ExpressionError) as caught:
        value_of("input.nothing")
    assert caught.value.source == "input.nothing"
    assert str(caught.value).endswith("in ${ input.nothing }")


def test_many_keys_are_not_all_shown() -> None:
    scope: Scope = lambda _: {f"key{n}": n for n in range(12)}  # noqa: E731 - a scope is any callable
    with pytest.raises(ExpressionError, match=r"it has key0, .*, key9 and 2 more"):
        ENGINE.compile("input.x").evaluate(scope)


@pytest.mark.parametrize("value", [2**64, 2**70, -(2**63) - 1])
def test_a_number_beyond_64_bits_is_passed_on_but_not_computed_with(value: int) -> None:
    scope: Scope = lambda _: {"big": value}  # noqa: E731 - a scope is any callable
    assert ENGINE.compile("input.big").evaluate(scope) == value
    with pytest.raises(ExpressionError):
        ENGINE.compile("input.big + 1").evaluate(scope)


def test_text_with_a_nul_character_is_passed_on_but_never_cut() -> None:
    scope: Scope = lambda _: {"text": "a\0b", "keys": {"k\0": 1}}  # noqa: E731 - a scope is any callable
    assert ENGINE.compile("input.text").evaluate(scope) == "a\0b"
    for source in ("input.text + ''", "input.keys == 1"):
        with pytest.raises(ExpressionError, match="NUL"):
            ENGINE.compile(source).evaluate(scope)


@pytest.mark.parametrize(
    ("source", "line", "column", "message"),
    [
        ("steps.reserch.output", 1, 1, "unknown step 'reserch'; did you mean 'research'?"),
        ("  steps.zzz.output", 1, 3, "unknown step 'zzz'; the steps are the keys under 'steps'"),
        ("input.x == steps.reserch.output", 1, 12, "unknown step 'reserch'; did you mean 'research'?"),
        ("input.x ==\n  steps.reserch", 2, 3, "unknown step 'reserch'; did you mean 'research'?"),
        ("steps['research']", 1, 1, "a step is read by its name: steps.NAME.output"),
        ("size(steps)", 1, 6, "a step is read by its name: steps.NAME.output"),
        ("topic + 'x'", 1, 1, "unknown name 'topic'; an expression can read"),
        ("inputs == 1", 1, 1, "unknown name 'inputs'; did you mean 'input'?"),
        ("'abc'.charAt(0)", 1, 7, "unknown function 'charAt'; CEL does not have this function"),
        ("1 +", 1, 4, "the expression is incomplete"),
        ("", 1, 1, "the expression is incomplete"),
        ("   ", 1, 4, "the expression is incomplete"),
        ("'a' == 1", 1, 5, "invalid CEL: found no matching overload"),
        ("input.a; 1", 1, 8, "invalid CEL"),
        ("99999999999999999999", 1, 1, "invalid CEL: invalid int literal"),
        ("input.in", 1, 7, "invalid CEL"),
        ("a" * 2001, 1, 1, "longer than 2,000 characters"),
        ("+".join(["1"] * 100), 1, 1, "CEL allows 32 levels"),
        ("(" * 500 + "1" + ")" * 500, 1, 1, "CEL allows 32 levels"),
    ],
)
def test_what_does_not_compile_says_where_and_why(source: str, line: int, column: int, message: str) -> None:
    refusal = refusal_of(source)
    assert message in refusal.message
    assert (refusal.line, refusal.column) == (line, column)


def test_a_step_may_have_a_reserved_word_for_its_name() -> None:
    scope: Scope = lambda _: {"output": 1}  # noqa: E731 - a scope is any callable
    assert ENGINE.compile("steps.if.output == 1").evaluate(scope) is True


@pytest.mark.parametrize("source", ["'text'", "1 + 1", "input.list.map(x, x)", "null"])
def test_a_condition_that_can_never_decide_does_not_compile(source: str) -> None:
    with pytest.raises(CompileError, match="a condition must be true or false"):
        ENGINE.compile_condition(source)
