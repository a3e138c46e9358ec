"""Lazy modules: named by text, so a test sees that each of them exists."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

import trunkline.cli
from trunkline.cli.lazy import lazy_module

CLI = Path(trunkline.cli.__file__).parent
NAMED = sorted(
    {
        name
        for file in CLI.rglob("*.py")
        for name in re.findall(r'= lazy_module\("([\w.]+)"\)$', file.read_text(), re.MULTILINE)
        if file.name != "lazy.py"
    }
)


@pytest.mark.parametrize("name", NAMED)
def test_a_lazy_module_of_the_command_line_exists(name: str) -> None:
    assert find_spec(name) is not None


def test_a_lazy_module_is_imported_by_its_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    module = lazy_module("colorsys")
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    assert "colorsys" not in sys.modules
    assert module.ONE_THIRD == import_module("colorsys").ONE_THIRD


def test_the_list_is_not_empty() -> None:
    assert "trunkline.settings" in NAMED
