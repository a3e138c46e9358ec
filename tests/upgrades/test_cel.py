"""What `trunkline.workflow.expressions` relies on in CEL beyond compiling and evaluating."""

from __future__ import annotations

import pytest
from cel_expr_python import cel

from trunkline.workflow.expressions.syntax_tree import (
    VariableRead,
    has_comprehension,
    read_tree,
    variable_reads,
)

ENVIRONMENT = cel.NewEnv(variables={"input": cel.Type.DYN, "steps.a": cel.Type.DYN})


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("input.x + steps.a.y[0]", [VariableRead("input", ("x",)), VariableRead("steps.a", ("y",))]),
        ("has(input.q)", [VariableRead("input", ("q",), only_tested=True)]),
        ("input['key']", [VariableRead("input", ("key",))]),
        ("{'a': input.x, 'b': [steps.a]}", [VariableRead("input", ("x",)), VariableRead("steps.a", ())]),
        (
            "input.xs.filter(v, v.k == input.k)",
            [VariableRead("input", ("xs",)), VariableRead("input", ("k",))],
        ),
    ],
)
def test_the_serialised_form_of_an_expression_says_what_it_reads(
    source: str, expected: list[VariableRead]
) -> None:
    assert list(variable_reads(read_tree(ENVIRONMENT.compile(source).serialize()))) == expected


def test_a_macro_is_serialised_as_a_comprehension() -> None:
    assert has_comprehension(read_tree(ENVIRONMENT.compile("input.xs.map(v, v.k)").serialize()))
    assert not has_comprehension(read_tree(ENVIRONMENT.compile("input.xs[0].k").serialize()))


def test_an_evaluation_error_is_a_value_of_its_own_type_whose_plain_value_is_its_text() -> None:
    value = ENVIRONMENT.compile("input.x / 0").eval(data={"input": {"x": 1}})
    assert value.type() == cel.Type.ERROR
    assert value.plain_value() == "INVALID_ARGUMENT: divide by zero"


def test_a_missing_key_is_named_in_the_error() -> None:
    value = ENVIRONMENT.compile("input.x").eval(data={"input": {}})
    assert 'Key not found in map : "x"' in str(value.plain_value())


def test_a_compile_error_names_its_place_and_the_unknown_name() -> None:
    with pytest.raises(RuntimeError, match=r"ERROR: <input>:1:5: undeclared reference to 'nope'"):
        ENVIRONMENT.compile("1 + nope")
