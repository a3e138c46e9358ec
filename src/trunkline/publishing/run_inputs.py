"""
What of a caller's message becomes the run input. Of a message to a workflow:

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

from trunkline.jsontypes import Json, JsonObject
from trunkline.messages import CallerMessage
from trunkline.workflow import CompiledWorkflow

# Each is checked against the schema: a caller could otherwise keep the process busy with one message.
MAX_DATA_PARTS = 20
# Of a part: what is neither its text nor its data.
_MORE_THAN_CONTENT = frozenset({"raw", "url", "metadata", "filename", "mediaType"})


def workflow_input(message: CallerMessage, workflow: CompiledWorkflow) -> Json:
    """If nothing fits, the first candidate, for the error that says why."""
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
