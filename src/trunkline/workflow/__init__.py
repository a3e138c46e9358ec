"""
The workflow language: definitions, their checks, the graph, and expressions. Pure: it does no I/O.

    load_workflow       text (YAML or JSON) -> definition, warnings, canonical form; or Invalid with all
    findings compile_workflow    definition -> Workflow, which the machine runs
"""

from __future__ import annotations

from trunkline.workflow.branches import Joined
from trunkline.workflow.compile import Loop, Step, Workflow, index_of, item_name, item_place, owner_of
from trunkline.workflow.definition import (
    Child,
    ForEach,
    Goto,
    Join,
    StepDefinition,
    WorkflowDefinition,
    canonical_form,
    children_of,
    definition_from_canonical,
)
from trunkline.workflow.durations import format_duration, parse_duration
from trunkline.workflow.expressions import Condition, ExpressionError, Scope, Template
from trunkline.workflow.load import Loaded, compile_workflow, load_workflow
from trunkline.workflow.output_reads import OutputRead, output_reads
from trunkline.workflow.schema import workflow_json_schema
from trunkline.workflow.secret_places import SECRET_KEY, SECRET_NAME_PATTERN, SECRET_NAME_RULE, is_secret_name
from trunkline.workflow.written import as_yaml

__all__ = [
    "SECRET_KEY",
    "SECRET_NAME_PATTERN",
    "SECRET_NAME_RULE",
    "Child",
    "Condition",
    "ExpressionError",
    "ForEach",
    "Goto",
    "Join",
    "Joined",
    "Loaded",
    "Loop",
    "OutputRead",
    "Scope",
    "Step",
    "StepDefinition",
    "Template",
    "Workflow",
    "WorkflowDefinition",
    "as_yaml",
    "canonical_form",
    "children_of",
    "compile_workflow",
    "definition_from_canonical",
    "format_duration",
    "index_of",
    "is_secret_name",
    "item_name",
    "item_place",
    "load_workflow",
    "output_reads",
    "owner_of",
    "parse_duration",
    "workflow_json_schema",
]
