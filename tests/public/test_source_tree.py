"""
The shape of `src/trunkline`: small folders, no import cycles, no oversized modules and classes, unique class names, few
fragments.

Imports for type checking count as imports. An `__init__.py` is no module of its folder here, and no fragment.
"""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Generator, Iterable, Mapping
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
MOST_MODULES_IN_A_FOLDER = 16
MOST_LINES_OF_A_MODULE = 600
MOST_LINES_OF_A_CLASS = 300
MOST_LINES_OF_A_FUNCTION = 100
FEW_LINES_OF_CODE = 30
MOST_MODULES_WITH_FEW_LINES = 49
MOST_REPEATED_CLASS_NAMES = 5
MOST_IMPORTS_INSIDE_FUNCTIONS_PER_1000_LINES = 0.4

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DOCUMENTED = (ast.Module, ast.ClassDef, *FUNCTIONS)


class Module:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.text = path.read_text()
        self.tree = ast.parse(self.text)
        parts = path.relative_to(SOURCE).with_suffix("").parts
        self.name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @cached_property
    def lines_of_code(self) -> int:
        """Without blank lines, comments and docstrings."""
        prose: set[int] = set()
        for node in ast.walk(self.tree):
            if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
                prose.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
        lines = enumerate(self.text.splitlines(), 1)
        return sum(
            1
            for number, line in lines
            if line.strip() and not line.lstrip().startswith("#") and number not in prose
        )

    def own_imports(self, *, inside_functions: bool) -> Generator[str]:
        """What it imports of Trunkline; the names are those of modules or of what they define."""
        functions = (node for node in ast.walk(self.tree) if isinstance(node, FUNCTIONS))
        roots: Iterable[ast.AST] = functions if inside_functions else (self.tree,)
        # A function inside a function is found twice.
        for node in {node for root in roots for node in ast.walk(root)}:
            match node:
                case ast.ImportFrom(module=str(module)) if module.partition(".")[0] == "trunkline":
                    yield from (f"{module}.{alias.name}" for alias in node.names)
                case ast.Import(names):
                    yield from (alias.name for alias in names if alias.name.partition(".")[0] == "trunkline")
                case _:
                    pass


@pytest.fixture(scope="module")
def modules() -> Mapping[str, Module]:
    found = (Module(path) for path in sorted((SOURCE / "trunkline").rglob("*.py")))
    return {module.name: module for module in found}


def test_no_folder_has_more_modules_than_can_be_surveyed(modules: Mapping[str, Module]) -> None:
    folders = Counter(
        module.path.parent.relative_to(SOURCE).as_posix()
        for module in modules.values()
        # A revision of the schema stays as it was released; there is one more with each change.
        if module.path.stem != "__init__" and module.path.parent.name != "versions"
    )
    crowded = {folder: number for folder, number in folders.items() if number > MOST_MODULES_IN_A_FOLDER}
    assert crowded == {}


def test_no_modules_import_each_other_in_a_cycle(modules: Mapping[str, Module]) -> None:
    graph: dict[str, set[str]] = defaultdict(set)
    for name, module in modules.items():
        for imported in module.own_imports(inside_functions=False):
            target = imported if imported in modules else imported.rpartition(".")[0]
            if target != name:
                graph[name].add(target)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as exc:
        pytest.fail(f"import cycle: {' -> '.join(exc.args[1])}")


def test_no_module_is_too_long(modules: Mapping[str, Module]) -> None:
    lengths = {name: module.text.count("\n") for name, module in modules.items()}
    assert {name: length for name, length in lengths.items() if length > MOST_LINES_OF_A_MODULE} == {}


def test_no_class_and_no_function_is_too_long(modules: Mapping[str, Module]) -> None:
    too_long = [
        f"{name}:{node.name} has {length} lines"
        for name, module in modules.items()
        for node in ast.walk(module.tree)
        if isinstance(node, (*FUNCTIONS, ast.ClassDef))
        and (length := (node.end_lineno or 0) - node.lineno + 1)
        > (MOST_LINES_OF_A_CLASS if isinstance(node, ast.ClassDef) else MOST_LINES_OF_A_FUNCTION)
    ]
    assert too_long == []


def test_few_class_names_are_defined_in_more_than_one_module(modules: Mapping[str, Module]) -> None:
    defined: dict[str, set[str]] = defaultdict(set)
    for name, module in modules.items():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef):
                defined[node.name].add(name)
    repeated = {name: sorted(where) for name, where in defined.items() if len(where) > 1}
    assert len(repeated) <= MOST_REPEATED_CLASS_NAMES, repeated


def test_few_modules_are_fragments(modules: Mapping[str, Module]) -> None:
    small = [
        name
        for name, module in modules.items()
        if module.path.stem != "__init__" and module.lines_of_code < FEW_LINES_OF_CODE
    ]
    assert len(small) <= MOST_MODULES_WITH_FEW_LINES, small


def test_imports_inside_functions_are_rare(modules: Mapping[str, Module]) -> None:
    inside = [
        f"{name} imports {imported}"
        for name, module in modules.items()
        for imported in module.own_imports(inside_functions=True)
    ]
    lines = sum(module.text.count("\n") for module in modules.values())
    assert len(inside) * 1000 / lines <= MOST_IMPORTS_INSIDE_FUNCTIONS_PER_1000_LINES, inside
