"""
A JSON Schema that checks values within limits of time and memory, whatever the schema and the value are.

Values come from agents and unknown clients, schemas from all who may save a workflow or register an agent, and some
checks run inside a transaction. So validity comes first, and only if its cost is bounded. Errors are described only
if there can be few.

The cost of validity was measured: about 100 ns for each part of the schema and each node of the value, and more where
references double inside a recursion (35 ms for 8,190 parts and two nodes). Describing an error takes about 25 µs for
each visit, because every alternative that does not match is described in full.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TypeAlias

import jsonschema_rs

from trunkline.jsontypes import Json, JsonObject
from trunkline.workflow.schema_cost import ReferenceNotFollowed, SchemaGraph, SchemaTooComplex, count_nodes

# With every reference replaced by what it refers to.
MAX_SCHEMA_PARTS = 10_000
_SMALL_PARTS = 200
# A schema's parts times a value's nodes; one second at the very worst.
_MAX_WORK = 10_000_000
# A schema without recursion takes a tenth of that for each visit.
_MAX_STRAIGHT_WORK = 50_000_000
# About 100 ms, and some megabytes.
_MAX_VISITS_TO_DESCRIBE = 4_000
# Compiling takes time in proportion to the square of their number; so many take some milliseconds.
_MAX_REFERENCES_TO_COMPILE = 1_000
# A pattern with look-around or back references has no better bound than this, for each text.
_BACKTRACK_LIMIT = 10_000
_BACKTRACKING = jsonschema_rs.FancyRegexOptions(backtrack_limit=_BACKTRACK_LIMIT)
_LINEAR = jsonschema_rs.RegexOptions()
# What such a pattern costs compared with a visit.
_BACKTRACKING_PARTS = 10_000

SchemaError: TypeAlias = jsonschema_rs.ValidationError


class ValueTooComplex(Exception):
    """The value cannot be checked within the limits."""

    def __init__(self) -> None:
        super().__init__("is too large, or nested too deeply, to be checked against the schema")


class BoundedSchema:
    def __init__(self, schema: JsonObject, *, mask: str | None = None, formats: bool = False) -> None:
        """
        Raises `SchemaTooComplex`, and other kinds of `ValueError` if it is not a valid JSON Schema.

        `mask` stands for the value in every message. `formats`: whether `format` is more than a hint.
        """
        self._graph = SchemaGraph(schema)
        try:
            parts, is_recursive = self._graph.size(MAX_SCHEMA_PARTS)
        except ReferenceNotFollowed:
            if self._graph.references <= _MAX_REFERENCES_TO_COMPILE:
                # If the reference is wrong, the library knows better words for it.
                _compiled(schema, mask, _BACKTRACKING, formats=formats)
            raise
        try:
            self._validator = _compiled(schema, mask, _LINEAR, formats=formats)
        except ValueError:
            # Invalid, or with a pattern that only backtracking can match; this tells which.
            self._validator = _compiled(schema, mask, _BACKTRACKING, formats=formats)
            parts += _BACKTRACKING_PARTS
        # Checking a few kilobytes with it takes a few milliseconds.
        self.is_small = parts <= _SMALL_PARTS and not is_recursive
        self._max_nodes = (_MAX_WORK if is_recursive else _MAX_STRAIGHT_WORK) // parts

    def is_valid(self, value: Json) -> bool:
        """Raises `ValueTooComplex`."""
        if count_nodes(value, self._max_nodes) > self._max_nodes:
            raise ValueTooComplex
        try:
            return self._validator.is_valid(value)
        except (ValueError, RecursionError) as exc:
            raise ValueTooComplex from exc

    def errors(self, value: Json, limit: int) -> Iterator[SchemaError] | None:
        """What is wrong with a value that is not valid; None: describing it would cost too much."""
        try:
            if not self._graph.can_describe(value, _MAX_VISITS_TO_DESCRIBE):
                return None
        except RecursionError:
            return None
        return islice(self._validator.iter_errors(value), limit)


def _compiled(
    schema: JsonObject,
    mask: str | None,
    patterns: jsonschema_rs.RegexOptions | jsonschema_rs.FancyRegexOptions,
    *,
    formats: bool,
) -> jsonschema_rs.Validator:
    # Offline: a $ref must not make us fetch anything.
    return jsonschema_rs.validator_for(
        schema, mask=mask, offline=True, pattern_options=patterns, validate_formats=formats or None
    )


__all__ = ["MAX_SCHEMA_PARTS", "BoundedSchema", "SchemaError", "SchemaTooComplex", "ValueTooComplex"]
