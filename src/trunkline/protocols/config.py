"""
Checks of an agent's `protocol_config`.

    {"method": "message/send", "version": "2.0", "input_mode": "text", "params": "message",
     "batch": {"max": 20, "wait_ms": 10}, …}

Each dialect says with a table which keys it knows and what each may hold; an unknown key is refused with the
closest known one.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

import msgspec

from trunkline.errors import Finding
from trunkline.jsontypes import Json, encode
from trunkline.protocols.zone.params_profiles import InvalidProfile, find_profile

# Where the registry's clients find the value.
_PATH = "protocol_config"


class TextOption(msgspec.Struct, frozen=True, kw_only=True):
    """What one key of a `protocol_config` may hold: one of `choices`, or any string that is not empty."""

    default: str
    choices: tuple[str, ...] = ()

    def problem(self, value: Json) -> str | None:
        if not self.choices:
            return None if isinstance(value, str) and value.strip() else "must be a non-empty string"
        if isinstance(value, str) and value in self.choices:
            return None
        allowed = " or ".join(f"'{choice}'" for choice in self.choices)
        return f"must be {allowed}, not {encode(value).decode()}"


class IntegerRange(msgspec.Struct, frozen=True, kw_only=True):
    """From where to where a whole number may be; without a default it must be given."""

    least: int
    most: int
    default: int | None = None

    def holds(self, value: Json) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and self.least <= value <= self.most


class IntegersOption(msgspec.Struct, frozen=True, kw_only=True):
    """A key that holds an object of whole numbers."""

    ranges: dict[str, IntegerRange]

    def problem(self, value: Json) -> str | None:
        if not isinstance(value, dict):
            return f"must be an object with {' and '.join(self.ranges)}, not {encode(value).decode()}"
        for name, allowed_range in self.ranges.items():
            if name not in value and allowed_range.default is None:
                return f"must have {name}, from {allowed_range.least} to {allowed_range.most}"
        for name, number in value.items():
            if name not in self.ranges:
                return f"has an unknown field {name}; supported here: {', '.join(self.ranges)}"
            allowed_range = self.ranges[name]
            if not allowed_range.holds(number):
                allowed = f"a whole number from {allowed_range.least} to {allowed_range.most}"
                return f"must have {allowed} as {name}, not {encode(number).decode()}"
        return None


# Tasks that wait for the same agent may travel in one request, for every dialect in JSON-RPC: json_rpc/batches.py.
BATCH = IntegersOption(
    ranges={"max": IntegerRange(least=2, most=100), "wait_ms": IntegerRange(least=0, most=1000, default=10)}
)


class ProfileOption(msgspec.Struct, frozen=True, kw_only=True):
    """A key that holds the name of a profile, or a JSON Schema."""

    def problem(self, value: Json) -> str | None:
        try:
            find_profile(value)
        except InvalidProfile as exc:
            return f"cannot be used: {exc.message}"
        return None


class UnusableOption(msgspec.Struct, frozen=True, kw_only=True):
    """A key that is known, and cannot be used here."""

    reason: str

    def problem(self, value: Json) -> str | None:
        del value
        return self.reason


ProtocolOption = TextOption | IntegersOption | ProfileOption | UnusableOption


def check_config(known: Mapping[str, ProtocolOption], config: Mapping[str, Json]) -> list[Finding]:
    """Everything that is wrong with a configuration."""
    findings: list[Finding] = []
    for key, value in config.items():
        option = known.get(key)
        problem = _unknown(key, known) if option is None else option.problem(value)
        if problem is not None:
            findings.append(Finding(path=f"{_PATH}.{key}", message=f"'{key}' {problem}"))
    return findings


def _unknown(key: str, known: Mapping[str, ProtocolOption]) -> str:
    closest = get_close_matches(key, known, n=1)
    if closest:
        return f"is not supported; did you mean '{closest[0]}'?"
    usable = (name for name, option in known.items() if not isinstance(option, UnusableOption))
    return f"is not supported; supported here: {', '.join(usable)}"
