"""
Trigger files as a JSON Schema, for editors: completion, descriptions, and red lines while typing.

It is made of the request that saves a trigger. Cron expressions, time zones and CEL are checked at save.
"""

from __future__ import annotations

from typing import cast

import msgspec

from trunkline.api.resources.automation.triggers import TriggerRequest
from trunkline.jsontypes import JsonObject

# In the document of OpenAPI, any JSON is a schema of its own.
_INPUT: JsonObject = {
    "description": "Template of the run input. Strings can contain ${ … } with 'trigger', and with 'request', 'event' "
    "or 'run'.",
    "examples": [{"customer": "${ event.key }"}],
}
# A trigger has exactly one of them.
_SOURCES = ("schedule", "webhook", "event", "run")


def trigger_json_schema() -> JsonObject:
    (reference,), components = msgspec.json.schema_components([TriggerRequest], ref_template="#/$defs/{name}")
    definitions = cast("dict[str, JsonObject]", components)
    name = str(reference["$ref"]).removeprefix("#/$defs/")
    trigger = definitions.pop(name)
    properties = {**cast("JsonObject", trigger["properties"]), "input": _INPUT}
    return {
        **trigger,
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Trunkline trigger",
        "description": "What starts runs of a workflow: a schedule, a webhook, an event or the end of a run.",
        "oneOf": [{"required": [source]} for source in _SOURCES],
        "properties": {
            "$schema": {"type": "string", "description": "For editors. Trunkline ignores it."},
            **properties,
        },
        "$defs": {**definitions},
    }
