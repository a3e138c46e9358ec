"""The JSON Schema that a workflow has for its input."""

from __future__ import annotations

from itertools import islice

import jsonschema_rs
from jsonschema_rs import ValidationErrorKind
from msgspec import UNSET, UnsetType

from trunkline.errors import Finding
from trunkline.jsontypes import Json, JsonObject
from trunkline.workflow.document.locations import path_text
from trunkline.workflow.validation_report import MAX_FINDINGS, ValidationReport

# A pattern that needs more steps back than this is an attack, or will be one.
_PATTERNS = jsonschema_rs.FancyRegexOptions(backtrack_limit=100_000)

_LONGEST_MESSAGE = 300


class InputSchema:
    def __init__(self, schema: JsonObject) -> None:
        # Offline: a $ref must not make us fetch anything.
        self._validator = jsonschema_rs.validator_for(schema, offline=True, pattern_options=_PATTERNS)

    def check(self, value: Json) -> list[Finding]:
        """What is wrong with an input; empty when it is right."""
        errors = islice(self._validator.iter_errors(value), MAX_FINDINGS)
        # A message quotes the value that is wrong, whatever its size.
        return [
            Finding(
                path=path_text(("input", *error.instance_path)),
                message=error.message[:_LONGEST_MESSAGE],
                missing=_missing(error),
            )
            for error in errors
        ]


def _missing(error: jsonschema_rs.ValidationError) -> str | UnsetType:
    match error.kind:
        case ValidationErrorKind.Required(property=name):
            return str(name)
        case _:
            return UNSET


def compile_input_schema(schema: JsonObject | None, report: ValidationReport) -> InputSchema | None:
    if schema is None:
        return None
    try:
        return InputSchema(schema)
    except jsonschema_rs.ValidationError as exc:
        message = f"the input schema is not valid JSON Schema: {exc.message[:_LONGEST_MESSAGE]}"
        report.error(("input", *exc.instance_path), message)
        return None
