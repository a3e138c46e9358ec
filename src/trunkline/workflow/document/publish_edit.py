"""The text of a workflow with another value of `publish`. Everything else stays as it was written, if possible."""

from __future__ import annotations

import json
import re

from trunkline.jsontypes import Json
from trunkline.workflow.document.parsing import read_document
from trunkline.workflow.document.yaml_writer import write_yaml

_KEY = "publish"
# The key at the beginning of a line, and the lines below it that are indented.
_BLOCK = re.compile(r"^publish[ \t]*:.*(?:\r?\n(?:[ \t].*)?)*", re.MULTILINE)


def with_publish(source: str, publish: Json) -> str:
    """None removes it. Raises `Invalid` if the text cannot be read."""
    before = read_document(source, "workflow").value
    definition = dict(before) if isinstance(before, dict) else {}
    definition.pop(_KEY, None)
    if publish is not None:
        definition[_KEY] = publish
    if source.removeprefix("\ufeff").lstrip().startswith("{"):
        return json.dumps(definition, indent=2, ensure_ascii=False) + "\n"
    edited = _edited(source, publish)
    # What the lines mean decides: a text may be written in a way that they do not show.
    if _value_of(edited) == definition:
        return edited
    return write_yaml(json.dumps(definition, ensure_ascii=False)) or json.dumps(definition)


def _edited(source: str, publish: Json) -> str:
    kept = _BLOCK.sub("", source, count=1).rstrip("\r\n") + "\n"
    # JSON is YAML, too.
    return kept if publish is None else f"{kept}{_KEY}: {json.dumps(publish, ensure_ascii=False)}\n"


def _value_of(text: str) -> Json:
    document = read_document(text, "workflow")
    return None if document.problems else document.value
