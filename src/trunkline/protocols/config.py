"""
Checks of an agent's `protocol_config`.

    {"method": "message/send", "version": "2.0", "input_mode": "text", "params": "message", …}

Each dialect says with a table which keys it knows and what each may hold; an unknown key is refused with the
closest known one.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

import msgspec

from trunkline.errors import Finding
from trunkline.jsontypes import Json, encode

# Where the registry's clients find the value.
_PATH = "protocol_config"


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """What one key of a `protocol_config` may hold: one of `choices`, or any string that is not empty."""

    default: str
    choices: tuple[str, ...] = ()

    def objection(self, value: Json) -> str | None:
        if not self.choices:
            return None if isinstance(value, str) and value.strip() else "must be a string that is not empty"
        if isinstance(value, str) and value in self.choices:
            return None
        allowed = " or ".join(f"'{choice}'" for choice in self.choices)
        return f"must be {allowed}, not {encode(value).decode()}"


def check_config(known: Mapping[str, Setting], config: Mapping[str, Json]) -> list[Finding]:
    """Everything that is wrong with a configuration."""
    findings: list[Finding] = []
    for key, value in config.items():
        setting = known.get(key)
        problem = _unknown(key, known) if setting is None else setting.objection(value)
        if problem is not None:
            findings.append(Finding(path=f"{_PATH}.{key}", message=f"'{key}' {problem}"))
    return findings


def _unknown(key: str, known: Mapping[str, Setting]) -> str:
    closest = get_close_matches(key, known, n=1)
    if closest:
        return f"is not known; did you mean '{closest[0]}'?"
    return f"is not known; known here: {', '.join(known)}"
