"""
Modules that are imported when a command uses them, and not before.

`trunkline runs list` has to answer within 200 ms, and `trunkline --help` imports every command. A command names what
is slow to import (settings, stores, the workflow language, rich) at its top as a lazy module, for which the type
checker reads the module itself:

    if TYPE_CHECKING:
        from trunkline import settings
    else:
        settings = lazy_module("trunkline.settings")
"""

from __future__ import annotations

from importlib import import_module


class LazyModule:
    """Stands for a module, which the first use of one of its names imports."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> object:
        return getattr(import_module(self._name), attribute)


def lazy_module(name: str) -> LazyModule:
    return LazyModule(name)
