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
from trunkline.cli.app import COMMANDS, build_app
from trunkline.cli.lazy_imports import lazy_module

CLI = Path(trunkline.cli.__file__).parent


class Lazy(NamedTuple):
    file: str
    name: str
    module: str
    type_checked: str | None


def lazy_modules() -> Iterator[Lazy]:
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


NAMED = list(lazy_modules())


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


LIST_MODULES = """
import sys
known = set(sys.modules)
{code}
print(*(set(sys.modules) - known), sep="\\n", file=sys.stderr)
"""
COMMAND = "from trunkline.cli.app import run_command_line; run_command_line({arguments!r})"
# Slow to import, and of no use to a command that asks a server or prints help.
SERVER = (
    "fastapi",
    "starlette",
    "pydantic",
    "aiohttp",
    "msgspec",
    "asyncio",
    "trunkline.api",
    "trunkline.services",
)
STORES = ("apsw", "sqlalchemy", "trunkline.stores", "trunkline.settings", "trunkline.workflow")


def imported_by(code: str) -> set[str]:
    ended = subprocess.run(
        [sys.executable, "-c", LIST_MODULES.format(code=code)],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    return set(ended.stderr.split())


def own(modules: set[str]) -> set[str]:
    return {module for module in modules if module.startswith("trunkline")}


def test_the_package_of_the_command_line_imports_nothing() -> None:
    assert imported_by("import trunkline.cli") <= {"trunkline", "trunkline.cli", "__future__"}


def test_the_overview_imports_no_command_no_client_and_no_markdown_parser() -> None:
    loaded = imported_by(COMMAND.format(arguments=["--help"]))
    assert own(loaded) == {
        "trunkline",
        "trunkline.cli",
        "trunkline.cli.app",
        "trunkline.cli.exit_codes",
        "trunkline.cli.failures",
        "trunkline.cli.inputs",
        "trunkline.cli.lazy_imports",
        "trunkline.cli.rendering",
        "trunkline.cli.rendering.output",
    }
    slow = (*SERVER, *STORES, "markdown_it", "pygments", "http.client", "email")
    assert [module for module in loaded if module.startswith(slow)] == []
    # Of these, cyclopts and rich import most; the number depends on the version of Python.
    assert len(loaded) < 240


@pytest.mark.parametrize("group", ["runs", "agents", "agents migrate", "workflows", "secrets", "inbox"])
def test_help_of_a_group_imports_no_other_group_and_no_part_of_the_server(group: str) -> None:
    words = group.split()
    loaded = imported_by(COMMAND.format(arguments=[*words, "--help"]))
    commands = "trunkline.cli.commands."
    groups = {module.removeprefix(commands).split(".")[0] for module in loaded if module.startswith(commands)}
    # Agents and workflows are published by the same commands.
    assert groups - {"publish"} == {words[0]}
    assert [module for module in loaded if module.startswith((*SERVER, *STORES))] == []


@pytest.mark.parametrize(
    "arguments", [["runs", "list"], ["agents", "show", "a"], ["run", "w", "--wait", "1s"]]
)
def test_a_request_to_a_server_imports_no_part_of_it_and_no_rich(arguments: list[str]) -> None:
    loaded = imported_by(COMMAND.format(arguments=[*arguments, "--url", "http://127.0.0.1:9"]))
    assert "trunkline.cli.rest.client" in loaded
    assert [module for module in loaded if module.startswith((*SERVER, *STORES, "rich"))] == []


def test_the_summary_of_a_command_is_what_it_says_about_itself() -> None:
    said = build_app()
    for name, (_, summary) in COMMANDS.items():
        assert said[name].help.strip().partition("\n\n")[0] == summary


def test_up_imports_no_other_command(tmp_path: Path) -> None:
    # It ends at a setting that is wrong, after everything that it imports to read its settings.
    loaded = imported_by(COMMAND.format(arguments=["up", "--data", str(tmp_path), "--retention", "forever"]))
    commands = {module for module in loaded if module.startswith("trunkline.cli.commands.")}
    assert commands == {"trunkline.cli.commands.deployment", "trunkline.cli.commands.deployment.serve"}


def test_a_command_that_works_on_the_store_loads_neither_the_bridge_nor_the_api(tmp_path: Path) -> None:
    loaded = imported_by(COMMAND.format(arguments=["keys", "list", "--data", str(tmp_path)]))
    assert "trunkline.stores.sqlite" in loaded
    unused = (
        "api",
        "bridge",
        "checker",
        "executor",
        "publishing",
        "transports",
        "wiring.serve",
        "wiring.system",
    )
    assert [
        module for module in loaded if module.startswith(tuple(f"trunkline.{name}" for name in unused))
    ] == []


COUNT_COLLECTIONS = """
import gc, sys
from trunkline.cli import main
sys.argv = {words!r}
try:
    main()
finally:
    # Those that look at more than the newest objects.
    print("older", [each["collections"] for each in gc.get_stats()[1:]], file=sys.stderr)
"""


@pytest.mark.parametrize("arguments", [["--help"], ["up", "--retention", "forever"]])
def test_no_search_for_garbage_goes_through_what_a_start_imports(arguments: list[str]) -> None:
    program = COUNT_COLLECTIONS.format(words=["trunkline", *arguments])
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60
    )
    assert ended.stderr.splitlines()[-1] == "older [0, 0]"
