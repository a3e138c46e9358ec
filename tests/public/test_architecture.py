"""ARCHITECTURE.md and CONTRIBUTING.md name what exists: folders, the layers of the import rule, files to read."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/trunkline"
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text()
# What paths in the two documents are relative to, if not to a folder that the same paragraph names.
BASES = (SOURCE, ROOT, ROOT / "ui/src", ROOT / "tests", ROOT / "tests/interop", ROOT / "tests/scenarios")
# Paths with a part for the reader to fill in.
PLACEHOLDER = re.compile(r"NAME|GROUP|KIND")


def section(heading: str) -> str:
    return ARCHITECTURE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def block(heading: str) -> str:
    """The code block of a section."""
    return section(heading).partition("```text\n")[2].partition("```")[0]


def entries(folder: Path) -> set[str]:
    """Its modules and folders, as the tree of ARCHITECTURE.md writes them."""
    folders = {f"{path.name}/" for path in folder.iterdir() if (path / "__init__.py").exists()}
    return folders | {path.name for path in folder.glob("*.py")} - {"__init__.py", "__main__.py"}


def table_paths(heading: str) -> list[str]:
    """The paths in the second column of a section's table."""
    rows = [line.split("|")[2] for line in section(heading).splitlines() if re.match(r"\| \d", line)]
    return [path for row in rows for path in re.findall(r"`([^`]+)`", row)]


def test_the_import_rule_shows_the_layers_of_the_linter() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (contract,) = (each for each in project["tool"]["importlinter"]["contracts"] if each["type"] == "layers")
    # A second entry point of the command line.
    layers = [layer for layer in contract["layers"] if layer != "__main__"]
    assert block("The import rule").split("\n")[:-1] == layers


def test_the_tree_names_every_package_and_module() -> None:
    python, _, ui = block("The tree").partition("ui/src/")
    words = set(re.findall(r"[\w.]+/?", python))
    assert entries(SOURCE) - words == set()
    folders = {f"{path.name}/" for path in (ROOT / "ui/src").iterdir() if path.is_dir()}
    assert folders - set(re.findall(r"\w+/", ui)) == set()


def test_the_tree_names_nothing_else() -> None:
    named = re.findall(r"^  ([a-z_]+/)", block("The tree").partition("ui/src/")[0], re.MULTILINE)
    assert set(named) - entries(SOURCE) == set()


def test_a_run_can_be_followed_through_few_files() -> None:
    paths = table_paths("One execute, file by file")
    files = [path for path in paths if path.endswith(".py")]
    assert len(files) == len(set(files)) <= 25
    assert [path for path in files if not (SOURCE / path).is_file()] == []


@pytest.mark.parametrize("document", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_every_path_leads_somewhere(document: str) -> None:
    text = (ROOT / document).read_text()
    named = [
        path for path in re.findall(r"`([\w./-]+)`", text) if re.search(r"\w/|\.(py|md|tsx?|ya?ml)$", path)
    ]
    assert missing([path for path in named if not PLACEHOLDER.search(path)]) == []


def missing(paths: Sequence[str]) -> list[str]:
    """A bare file name or folder may be anywhere below the bases."""
    return [
        path
        for path in paths
        if not any((base / path).exists() for base in BASES)
        and not ("/" not in path.rstrip("/") and any(SOURCE.rglob(path.rstrip("/"))))
        and not any(SOURCE.rglob(f"*/{path.rstrip('/')}"))
        and not any((ROOT / "tests").rglob(path.rstrip("/")))
    ]
