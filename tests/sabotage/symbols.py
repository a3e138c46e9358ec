"""Where the symbols that rules name are defined: `trunkline.machine.decide:decide` in the source under `src`."""

from __future__ import annotations

import ast
import re
from collections.abc import Generator
from pathlib import Path
from typing import NamedTuple

_SOURCE = "src"
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class LocatedSymbol(NamedTuple):
    # Relative to the tree.
    path: str
    module: ast.Module
    symbol: ast.AST


def locate(root: Path, symbol: str) -> LocatedSymbol:
    """
    Find a function, method, class or constant by `module:qualified.name`, or a module by its name alone.

    If the symbol is no longer in its module, the only other module that defines it is used, so that moving code
    does not require changing the rules.
    """
    module, _, name = symbol.partition(":")
    path = _path(root, module)
    found = None if path is None else _in_file(root, path, name)
    if found is not None:
        return found
    elsewhere = [
        found for path in _mentioning(root, name) if (found := _in_file(root, path, name)) is not None
    ]
    if len(elsewhere) != 1:
        where = ", ".join(each.path for each in elsewhere) or "nowhere else"
        raise LookupError(f"{symbol} is not defined there; {name} is defined in: {where}.")
    return elsewhere[0]


def _path(root: Path, module: str) -> str | None:
    stem = f"{_SOURCE}/{module.replace('.', '/')}"
    return next((path for path in (f"{stem}.py", f"{stem}/__init__.py") if (root / path).is_file()), None)


def _mentioning(root: Path, name: str) -> Generator[str]:
    last = re.compile(rf"\b{re.escape(name.rpartition('.')[2])}\b")
    for file in sorted((root / _SOURCE).rglob("*.py")) if name else ():
        if last.search(file.read_text()):
            yield str(file.relative_to(root))


def _in_file(root: Path, path: str, name: str) -> LocatedSymbol | None:
    module = ast.parse((root / path).read_text())
    node: ast.AST = module
    for part in name.split(".") if name else ():
        # The last definition counts: those before it are overloads.
        defined = [child for child in _defined_in(node) if _name_of(child) == part]
        if not defined:
            return None
        node = defined[-1]
    return LocatedSymbol(path, module, node)


def _defined_in(node: ast.AST) -> Generator[ast.stmt]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case) and not isinstance(
            child, _DEFINITIONS
        ):
            yield from _defined_in(child)


def _name_of(statement: ast.stmt) -> str | None:
    match statement:
        case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
            return name
        case ast.Assign([ast.Name(name)]) | ast.AnnAssign(ast.Name(name)):
            return name
        case _:
            return None
