"""
Secrets that a workflow names: `{"$secret": "slack-bot"}` in a step's input.

Only what stands literally in the definition is one. What an expression yields, whatever it looks like, is data: neither
a run's input nor an agent's output can ask for a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trunkline.jsontypes import Json, JsonObject
from trunkline.workflow.document.locations import Path
from trunkline.workflow.validation_report import ValidationReport

SECRET_KEY = "$secret"  # noqa: S105 - no password
SECRET_NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"  # noqa: S105 - as above
SECRET_NAME_RULE = "up to 100 letters, digits, dots, dashes and underscores, starting with a letter or digit"  # noqa: S105 - as above

_NAME = re.compile(SECRET_NAME_PATTERN.strip("^$"))


def is_secret_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def check_secret_references(template: Json, path: Path, report: ValidationReport) -> None:
    """Reports everything that would be a secret and is not written like one."""
    for place, found in _candidates(template, path):
        problem = _problem(found)
        if problem is not None:
            report.error((*place, SECRET_KEY), problem, on_key=True)


def refuse_secret_references(template: Json, path: Path, report: ValidationReport) -> None:
    """Reports secrets where none can be: what a run is given or returns, everybody may read."""
    for place, _ in _candidates(template, path):
        report.error(
            (*place, SECRET_KEY),
            "a secret is only allowed in the input of a step that calls an agent",
            on_key=True,
        )


def secret_references(template: Json) -> dict[str, str]:
    """The secrets of an input: JSON pointer (RFC 6901) to name."""
    return {
        _pointer(place): str(found[SECRET_KEY])
        for place, found in _candidates(template, ())
        if _problem(found) is None
    }


def _candidates(value: Json, path: Path) -> Iterator[tuple[Path, JsonObject]]:
    if isinstance(value, dict):
        if SECRET_KEY in value:
            yield path, value
            return
        for key, item in value.items():
            yield from _candidates(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _candidates(item, (*path, index))


def _problem(found: JsonObject) -> str | None:
    name = found[SECRET_KEY]
    if len(found) > 1:
        return f"'{SECRET_KEY}' must be the only key of its object; remove the other keys"
    if not isinstance(name, str):
        return f"'{SECRET_KEY}' must be the name of a secret, as a string"
    if "${" in name:
        return (
            "the name of a secret cannot be an expression, because data must not choose the secret; "
            "write the name itself"
        )
    if not is_secret_name(name):
        return f"invalid secret name; use {SECRET_NAME_RULE}"
    return None


def _pointer(path: Path) -> str:
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in path)
