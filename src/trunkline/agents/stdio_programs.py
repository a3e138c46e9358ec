"""
The programs that agents with `transport: stdio` may be.

The operator names them in the settings, and an agent's url holds only that name: a user who registers agents cannot
choose what is run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# What any program may need in order to run at all, and none of it a secret.
_ALWAYS = frozenset({"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR"})
OUR_PREFIX = "TRUNKLINE_"


@dataclass(frozen=True)
class StdioProgram:
    command: tuple[str, ...]
    # Names of variables that it gets in addition to those that every program gets.
    environment: tuple[str, ...] = ()

    def variables(self, ours: Mapping[str, str]) -> dict[str, str]:
        """The environment that it inherits. Trunkline's own settings, and so its secrets, are not included."""
        return {name: value for name, value in ours.items() if self._gets(name)}

    def _gets(self, name: str) -> bool:
        if name.startswith(OUR_PREFIX):
            return False
        return name in _ALWAYS or name.startswith("LC_") or name in self.environment
