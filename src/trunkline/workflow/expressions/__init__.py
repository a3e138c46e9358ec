"""The expression language of workflows: CEL in `${ … }`, and templates made of it."""

from __future__ import annotations

from trunkline.workflow.expressions.engine import CelCompiler
from trunkline.workflow.expressions.errors import ExpressionError
from trunkline.workflow.expressions.paths import FOR_EACH_VARIABLES, KEYWORDS, Scope
from trunkline.workflow.expressions.template import (
    ITEM,
    RUN_INPUT,
    Condition,
    ReadSites,
    Template,
    TemplateCompiler,
)
from trunkline.workflow.expressions.text import strip_delimiters

__all__ = [
    "FOR_EACH_VARIABLES",
    "ITEM",
    "KEYWORDS",
    "RUN_INPUT",
    "CelCompiler",
    "Condition",
    "ExpressionError",
    "ReadSites",
    "Scope",
    "Template",
    "TemplateCompiler",
    "strip_delimiters",
]
