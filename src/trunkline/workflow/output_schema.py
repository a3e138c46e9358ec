"""The JSON Schema that a step has for the data of its output, and how often its agent is asked for a correction."""

from __future__ import annotations

from collections.abc import Mapping

from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.workflow.document.locations import Path
from trunkline.workflow.field_reader import FieldReader
from trunkline.workflow.input_schema import InputSchema, compile_schema
from trunkline.workflow.validation_report import ValidationReport

# An agent that is asked for a correction gets the schema.
MAX_SCHEMA_BYTES = 64 * 1024
MAX_REPAIRS = 5

REFERENCE_KEY = "$ref"
SAVED_SCHEMAS = "schemas/"


def saved_schema(value: Json) -> str | None:
    """The name of the saved schema that a schema refers to; None: it is a schema itself."""
    reference = value.get(REFERENCE_KEY) if isinstance(value, dict) else None
    if not isinstance(reference, str) or not reference.startswith(SAVED_SCHEMAS):
        return None
    return reference.removeprefix(SAVED_SCHEMAS)


def read_output_schema(
    fields: FieldReader, saved: Mapping[str, JsonObject] | None, report: ValidationReport
) -> JsonObject | None:
    """With the saved schema in place of a reference to it; `saved`: by name, None where they are not known."""
    schema = fields.mapping("output_schema")
    name = saved_schema(schema)
    if schema is not None and name is not None:
        if len(schema) > 1:
            fields.error(
                "output_schema", f"'output_schema' refers to the schema '{name}'; remove its other keys"
            )
        report.schemas.add(name)
        if saved is None:
            return schema
        if name not in saved:
            hint = report.hint(name, saved) or "; save it first: trunkline schemas apply"
            report.error((*fields.path, "output_schema", REFERENCE_KEY), f"unknown schema '{name}'{hint}")
            return None
        schema = saved[name]
    if schema is not None and len(encode(schema)) > MAX_SCHEMA_BYTES:
        fields.error(
            "output_schema",
            f"'output_schema' has {len(encode(schema)):,} bytes, but the limit is {MAX_SCHEMA_BYTES:,}; "
            "describe less of the output",
        )
        return None
    return schema


def read_repair(fields: FieldReader) -> int | None:
    repairs = fields.integer("repair", 0, MAX_REPAIRS)
    if repairs is not None and "output_schema" not in fields:
        fields.error("repair", "'repair' has no effect without 'output_schema'; remove it")
    if repairs and fields.any("delivery") == "at_most_once":
        fields.error(
            "repair",
            "'repair' calls the agent again, which delivery: at_most_once rules out; remove one of them",
        )
    return repairs


def compile_output_schema(
    schema: JsonObject | None, path: Path, report: ValidationReport
) -> InputSchema | None:
    # Without a server, what a reference means is not known.
    if schema is None or saved_schema(schema) is not None:
        return None
    return compile_schema(schema, "output.data", "the output schema", path, report)
