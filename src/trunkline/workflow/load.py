"""Turns a text into a validated and compiled workflow."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import NamedTuple

from trunkline.errors import Finding
from trunkline.jsontypes import JsonObject
from trunkline.workflow.compile import CompiledWorkflow, compile_definition
from trunkline.workflow.definition import WorkflowDefinition, WorkflowReference, canonical_form
from trunkline.workflow.document.parsing import locate_values, read_document
from trunkline.workflow.types.check import check_types
from trunkline.workflow.validate import KnownNames, read_definition
from trunkline.workflow.validation_report import ValidationReport, invalid_error, to_findings


class LoadedWorkflow(NamedTuple):
    definition: WorkflowDefinition
    warnings: list[Finding]
    # What the store keeps: the definition as JSON, the same bytes for the same content.
    canonical: bytes
    # The saved JSON Schemas that it refers to, by name.
    schemas: frozenset[str] = frozenset()


def load_workflow(
    text: str | bytes,
    *,
    source: str = "workflow",
    known_agents: Collection[str] | None = None,
    known_error_codes: Collection[str] | None = None,
    known_workflows: Collection[WorkflowReference] | None = None,
    cycles: Mapping[WorkflowReference, str] = MappingProxyType({}),
    known_schemas: Mapping[str, JsonObject] | None = None,
    children: Mapping[WorkflowReference, CompiledWorkflow] = MappingProxyType({}),
) -> LoadedWorkflow:
    """
    The definition in a text of YAML or JSON, checked as a whole; raises `Invalid` with all findings.

    `source` is the name that messages give the text. Agents that are not among `known_agents`, and workflows
    not among `known_workflows`, are warnings: they may come later. `cycles`: the workflows that lead back to this one,
    and how. `known_schemas`: the saved JSON Schemas that steps may refer to; a reference becomes the schema. None: a
    reference stays one. `children`: what the outputs of child workflows are known by.
    """
    document = read_document(text, source)
    report = ValidationReport()
    definition = read_definition(
        document.value,
        KnownNames(known_agents, known_error_codes, known_workflows, cycles, known_schemas),
        report,
    )
    if definition is not None:
        workflow = compile_definition(definition, report)
        problem = workflow.input_schema_problem
        if problem is not None:
            report.error(("input",), problem)
        if not report.errors and not document.problems:
            check_types(workflow, report, children)
    places = locate_values(document.text) if report.errors or report.warnings else {}
    found = [*document.problems, *to_findings(report.errors, document.text, places)]
    if definition is None or found:
        found.sort(key=lambda finding: (finding.line or 0, finding.column or 0))
        raise invalid_error(source, found, len(document.problems) + len(report.errors))
    return LoadedWorkflow(
        definition,
        to_findings(report.warnings, document.text, places),
        canonical_form(definition),
        frozenset(report.schemas),
    )


def compile_workflow(definition: WorkflowDefinition) -> CompiledWorkflow:
    """The workflow of a definition that was saved; raises `Invalid` if it should not have been."""
    report = ValidationReport()
    workflow = compile_definition(definition, report)
    if report.errors:
        raise invalid_error(
            f"workflow {definition.name}", to_findings(report.errors, "", {}), len(report.errors)
        )
    return workflow
