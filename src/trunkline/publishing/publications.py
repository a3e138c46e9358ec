"""
Publications: the workflows that callers can reach over A2A, found by the names in their addresses.

What of a message becomes the run input:

    a data part that fits the input schema        its value; without a schema, the first data part
    otherwise the text                            {"text": …}, or the one required string property of the schema

The first of these that fits is taken. Expressions can read the whole message as `run.message` in any case.

A publication is read for every request. The store and the compiled workflows are what is kept of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Literal

import msgspec

from trunkline.errors import NotFound
from trunkline.jsontypes import Json, encode
from trunkline.messages import CallerMessage
from trunkline.publish_options import PublishOptions, SkillOptions
from trunkline.services.workflows import Workflows
from trunkline.stores.base import WorkflowVersion
from trunkline.workflow import CompiledWorkflow

PublicationKind = Literal["workflows", "agents"]

_DEFAULT_MODES = ("text/plain", "application/json")
_MAX_EXAMPLES = 5
_MAX_EXAMPLE_BYTES = 2_000
# Each is checked against the schema: a caller could otherwise keep the process busy with one message.
MAX_DATA_PARTS = 20


class Publication(msgspec.Struct, frozen=True, kw_only=True):
    """What callers reach under one address."""

    kind: PublicationKind
    name: str
    options: PublishOptions
    # The version that a new task is a run of.
    saved: WorkflowVersion
    workflow: CompiledWorkflow

    @property
    def key(self) -> str:
        """Its name among all publications, as tasks have it."""
        return f"{self.kind}/{self.name}"

    @property
    def card_name(self) -> str:
        return self.options.name or self.name

    @property
    def description(self) -> str:
        said = self.options.description or self.workflow.definition.description
        return said or f"The workflow {self.name}."

    @property
    def version(self) -> str:
        return self.options.version or str(self.saved.version)

    @property
    def input_modes(self) -> tuple[str, ...]:
        return self.options.input_modes or _DEFAULT_MODES

    @property
    def output_modes(self) -> tuple[str, ...]:
        return self.options.output_modes or _DEFAULT_MODES

    @property
    def skills(self) -> tuple[SkillOptions, ...]:
        return self.options.skills or (self._skill(),)

    def _skill(self) -> SkillOptions:
        """The one that it has where none is given: itself."""
        identity = re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-") or "skill"
        return SkillOptions(
            id=identity,
            name=self.card_name,
            description=self.description,
            tags=(identity,),
            examples=self._examples(),
        )

    def _examples(self) -> tuple[str, ...]:
        """Those of the input schema: a text as it is, anything else as JSON."""
        listed = (self.workflow.definition.input or {}).get("examples")
        if not isinstance(listed, list):
            return ()
        texts = [example if isinstance(example, str) else encode(example).decode() for example in listed]
        return tuple(text for text in texts[:_MAX_EXAMPLES] if 0 < len(text) <= _MAX_EXAMPLE_BYTES)


class Publications:
    def __init__(self, workflows: Workflows) -> None:
        self._workflows = workflows

    async def find(self, kind: str, name: str) -> Publication | None:
        """None: nothing is published under that name."""
        if kind != "workflows":
            return None
        try:
            saved = await self._workflows.get(name)
        except NotFound:
            return None
        # An id finds a workflow as well, but is not part of an address.
        if saved.name != name:
            return None
        workflow = await self._workflows.compiled(saved.workflow_id, saved.version)
        options = workflow.definition.publish
        if options is None:
            return None
        return Publication(kind="workflows", name=name, options=options, saved=saved, workflow=workflow)


def run_input_of(message: CallerMessage, workflow: CompiledWorkflow) -> Json:
    """The run input. If nothing fits, the first candidate, for the error that says why."""
    candidates = list(_candidates(message, workflow))
    return next((value for value in candidates if not workflow.check_input(value)), candidates[0])


def _candidates(message: CallerMessage, workflow: CompiledWorkflow) -> Iterator[Json]:
    data = (part["data"] for part in message.parts if "data" in part)
    yield from islice(data, MAX_DATA_PARTS)
    name = _only_required_text(workflow.definition.input)
    if name is not None:
        yield {name: message.text}
    yield {"text": message.text}


def _only_required_text(schema: Json) -> str | None:
    """The property that a text is for: required, a string, and no other is required."""
    if not isinstance(schema, dict):
        return None
    required, properties = schema.get("required"), schema.get("properties")
    if not isinstance(required, list) or len(required) != 1 or not isinstance(properties, dict):
        return None
    name = required[0]
    if not isinstance(name, str):
        return None
    declared = properties.get(name)
    is_text = isinstance(declared, dict) and declared.get("type") == "string"
    return name if is_text else None
