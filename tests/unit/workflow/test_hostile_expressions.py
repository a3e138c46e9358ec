"""Expensive expressions: each ends with an error, or with its value, within its limits."""

from __future__ import annotations

import json
import random
import subprocess
import sys

import pytest
from cel_expr_python import cel
from hypothesis import given
from hypothesis import strategies as st

from trunkline.jsontypes import Json, JsonObject
from trunkline.workflow import ExpressionError
from trunkline.workflow.expressions.cel_compiler import CelCompiler
from trunkline.workflow.expressions.cost_limits import CostEstimate, measure
from trunkline.workflow.expressions.errors import CompileError
from trunkline.workflow.expressions.syntax_tree import read_tree, variable_reads

THOUSAND: list[Json] = [1] * 1_000
LONG_TEXT = "a" * 5_000_000


def nested(depth: int) -> Json:
    value: Json = []
    for _ in range(depth):
        value = [value]
    return value


DATA: JsonObject = {
    "list": THOUSAND,
    "short": THOUSAND[:95],
    "longer": [*THOUSAND, 1],
    "map": {str(n): n for n in range(1_001)},
    "rows": [THOUSAND for _ in range(10)],
    "text": "a" * 1_000,
    "long": LONG_TEXT,
    "nested": nested(500),
    "pattern": "(a?){1000}" * 1_000,
    "count": 1,
}

TOO_MUCH = "could create more than 64 MiB"
TOO_LONG = "the limit is 1,000"
TOO_DEEP = "32 levels"

REFUSED = {
    # What doubles in every round.
    "['a']" + ".map(x, x + x + x + x + x + x + x + x)" * 9: TOO_MUCH,
    "[input.text]" + ".map(x, x + x)" * 16: TOO_MUCH,
    "[input.text]" + ".map(x, x + x)" * 16 + "[0].size()": TOO_MUCH,
    "[input.text]" + ".map(x, x + x)" * 16 + "[0].matches('b')": TOO_MUCH,
    "[input.list]" + ".map(x, x + x)" * 12: TOO_MUCH,
    "[0]" + ".map(x, {'a': x, 'b': x})" * 20: TOO_MUCH,
    "[0]" + ".map(x, [x, x])" * 20 + ".size()": TOO_MUCH,
    "[input.text]" + ".map(x, [x, x][0] + x)" * 18: TOO_MUCH,
    "[input.text]" + ".map(x, true ? x + x : x)" * 18: TOO_MUCH,
    "[input.text]" + ".map(x, {'k': x + x}.k)" * 16: TOO_MUCH,
    # What takes the square of its list, or more.
    "input.longer.map(x, x)": TOO_LONG,
    "input.longer.all(x, true)": TOO_LONG,
    "input.map.filter(k, true)": TOO_LONG,
    "(input.list + input.list).map(x, x)": TOO_LONG,
    "[input.longer][0].map(x, x)": TOO_LONG,
    "[input.longer].map(l, l.map(x, x))": TOO_LONG,
    "(true ? input.longer : []).map(x, x)": TOO_LONG,
    "dyn(input.longer).map(x, x)": TOO_LONG,
    "input['long' + 'er'].map(x, x)": "",
    "input.rows.map(r, r.map(x, x))": TOO_MUCH,
    "input.list.map(a, input.list.map(b, b))": TOO_MUCH,
    "input.list.all(a, input.list.all(b, input.list.all(c, true)))": "",
    "input.list.filter(a, input.list.filter(b, true).size() > 0)": TOO_MUCH,
    "input.list" + ".map(x, x)" * 9: TOO_MUCH,
    "input.short.map(a, input.short.map(b, {'a': input.short}))": TOO_MUCH,
    "input.list.map(x, input.long)": TOO_MUCH,
    "input.list.all(x, input.long == input.long)": TOO_MUCH,
    # What repeats something large.
    "[" + ",".join(["input.long"] * 150) + "]": TOO_MUCH,
    "input.long" + " + input.long" * 20: TOO_MUCH,
    "{" + ",".join(f"'{n}': input.long" for n in range(100)) + "}": TOO_MUCH,
    # What is deep.
    "input.nested == 1": "nested deeper than 200 levels",
    "(" * 900 + "1" + ")" * 900: TOO_DEEP,
    "[" * 900 + "1" + "]" * 900: TOO_DEEP,
    "+".join(["1"] * 999): TOO_DEEP,
    "input" + "[input]" * 200: TOO_DEEP,
    "(true ? 1 : " * 120 + "1" + ")" * 120: TOO_DEEP,
    "!(" * 600 + "true" + ")" * 600: TOO_DEEP,
    "[1].map(a, " * 40 + "a" + ")" * 40: TOO_DEEP,
    # What is long.
    "-" * 5_000 + "1": "longer than 2,000 characters",
    # What runs away elsewhere.
    "'a'.matches(input.pattern)": "regular expression",
    "'a'.matches('((((a{100}){100}){100}){100})')": "regular expression",
    "duration('999999999999h')": "above maximum",
    "timestamp(99999999999999)": "overflow",
    "9223372036854775807 * 9223372036854775807": "overflow",
    # What looks for a way out.
    "__import__('os').system('id')": "unknown function '__import__'",
    "input.__class__.__mro__": "no key '__class__'",
    "open('/etc/passwd')": "unknown function 'open'",
    "eval('1')": "unknown function 'eval'",
    "timestamp('2024-01-01T00:00:00Z').getHours('../../etc/passwd')": "Invalid timezone",
    "google.protobuf.Any{type_url: 'file:///etc/passwd'}": "",
    "cel.bind(x, input.list, x)": "",
    "input.count; input.text": "invalid CEL",
    "steps": "a step is read by its name",
    "environ.HOME": "unknown name 'environ'",
}  # fmt: skip

ALLOWED: dict[str, Json] = {
    "input.list.map(x, x).size()": 1_000,
    "input.list.filter(x, x > 0).map(x, x + 1)[999]": 2,
    "input.short.map(a, input.short.filter(b, b == a).size()).size()": 95,
    "input.rows.all(r, r.exists(x, x == 1))": True,
    "input.long.matches('(a*)*b')": False,
    "size(input.long)": 5_000_000,
    "input.longer.size() + input.map.size()": 2_002,
    "-" * 1_500 + "1": 1,
    " || ".join(["input.count == 2"] * 100): False,
}


def outcome(source: str) -> str:
    try:
        CelCompiler([]).compile(source).evaluate(lambda _: DATA)
    except (CompileError, ExpressionError) as exc:
        return exc.message
    return "evaluated"


@pytest.mark.parametrize(("source", "reason"), REFUSED.items(), ids=lambda text: text[:40])
def test_a_hostile_expression_is_refused(source: str, reason: str) -> None:
    message = outcome(source)
    assert message != "evaluated"
    assert reason in message


@pytest.mark.parametrize(("source", "value"), ALLOWED.items(), ids=lambda text: str(text)[:40])
def test_a_large_but_honest_expression_is_evaluated(source: str, value: Json) -> None:
    assert CelCompiler([]).compile(source).evaluate(lambda _: DATA) == value


def test_one_long_text_among_many_short_ones_may_be_mapped() -> None:
    texts: list[Json] = [{"text": "x" * 1_000_000}, *({"text": "x"} for _ in range(900))]
    result = CelCompiler([]).compile("input.texts.map(t, t.text)").evaluate(lambda _: {"texts": texts})
    assert isinstance(result, list)
    assert len(result) == 901


def written(rng: random.Random, depth: int, variables: list[str]) -> str:
    """An expression made by chance, from what can grow."""
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(
            ["input.list", "input.text", "input.rows", "input.object", "'text'", "1", *variables * 3]
        )
    inner = [written(rng, depth - 1, variables) for _ in range(2)]
    variable = "uvwxyz"[len(variables)]
    forms = [
        f"({inner[0]} + {inner[1]})",
        f"[{inner[0]}, {inner[1]}]",
        f"{{'a': {inner[0]}, 'b': {inner[1]}}}",
        f"(input.list.size() > {rng.randrange(8)} ? dyn({inner[0]}) : dyn({inner[1]}))",
        f"dyn({inner[0]}).map({variable}, {written(rng, depth - 1, [*variables, variable])})",
        f"dyn({inner[0]}).filter({variable}, true)",
        f"dyn({inner[0]})[0]",
        f"dyn({inner[0]}).a",
    ]
    return rng.choice(forms)


@given(st.randoms(use_true_random=False))
def test_the_size_of_a_result_is_never_underestimated(rng: random.Random) -> None:
    data: JsonObject = {
        "list": [1, 2, 3, 4],
        "text": "abcdefgh",
        "rows": [["x", "yy"], ["zzz"], {"a": "v" * 50}],
        "object": {"a": ["q"], "b": {"a": 1}},
    }
    source = written(rng, 4, [])
    try:
        result = CelCompiler([]).compile(f"[{source}][0]").evaluate(lambda _: data)
    except (CompileError, ExpressionError):
        return
    tree = read_tree(cel.NewEnv(variables={"input": cel.Type.DYN}).compile(f"[{source}][0]").serialize())
    weights = {(root, keys): measure(data[keys[0]]) for root, keys, _ in variable_reads(tree)}
    assert measure(result).size <= CostEstimate(weights).total(tree)


CHILD = """
import json, resource, sys
from trunkline.workflow import ExpressionError
from trunkline.workflow.expressions.cel_compiler import CelCompiler
from trunkline.workflow.expressions.errors import CompileError
sources, data = json.load(sys.stdin)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for source in sources:
    try:
        CelCompiler([]).compile(source).evaluate(lambda _: data)
    except (CompileError, ExpressionError):
        pass
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss has another unit elsewhere")
def test_all_of_them_together_take_no_more_than_64_mib() -> None:
    cases = json.dumps([[*REFUSED, *ALLOWED], {**DATA, "nested": []}])
    child = subprocess.run(
        [sys.executable, "-c", CHILD], input=cases, text=True, capture_output=True, check=True
    )
    assert int(child.stdout) < 64 * 1024
