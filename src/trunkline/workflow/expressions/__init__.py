"""The expression language of workflows: CEL in `${ … }`, and templates made of it."""

from __future__ import annotations

from trunkline.workflow.expressions.engine import Engine
from trunkline.workflow.expressions.errors import ExpressionError
from trunkline.workflow.expressions.paths import KEYWORDS, OF_LOOPS, Scope
from trunkline.workflow.expressions.template import ITEM, RUN_INPUT, Compiler, Condition, Sites, Template
from trunkline.workflow.expressions.text import bare_source

__all__ = [
    "ITEM",
    "KEYWORDS",
    "OF_LOOPS",
    "RUN_INPUT",
    "Compiler",
    "Condition",
    "Engine",
    "ExpressionError",
    "Scope",
    "Sites",
    "Template",
    "bare_source",
]
