"""
What of a caller's message becomes the run input. Of a message to a workflow, if `publish` has no `input` that says it:

    a data part that fits the input schema        its value; without a schema, the first data part
    otherwise the text                            {"text": …}, or the one required string property of the schema

The first of these that fits is taken. Expressions can read the whole message as `run.message` in any case.

An agent gets the message itself if its dialect has messages. The run input is for the others, and nothing of the
message is missing in it:

    text parts alone                              {"text": …}
    one data part alone                           its value
    anything else                                 {"text", "data", "parts", "metadata"}, each only where needed
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from trunkline.errors import Finding, Invalid
from trunkline.jsontypes import Json, JsonObject
from trunkline.messages import CallerMessage
from trunkline.workflow import CompiledWorkflow, ExpressionError

# Each is checked against the schema: a caller could otherwise keep the process busy with one message.
MAX_DATA_PARTS = 20
# Of a part: what is neither its text nor its data.
_MORE_THAN_CONTENT = frozenset({"raw", "url", "metadata", "filename", "mediaType"})


def workflow_input(message: CallerMessage, workflow: CompiledWorkflow, correlation_id: str) -> Json:
    """If nothing fits, the first candidate, for the error that says why. Raises `Invalid` if an expression fails."""
    template = workflow.publish.input
    if template is not None:
        scope: dict[str, Json] = {"run": {"correlation_id": correlation_id, "message": message.shown()}}
        try:
            return template.evaluate(scope.__getitem__)
        except ExpressionError as exc:
            raise Invalid(
                f"The message has no value for the input of workflow {workflow.definition.name}.",
                findings=[Finding(path="publish.input", message=str(exc))],
                fix="Send a message with what the expression reads, or change publish.input of the workflow.",
            ) from exc
    candidates = list(_candidates(message, workflow))
    return next((value for value in candidates if not workflow.check_input(value)), candidates[0])


def agent_input(message: CallerMessage) -> Json:
    """What an agent gets whose dialect has no messages."""
    plain = [part for part in message.parts if not part.keys() & _MORE_THAN_CONTENT]
    if len(plain) == len(message.parts) and not message.metadata:
        if all("text" in part for part in plain):
            return {"text": message.text}
        if len(plain) == 1 and "data" in plain[0]:
            return plain[0]["data"]
    data: list[Json] = [part["data"] for part in message.parts if "data" in part]
    given: JsonObject = {}
    if message.text:
        given["text"] = message.text
    if data:
        given["data"] = data[0] if len(data) == 1 else data
    if len(plain) < len(message.parts) or message.has_files:
        given["parts"] = [*message.parts]
    if message.metadata:
        given["metadata"] = message.metadata
    return given


def _candidates(message: CallerMessage, workflow: CompiledWorkflow) -> Iterator[Json]:
    data = (part["data"] for part in message.parts if "data" in part)
    yield from islice(data, MAX_DATA_PARTS)
    name = only_required_text(workflow.definition.input)
    if name is not None:
        yield {name: message.text}
    yield {"text": message.text}


def only_required_text(schema: Json) -> str | None:
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
