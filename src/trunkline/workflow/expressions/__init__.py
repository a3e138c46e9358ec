"""The expression language of workflows: CEL in `${ … }`, and templates made of it."""

from __future__ import annotations

from trunkline.workflow.expressions.cel_compiler import CelCompiler
from trunkline.workflow.expressions.errors import ExpressionError
from trunkline.workflow.expressions.interpolation import strip_delimiters
from trunkline.workflow.expressions.plain_paths import (
    EVENT_VARIABLES,
    FAILURE_VARIABLE,
    FOR_EACH_VARIABLES,
    KEYWORDS,
    ROUND_VARIABLE,
    Scope,
)
from trunkline.workflow.expressions.template import (
    ITEM,
    RUN_INPUT,
    Condition,
    FirstCompleted,
    ReadSites,
    Template,
    TemplateCompiler,
    previous,
    scope_template,
)

__all__ = [
    "EVENT_VARIABLES",
    "FAILURE_VARIABLE",
    "FOR_EACH_VARIABLES",
    "ITEM",
    "KEYWORDS",
    "ROUND_VARIABLE",
    "RUN_INPUT",
    "CelCompiler",
    "Condition",
    "ExpressionError",
    "FirstCompleted",
    "ReadSites",
    "Scope",
    "Template",
    "TemplateCompiler",
    "previous",
    "scope_template",
    "strip_delimiters",
]
