"""Lazy modules are named by text: what the type checker reads and what is imported at run time are the same."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

import trunkline.cli
from trunkline.cli.lazy_imports import lazy_module

CLI = Path(trunkline.cli.__file__).parent


class Lazy(NamedTuple):
    file: str
    name: str
    module: str
    type_checked: str | None


def lazies() -> Iterator[Lazy]:
    for file in sorted(CLI.rglob("*.py")):
        for block in ast.parse(file.read_text()).body:
            if isinstance(block, ast.If) and block.orelse and ast.unparse(block.test) == "TYPE_CHECKING":
                checked = dict(imported(block.body))
                for line in block.orelse:
                    assert isinstance(line, ast.Assign), ast.unparse(line)
                    name, call = ast.unparse(line.targets[0]), line.value
                    assert isinstance(call, ast.Call), ast.unparse(line)
                    module = ast.literal_eval(call.args[0])
                    yield Lazy(str(file.relative_to(CLI)), name, module, checked.get(name))


def imported(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for line in body:
        match line:
            case ast.Import(names=names):
                yield from ((each.asname or each.name, each.name) for each in names)
            case ast.ImportFrom(module=str(package), names=names):
                yield from ((each.asname or each.name, f"{package}.{each.name}") for each in names)
            case _:
                pass


NAMED = list(lazies())


@pytest.mark.parametrize("lazy", NAMED, ids=lambda lazy: f"{lazy.file}:{lazy.name}")
def test_a_lazy_module_is_the_one_that_the_type_checker_reads(lazy: Lazy) -> None:
    assert lazy.type_checked == lazy.module
    assert find_spec(lazy.module) is not None


def test_a_lazy_module_is_imported_by_its_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    module = lazy_module("colorsys")
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    assert "colorsys" not in sys.modules
    assert module.ONE_THIRD == import_module("colorsys").ONE_THIRD


def test_the_list_is_not_empty() -> None:
    assert "trunkline.settings" in {lazy.module for lazy in NAMED}


HELP_THEN_LIST_MODULES = """
import sys
from trunkline.cli.app import run_command_line
run_command_line(["--help"])
print(*sys.modules, sep="\\n", file=sys.stderr)
"""


def test_help_loads_no_part_of_the_server() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", HELP_THEN_LIST_MODULES], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = ended.stderr.split()
    assert "trunkline.cli.client" in loaded
    server = ("fastapi", "pydantic", "aiohttp", "trunkline.api", "trunkline.services", "trunkline.stores")
    assert [module for module in loaded if module.startswith(server)] == []
