"""
The templates of `publish`: what a caller's message becomes (`input`), what callers get in addition to the output
(`artifacts`), and what the response says in place of the task (`message`).

The input is made before the run exists, so it reads only the message. The others are read of a completed run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from msgspec import UNSET

from trunkline.jsontypes import Json
from trunkline.publish_options import PublishOptions
from trunkline.workflow.document.locations import Path
from trunkline.workflow.expressions import CelCompiler, ReadSites, Template, TemplateCompiler
from trunkline.workflow.expressions.interpolation import split_expressions
from trunkline.workflow.secret_references import refuse_secret_references
from trunkline.workflow.validation_report import ValidationReport

_RUN = "run"
# The keys of `run` that are known before there is one.
_READABLE = (("message",), ("correlation_id",))


class PublishTemplates(NamedTuple):
    # None: what a message becomes is derived from its parts and the input schema.
    input: Template | None = None
    # By name, in the order of the definition.
    artifacts: Mapping[str, Template] = {}
    message: Template | None = None


NO_TEMPLATES = PublishTemplates()


def compile_publish_templates(
    options: PublishOptions | None,
    engine: CelCompiler,
    compiler: TemplateCompiler,
    report: ValidationReport,
) -> PublishTemplates:
    if options is None:
        return NO_TEMPLATES
    made = None
    if options.input is not UNSET:
        path: Path = ("publish", "input")
        refuse_secret_references(options.input, path, report)
        made, sites = compiler.template(options.input, path)
        _refuse_what_is_not_there(options.input, path, sites, engine, report)
    artifacts: dict[str, Template] = {}
    for name, value in options.artifacts.items():
        path = ("publish", "artifacts", name)
        refuse_secret_references(value, path, report)
        artifacts[name], _ = compiler.template(value, path)
    message = None
    if options.message is not UNSET:
        path = ("publish", "message")
        refuse_secret_references(options.message, path, report)
        message, _ = compiler.template(options.message, path)
    return PublishTemplates(made, artifacts, message)


def published_values(options: PublishOptions | None) -> Iterator[tuple[str, Json]]:
    """What can read outputs of steps: where it stands, and what is written there."""
    if options is not None:
        for name, value in options.artifacts.items():
            yield f"publish.artifacts.{name}", value
        if options.message is not UNSET:
            yield "publish.message", options.message


def _refuse_what_is_not_there(
    value: Json, path: Path, sites: ReadSites, engine: CelCompiler, report: ValidationReport
) -> None:
    for name, site in sites.items():
        if name != _RUN:
            report.error(site.path, _too_early(name), excerpt=site.excerpt)
    if report.errors:
        return
    for text in _texts(value):
        for part in split_expressions(text):
            if isinstance(part, str):
                continue
            for read in engine.compile(part.text).reads_of_variables:
                if read.keys[:1] not in _READABLE:
                    what = ".".join((read.variable, *read.keys[:1]))
                    report.error(path, _too_early(what))


def _too_early(name: str) -> str:
    return f"the input of a message cannot read '{name}', because there is no run yet; use run.message"


def _texts(value: Json) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for item in value.values():
                yield from _texts(item)
        case list():
            for item in value:
                yield from _texts(item)
        case _:
            return
