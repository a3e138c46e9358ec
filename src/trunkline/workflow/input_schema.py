"""The JSON Schemas that a workflow has for its input, for the answers of people and for the outputs of agents."""

from __future__ import annotations

from jsonschema_rs import ValidationErrorKind
from msgspec import UNSET, UnsetType

from trunkline.errors import Finding
from trunkline.jsontypes import Json, JsonObject
from trunkline.workflow.bounded_schema import BoundedSchema, SchemaError, SchemaTooComplex, ValueTooComplex
from trunkline.workflow.document.locations import Path, path_text
from trunkline.workflow.validation_report import MAX_FINDINGS, ValidationReport

_LONGEST_MESSAGE = 300


class InputSchema:
    """Checks run inputs; `too_complex` says why it refuses all of them, for a schema that has no bounded cost."""

    def __init__(self, schema: JsonObject, subject: str = "input", *, formats: bool = False) -> None:
        """
        Raises `ValueError` if it is not a valid JSON Schema.

        `subject`: what the values are called in findings, as a dotted path. `formats`: whether dates and the like must
        be right, as people can enter anything.
        """
        self._subject = subject
        self.too_complex: str | None = None
        self._schema: BoundedSchema | None = None
        try:
            self._schema = BoundedSchema(schema, formats=formats)
        except SchemaTooComplex as exc:
            self.too_complex = f"the {subject} schema is too complex: {exc}"

    @property
    def is_small(self) -> bool:
        """Whether a few kilobytes are checked within a few milliseconds."""
        return self._schema is None or self._schema.is_small

    def accepts(self, value: Json) -> bool:
        """Whether a value is right; False as well if that cannot be found out within limits."""
        try:
            return self._schema is not None and self._schema.is_valid(value)
        except ValueTooComplex:
            return False

    def check(self, value: Json) -> list[Finding]:
        """What is wrong with an input; empty when it is right."""
        if self._schema is None:
            return [Finding(path=self._subject, message=self.too_complex or "")]
        try:
            if self._schema.is_valid(value):
                return []
        except ValueTooComplex as exc:
            return [Finding(path=self._subject, message=str(exc))]
        errors = self._schema.errors(value, MAX_FINDINGS)
        if errors is None:
            return [
                Finding(path=self._subject, message="does not match the schema; it is too large to say where")
            ]
        # A message quotes the value that is wrong, whatever its size.
        return [
            Finding(
                path=path_text((*self._subject.split("."), *error.instance_path)),
                message=error.message[:_LONGEST_MESSAGE],
                missing=_missing(error),
            )
            for error in errors
        ]


def _missing(error: SchemaError) -> str | UnsetType:
    match error.kind:
        case ValidationErrorKind.Required(property=name):
            return str(name)
        case _:
            return UNSET


def compile_input_schema(schema: JsonObject | None, report: ValidationReport) -> InputSchema | None:
    """A schema that is too complex is not reported: versions with one were saved before there was a limit."""
    if schema is None:
        return None
    try:
        return InputSchema(schema)
    except SchemaError as exc:
        message = f"the input schema is not valid JSON Schema: {exc.message[:_LONGEST_MESSAGE]}"
        report.error(("input", *exc.instance_path), message)
    except ValueError as exc:
        report.error(("input",), f"the input schema is not valid JSON Schema: {str(exc)[:_LONGEST_MESSAGE]}")
    return None


def compile_form(schema: JsonObject | None, path: Path, report: ValidationReport) -> InputSchema | None:
    """The form of a step that asks people, at its place in the definition."""
    return None if schema is None else compile_schema(schema, "data", "the form", path, report, formats=True)


def compile_schema(
    schema: JsonObject,
    subject: str,
    what: str,
    path: Path,
    report: ValidationReport,
    *,
    formats: bool = False,
) -> InputSchema | None:
    """A schema at its place in the definition; `subject` and `what`: how findings call its values, and itself."""
    try:
        compiled = InputSchema(schema, subject, formats=formats)
    except SchemaError as exc:
        report.error(
            (*path, *exc.instance_path),
            f"{what} is not valid JSON Schema: {exc.message[:_LONGEST_MESSAGE]}",
        )
        return None
    except ValueError as exc:
        report.error(path, f"{what} is not valid JSON Schema: {str(exc)[:_LONGEST_MESSAGE]}")
        return None
    if compiled.too_complex is not None:
        report.error(path, compiled.too_complex.replace(f"the {subject} schema", what))
        return None
    return compiled
