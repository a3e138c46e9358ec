"""
Labels: short pairs of key and value by which runs are found.

What a label may be, how the labels of a definition are read, and what they become for a run. Keeping and finding
them is up to the stores.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from trunkline.errors import Finding, Invalid
from trunkline.jsontypes import Json
from trunkline.workflow.document.locations import Path
from trunkline.workflow.expressions import ExpressionError, ReadSites, Scope, Template, TemplateCompiler
from trunkline.workflow.field_reader import FieldReader, describe_value
from trunkline.workflow.secret_references import refuse_secret_references
from trunkline.workflow.validation_report import ValidationReport

# Each is a row of its own, written with the run.
MAX_LABELS = 20
MAX_LABEL_KEY = 63
MAX_LABEL_VALUE = 255
MAX_LABEL_EXPRESSION = 2_000
LABEL_KEY_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$"
# `key:value`, as a query and the command line have it.
LABEL_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}:[^\x00-\x1f\x7f]{1,255}$"
LABEL_KEY_RULE = "up to 63 letters, digits, '.', '_', '/' and '-', starting with a letter or a digit"

_KEY = re.compile(LABEL_KEY_PATTERN.removesuffix("$"))
# Half of a surrogate pair cannot be stored as UTF-8.
_UNFIT_IN_VALUE = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")


def parse_label(text: str) -> tuple[str, str]:
    """The key and the value of `key:value`; raises `ValueError`."""
    key, separator, value = text.partition(":")
    if not separator:
        raise ValueError(f"a label is written as key:value, but this is {text[:MAX_LABEL_VALUE]!r}")
    problem = label_problem(key, value)
    if problem is not None:
        raise ValueError(problem)
    return key, value


def label_problem(key: str, value: Json) -> str | None:
    """Why this cannot be a label."""
    if not _KEY.fullmatch(key):
        return f"invalid label key {key[:MAX_LABEL_KEY]!r}; use {LABEL_KEY_RULE}"
    if not isinstance(value, str):
        return f"the value of label '{key}' must be a string, {describe_value(value)}"
    if not 1 <= len(value) <= MAX_LABEL_VALUE:
        return f"the value of label '{key}' must have 1 to {MAX_LABEL_VALUE} characters, but it has {len(value):,}"
    if _UNFIT_IN_VALUE.search(value):
        return f"the value of label '{key}' must not contain control characters"
    return None


def check_label_count(labels: Mapping[str, str]) -> None:
    """Raises `Invalid`."""
    if len(labels) > MAX_LABELS:
        raise Invalid(
            f"A run can have {MAX_LABELS} labels, but these are {len(labels)}.",
            fix="Remove some of the labels. Those of the workflow definition count, too.",
        )


def read_labels(fields: FieldReader, report: ValidationReport) -> dict[str, str]:
    """Of a definition, as they are written: values can contain expressions."""
    written = fields.mapping("labels") or {}
    if len(written) > MAX_LABELS:
        fields.error("labels", f"'labels' has {len(written)} labels, more than {MAX_LABELS}; remove some")
        return {}
    labels: dict[str, str] = {}
    for key, value in written.items():
        path: Path = ("labels", key)
        if isinstance(value, str) and "${" in value and _KEY.fullmatch(key):
            problem = None
            if len(value) > MAX_LABEL_EXPRESSION:
                problem = f"the value of label '{key}' must have 1 to {MAX_LABEL_EXPRESSION:,} characters"
        else:
            problem = label_problem(key, value)
        if problem is None and isinstance(value, str):
            labels[key] = value
        else:
            refuse_secret_references(value, path, report)
            report.error(path, f"{problem}", on_key=not _KEY.fullmatch(key))
    return labels


def compile_labels(
    labels: Mapping[str, str], compiler: TemplateCompiler, report: ValidationReport
) -> dict[str, Template]:
    compiled: dict[str, Template] = {}
    for key, value in labels.items():
        path: Path = ("labels", key)
        compiled[key], sites = compiler.template(value, path)
        _refuse_steps(sites, path, report)
    return compiled


def _refuse_steps(sites: ReadSites, path: Path, report: ValidationReport) -> None:
    for name, site in sites.items():
        if name.startswith("steps"):
            message = f"a label cannot read '{name}', because labels are set before the first step; use input or run"
            report.error(path, message, excerpt=site.excerpt)


def evaluate_labels(templates: Mapping[str, Template], scope: Scope, workflow: str) -> dict[str, str]:
    """
    The labels of one run. A value that is null is left out; numbers and booleans become text.

    Raises `Invalid` if an expression fails, or if what it yields cannot be a label.
    """
    labels: dict[str, str] = {}
    findings: list[Finding] = []
    for key, template in templates.items():
        try:
            value = template.evaluate(scope)
        except ExpressionError as exc:
            findings.append(Finding(path=f"labels.{key}", message=str(exc)))
            continue
        if value is None:
            continue
        if isinstance(value, bool):
            value = "true" if value else "false"
        elif isinstance(value, int | float):
            value = str(value)
        problem = label_problem(key, value)
        if problem is None and isinstance(value, str):
            labels[key] = value
        else:
            findings.append(Finding(path=f"labels.{key}", message=f"{problem}"))
    if findings:
        raise Invalid(
            f"The labels of workflow {workflow} have no usable value for this run: "
            f"{findings[0].path}: {findings[0].message}.",
            findings=findings,
            fix=f"Change the run input, or the labels of the workflow: trunkline workflows show {workflow}.",
        )
    return labels
