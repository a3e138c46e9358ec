"""
The list of safety rules still fits the code, the tests and the documentation.

That each test notices when its rule is gone is shown by `make sabotage`, which takes minutes.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import sysconfig
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from tests.sabotage.all_rules import RULES, page
from tests.sabotage.rule import Rule

ROOT = Path(__file__).parents[2]
RUFF = Path(sysconfig.get_path("scripts")) / "ruff"
PAGE = ROOT / "docs/sabotage.md"

each_rule = pytest.mark.parametrize("rule", [pytest.param(rule, id=rule.name) for rule in RULES])


@cache
def functions_of(file: str) -> set[str]:
    found = ast.walk(ast.parse((ROOT / file).read_text()))
    return {node.name for node in found if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


@each_rule
def test_a_rule_can_be_taken_away_and_the_program_still_be_compiled(rule: Rule) -> None:
    path, broken = rule.broken(ROOT)
    compile(broken, path, "exec")
    assert ast.dump(ast.parse(broken)) != ast.dump(ast.parse((ROOT / path).read_text()))


def test_what_takes_a_rule_away_uses_only_names_that_exist(tmp_path: Path) -> None:
    """A test that fails because of an unknown name would not have noticed the missing rule."""
    for rule in RULES:
        (tmp_path / f"{rule.name}.py").write_text(rule.broken(ROOT)[1])
    checked = subprocess.run(
        [RUFF, "check", "--isolated", "--select", "F821", "--output-format", "concise", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout


@each_rule
def test_the_tests_that_catch_it_are_there(rule: Rule) -> None:
    assert rule.caught_by
    for test in rule.caught_by:
        file, _, name = test.partition("::")
        assert name.partition("[")[0] in functions_of(file), test


def test_the_parameters_of_the_tests_that_catch_it_are_there() -> None:
    """A test that is not found would keep `make sabotage` from checking any rule."""
    parametrized = sorted({test for rule in RULES for test in rule.caught_by if "[" in test})
    collected = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *parametrized],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert collected.returncode == 0, collected.stdout[-2000:]


def test_every_rule_has_a_name_of_its_own() -> None:
    assert [name for name, number in Counter(rule.name for rule in RULES).items() if number > 1] == []


def test_the_page_is_the_list() -> None:
    assert PAGE.read_text() == page()
