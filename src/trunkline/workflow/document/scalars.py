"""
What an unquoted YAML scalar stands for: the core schema of YAML 1.2.

Only `true` and `false` are booleans, so `on`, `yes` and `no` stay text, and so do dates and `1:30`.
"""

from __future__ import annotations

import re

from trunkline.jsontypes import Json

_FIRST = frozenset("-+.0123456789~nNtTfF")
_CONSTANTS: dict[str, Json] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True,
    "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_INTEGER = re.compile(r"[-+]?[0-9]+\Z")
_BASED = re.compile(r"0o[0-7]+\Z|0x[0-9a-fA-F]+\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_NO_NUMBER = re.compile(r"[-+]?\.(inf|Inf|INF)\Z|\.(nan|NaN|NAN)\Z")
# More than any number in use, and few enough for Python to read quickly.
MAX_DIGITS = 40


def resolve_scalar(text: str) -> Json:
    """The value of an unquoted scalar; raises `ValueError` for a number that JSON cannot hold."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] not in _FIRST:
        return text
    if _INTEGER.match(text):
        return int(_short(text))
    if _FLOAT.match(text):
        value = float(_short(text))
        if value in (float("inf"), float("-inf")):
            raise ValueError(f"the number {text} is out of range")
        return value
    if _BASED.match(text):
        return int(_short(text), 0)
    if _NO_NUMBER.match(text):
        raise ValueError(
            f"{text} cannot be represented as a JSON number; put it in quotes to make it a string"
        )
    return text


def _short(text: str) -> str:
    if len(text) > MAX_DIGITS:
        raise ValueError(
            f"the number has {len(text)} characters, which is too long; put it in quotes to make it a string"
        )
    return text
