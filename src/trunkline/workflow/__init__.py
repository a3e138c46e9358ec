"""
The workflow language: definitions, their checks, the graph, and expressions. Pure: it does no I/O.

    load_workflow       text (YAML or JSON) -> definition, warnings, canonical form; or Invalid with all
    findings compile_workflow    definition -> Workflow, which the machine runs
"""

from __future__ import annotations

from trunkline.durations import format_duration, parse_duration
from trunkline.workflow.actions.definitions import (
    Ask,
    Escalation,
    Sleep,
    SleepUntil,
    StepKind,
    TaskRules,
    WaitFor,
)
from trunkline.workflow.compile import (
    CompiledForEach,
    CompiledStep,
    CompiledWorkflow,
)
from trunkline.workflow.definition import (
    Block,
    Branch,
    ForEach,
    Goto,
    Join,
    Repeat,
    StepDefinition,
    WorkflowDefinition,
    WorkflowReference,
    all_steps,
    called_agents,
    canonical_form,
    child_workflows,
    definition_from_canonical,
)
from trunkline.workflow.document.yaml_writer import write_yaml
from trunkline.workflow.expressions import (
    FAILURE_VARIABLE,
    ROUND_VARIABLE,
    Condition,
    ExpressionError,
    Scope,
    Template,
    previous,
)
from trunkline.workflow.input_schema import InputSchema
from trunkline.workflow.labels import (
    LABEL_KEY_PATTERN,
    LABEL_PATTERN,
    MAX_LABELS,
    check_label_count,
    label_problem,
    parse_label,
)
from trunkline.workflow.language_schema import workflow_json_schema
from trunkline.workflow.load import LoadedWorkflow, compile_workflow, load_workflow
from trunkline.workflow.output_reads import OutputRead, output_reads
from trunkline.workflow.output_schema import MAX_SCHEMA_BYTES
from trunkline.workflow.routing.cache import Cache
from trunkline.workflow.routing.keys import Allow, AllowTag, Hedge, Select
from trunkline.workflow.secret_references import (
    SECRET_KEY,
    SECRET_NAME_PATTERN,
    SECRET_NAME_RULE,
    is_secret_name,
)
from trunkline.workflow.step_graph.joins import CompiledJoin
from trunkline.workflow.step_graph.step_names import (
    BLOCK_SEPARATOR,
    block_path,
    compensated_step,
    compensation_name,
    item_index,
    item_name,
    parse_item_name,
    step_of_item,
)

__all__ = [
    "BLOCK_SEPARATOR",
    "FAILURE_VARIABLE",
    "LABEL_KEY_PATTERN",
    "LABEL_PATTERN",
    "MAX_LABELS",
    "MAX_SCHEMA_BYTES",
    "ROUND_VARIABLE",
    "SECRET_KEY",
    "SECRET_NAME_PATTERN",
    "SECRET_NAME_RULE",
    "Allow",
    "AllowTag",
    "Ask",
    "Block",
    "Branch",
    "Cache",
    "CompiledForEach",
    "CompiledJoin",
    "CompiledStep",
    "CompiledWorkflow",
    "Condition",
    "Escalation",
    "ExpressionError",
    "ForEach",
    "Goto",
    "Hedge",
    "InputSchema",
    "Join",
    "LoadedWorkflow",
    "OutputRead",
    "Repeat",
    "Scope",
    "Select",
    "Sleep",
    "SleepUntil",
    "StepDefinition",
    "StepKind",
    "TaskRules",
    "Template",
    "WaitFor",
    "WorkflowDefinition",
    "WorkflowReference",
    "all_steps",
    "block_path",
    "called_agents",
    "canonical_form",
    "check_label_count",
    "child_workflows",
    "compensated_step",
    "compensation_name",
    "compile_workflow",
    "definition_from_canonical",
    "format_duration",
    "is_secret_name",
    "item_index",
    "item_name",
    "label_problem",
    "load_workflow",
    "output_reads",
    "parse_duration",
    "parse_item_name",
    "parse_label",
    "previous",
    "step_of_item",
    "workflow_json_schema",
    "write_yaml",
]
