"""litecone's conditions mean the same in CEL."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.importing import cel
from trunkline.importing.litecone.conditions import Operand, translate
from trunkline.importing.report import NotTranslatable
from trunkline.jsontypes import Json, JsonObject
from trunkline.workflow.expressions.cel_compiler import CelCompiler

DATA: JsonObject = {
    "score": 0.9,
    "count": 10,
    "status": "ok",
    "message": "an error occurred",
    "valid": True,
    "draft": False,
    "nothing": None,
    "empty": "",
    "errors": ["e1", "e2"],
    "results": [{"score": 0.95}],
    "of-a-kind": {"in": 1},
}


def resolve(source: str) -> Operand:
    parts = source.replace("[", ".[").split(".")
    keys = [int(part[1:-1]) if part.startswith("[") else part for part in parts]
    return Operand(cel.path("input", keys), tuple(cel.present("input", keys)))


def decide(expression: str, data: JsonObject = DATA) -> Json:
    condition = translate(expression, resolve)
    compiled = CelCompiler(()).compile_condition(condition)
    return compiled.evaluate(lambda _: data)


@pytest.mark.parametrize(
    ("expression", "holds"),
    [
        ("${score} > 0.8", True),
        ("${score} > 1", False),
        ("${count} >= 10.0", True),
        ("${count} <= -1", False),
        ("10 > 0.8", True),
        ("'a' < 'b'", True),
        ("1 == 'a'", False),
        ("true", True),
        ("False", False),
        ("${status} == 'ok'", True),
        ('${status} != "ok"', False),
        ("${valid} == true and ${score} > 0.8", True),
        ("${valid} and ${draft}", False),
        ("${valid} or ${draft}", True),
        ("not ${draft} and not not ${valid}", True),
        ("(${draft} or ${valid}) and ${count} == 10", True),
        ("'error' in ${message}", True),
        ("'e1' in ${errors}", True),
        ("'e3' not in ${errors}", True),
        ("${message} contains 'error'", True),
        ("${errors} contains 'e2'", True),
        ("${status} in ['ok', 'done']", True),
        ("${count} in [1, 2]", False),
        ("${results[0].score} >= 0.9", True),
        ("${of-a-kind.in} == 1", True),
        ("${errors} != null and len(${errors}) > 0", True),
        ("${nothing} == null", True),
        ("${nothing}", False),
        ("${empty}", False),
        ("${errors}", True),
        ("${count}", True),
        ("'a text with and, or and not' == ${status}", False),
    ],
)
def test_a_condition_decides_as_there(expression: str, holds: bool) -> None:
    assert decide(expression) is holds


@pytest.mark.parametrize(
    ("expression", "holds"),
    [
        ("${missing}", False),
        ("not ${missing}", True),
        ("${missing} == null", True),
        ("${missing} != null", False),
        ("${missing} == 'x'", False),
        ("${missing} != 'x'", True),
        ("${missing} > 1", False),
        # What cannot be worked out makes the whole false, unless it is never reached.
        ("not (${missing} > 1)", False),
        ("${missing} > 1 or ${valid}", False),
        ("${valid} or ${missing} > 1", True),
        ("${draft} and ${missing} > 1", False),
        ("not (${draft} and ${missing} > 1)", True),
        ("'x' in ${missing}", False),
        ("'x' not in ${missing}", False),
        ("${missing} in ['x', null]", True),
        ("${results[3].score} > 0.5", False),
        ("${results[0].other} == null", True),
        ("${score} == ${missing}", False),
    ],
)
def test_what_is_missing_is_null_and_what_cannot_be_worked_out_is_false(expression: str, holds: bool) -> None:
    assert decide(expression) is holds


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("${score} >", "is incomplete"),
        ("(${score} > 1", "is incomplete"),
        ("${score} > 1)", "')' where it is not understood"),
        ("", "is incomplete"),
        ("${score} && true", "something unknown at '&& true'"),
        ("${score} + 1 > 2", "something unknown at '+ 1 > 2'"),
        ("1 < ${score} < 2", "more than two values in a chain"),
        ("(1 < 2) == true", "compares a comparison"),
        ("${score} like 'x'", "'like' where it is not understood"),
        ("__import__('os')", "'__import__' where it is not understood"),
        ("${a} in 'text'", "in a literal string or number"),
        ("${a} in [${b}]", "something other than plain values"),
        ("${a} in [[1]]", "something other than plain values"),
        ("'it\\'s' == ${a}", "something unknown at"),
        ("(" * 100 + "true" + ")" * 100, "nested more than 30 levels deep"),
        ("(" * 5_000, "more than 4,000 characters"),
        (" or ".join(["${a} > 1"] * 200), "more than 2,000 characters in CEL"),
    ],
)  # fmt: skip
def test_what_has_no_counterpart_is_refused_with_its_place(expression: str, why: str) -> None:
    with pytest.raises(NotTranslatable) as refused:
        translate(expression, resolve)
    assert why in refused.value.message
    assert refused.value.fix


@pytest.mark.parametrize("expression", ["${valid} == 1", "1 == ${valid}", "${draft} == 0", "${draft} != 1"])
def test_a_boolean_equals_the_number_that_it_stands_for(expression: str) -> None:
    assert decide(expression)


NAMES = ("score", "count", "status", "valid", "draft", "nothing", "missing", "errors")
ATOMS = st.one_of(
    st.sampled_from(NAMES).map(lambda name: f"${{{name}}}"),
    st.tuples(
        st.sampled_from(NAMES),
        st.sampled_from(["==", "!="]),
        st.sampled_from(["1", "'ok'", "null", "true", "0.9"]),
    ).map(lambda parts: f"${{{parts[0]}}} {parts[1]} {parts[2]}"),
    st.tuples(st.sampled_from(["score", "count", "missing"]), st.sampled_from(["<", ">="])).map(
        lambda parts: f"${{{parts[0]}}} {parts[1]} 5"
    ),
)
EXPRESSIONS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        inner.map(lambda one: f"not ({one})"),
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(
            lambda parts: f"({parts[0]}) {parts[1]} ({parts[2]})"
        ),
    ),
    max_leaves=6,
)


@given(EXPRESSIONS)
def test_any_condition_decides_as_the_language_that_litecone_is_written_in(expression: str) -> None:
    try:
        decided = decide(expression)
    except NotTranslatable:
        return
    source = expression
    for name in NAMES:
        source = source.replace(f"${{{name}}}", f"DATA.get({name!r})")
    source = source.replace("null", "None").replace("true", "True")
    try:
        expected = bool(eval(source, {"DATA": DATA}))  # noqa: S307 - made above
    except TypeError:
        expected = False
    assert decided is expected
