"""Names that other systems allow, as ours allow them: always the same for the same names."""

from __future__ import annotations

import re
from collections.abc import Iterable

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_]")
_NOT_IN_A_FILE_NAME = re.compile(r"[^A-Za-z0-9._-]+")
MAX_CHARACTERS = 64
# CEL's keywords, and the words that it keeps for itself.
RESERVED = frozenset(
    ("as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop",
     "namespace", "null", "package", "return", "true", "var", "void", "while")
)  # fmt: skip


def identifiers(names: Iterable[str]) -> dict[str, str]:
    """A step's name for each name; a name that is one already stays."""
    names = list(names)
    given = {name: name for name in names if _fits(name)}
    taken = set(given)
    # How often a name was wanted: looking from 1 again each time would take the square of many alike.
    wanted: dict[str, int] = {}
    for name in names:
        if name not in given:
            given[name] = _free(_form(name), taken, wanted)
            taken.add(given[name])
    return given


def file_name(name: str) -> str:
    """The name of a file for a workflow; what a path could be made of is gone."""
    return _NOT_IN_A_FILE_NAME.sub("-", name).strip("-.") or "workflow"


def is_identifier(name: str) -> bool:
    return name.isascii() and name.isidentifier() and name not in RESERVED


def _fits(name: str) -> bool:
    return is_identifier(name) and len(name) <= MAX_CHARACTERS


def _form(name: str) -> str:
    form = _NOT_IN_A_NAME.sub("_", name)
    if not form or form[0].isdigit():
        form = f"step_{form}"
    return f"{form}_" if form in RESERVED else form[:MAX_CHARACTERS]


def _free(form: str, taken: set[str], wanted: dict[str, int]) -> str:
    name = form
    while name in taken:
        wanted[form] = wanted.get(form, 1) + 1
        ending = f"_{wanted[form]}"
        name = f"{form[: MAX_CHARACTERS - len(ending)]}{ending}"
    return name
