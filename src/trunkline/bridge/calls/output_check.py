"""
Compares the outputs of agents with the schemas that steps have for them, before the result is reported.

Here and not in the machine: checking a large output takes time, which belongs on a thread and not into the transaction
that decides a run. What was found travels with the result, so the machine decides on facts.

The value that is checked is `output.data`, or the whole output where the agent's `output_mode` is `data`. If it does
not match, JSON inside of the answer's text takes its place, if that matches.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from trunkline.bridge.calls.embedded_json import embedded_values
from trunkline.jsontypes import Json, decode, encode
from trunkline.messages import AgentTask
from trunkline.services.workflows import Workflows
from trunkline.workflow import InputSchema

# With a small schema, a smaller output is checked within a few milliseconds.
_MAX_BYTES_ON_THE_LOOP = 4 * 1024
# A text that is longer is not searched: what an agent has written around it is not an answer any more.
_MAX_SEARCHED_CHARACTERS = 1024 * 1024
# Candidates that are compared with the schema.
_MAX_CANDIDATES = 10
MAX_REPORTED_ERRORS = 20

FOUND_IN_TEXT = "output.data was found inside the text of the answer"


class CheckedOutput(NamedTuple):
    output: bytes
    # Empty: it matches.
    errors: list[str]
    warnings: tuple[str, ...] = ()


class OutputChecks:
    def __init__(self, workflows: Workflows) -> None:
        self._workflows = workflows

    async def check(self, task: AgentTask, output: bytes, *, is_data: bool) -> CheckedOutput:
        """The output of a task that has `schema_of`; `is_data`: the agent's own object is the output."""
        if task.schema_of is None:
            return CheckedOutput(output, [])
        workflow = await self._workflows.compiled(*task.schema_of)
        schema = workflow.block(task.block).plan(task.step).output_schema
        if schema is None:
            return CheckedOutput(output, [])
        if schema.is_small and len(output) <= _MAX_BYTES_ON_THE_LOOP:
            return check_output(schema, output, is_data=is_data)
        return await asyncio.to_thread(check_output, schema, output, is_data=is_data)


def check_output(schema: InputSchema, output: bytes, *, is_data: bool) -> CheckedOutput:
    try:
        whole = decode(output)
    except (msgspec.DecodeError, ValueError, RecursionError) as exc:
        return CheckedOutput(output, [f"output cannot be read as JSON: {exc}"])
    fields = whole if isinstance(whole, dict) and not is_data else {}
    if is_data or "data" in fields:
        errors = _errors(schema, whole if is_data else fields["data"])
        if not errors:
            return CheckedOutput(output, [])
    else:
        errors = ["output.data is missing: the answer has no JSON"]
    for value in _candidates(whole, fields, is_data=is_data):
        if schema.accepts(value):
            found = encode(value if is_data else {**fields, "data": value})
            return CheckedOutput(found, [], (FOUND_IN_TEXT,))
    return CheckedOutput(output, errors)


def _errors(schema: InputSchema, value: Json) -> list[str]:
    return [f"{finding.path}: {finding.message}" for finding in schema.check(value)[:MAX_REPORTED_ERRORS]]


def _candidates(whole: Json, fields: dict[str, Json], *, is_data: bool) -> Iterator[Json]:
    """What the text of an answer may have meant; at last the text itself, for a schema that expects one."""
    texts = [whole] if is_data else [fields.get(name) for name in ("text", "response", "data")]
    known = list(dict.fromkeys(text for text in texts if isinstance(text, str)))
    for text in known:
        if len(text) <= _MAX_SEARCHED_CHARACTERS:
            for count, value in enumerate(embedded_values(text)):
                if count == _MAX_CANDIDATES:
                    break
                yield value
    if "data" not in fields:
        yield from known[:1]
