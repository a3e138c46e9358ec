"""What a zone says about itself can be followed by a program, whatever its methods and params are called."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

import msgspec

from trunkline.jsontypes import Json, decode
from trunkline.zones import Zone
from trunkline.zones.documents import contract_schemas, contract_validator


class Task(msgspec.Struct):
    channel: str
    attachments: list[dict[str, str]] = []


class Tree(msgspec.Struct):
    children: list[Tree] = []


def example() -> Zone:
    zone = Zone("example")
    odd: dict[str, Json] = {"a/b": {"type": "string"}, "c~d": {}, "e f": {}, "ä%": {"const": 1}}
    zone.method("execute_task", params=Task)(str)
    zone.method("tree", params=Tree)(str)
    zone.method("tasks/send", params={"type": "object", "required": ["a/b"], "properties": odd})(str)
    zone.method("anything")(str)
    return zone


def document(zone: Zone, path: str) -> Any:
    text = zone.document(path)
    assert text is not None, path
    return decode(text)


def references(value: object) -> Iterator[str]:
    match value:
        case {"$ref": str(reference)}:
            yield reference
        case dict():
            for inner in value.values():  # pyright: ignore[reportUnknownVariableType] - JSON
                yield from references(inner)  # pyright: ignore[reportUnknownArgumentType]
        case list():
            for inner in value:  # pyright: ignore[reportUnknownVariableType] - as above
                yield from references(inner)  # pyright: ignore[reportUnknownArgumentType]
        case _:
            pass


def resolved(zone: Zone, reference: str) -> Json:
    path, _, pointer = reference.partition("#")
    found: Any = document(zone, f"/{unquote(path)}")
    for part in unquote(pointer).split("/")[1:]:
        found = found[part.replace("~1", "/").replace("~0", "~")]
    return found


def test_everything_that_is_referred_to_is_there() -> None:
    zone = example()
    found = list(references(document(zone, "/openrpc.json")))
    assert len(found) > 10
    for reference in found:
        assert isinstance(resolved(zone, reference), dict), reference


def test_every_method_is_described_with_its_params_by_name() -> None:
    methods = {method["name"]: method for method in document(example(), "/openrpc.json")["methods"]}
    assert list(methods) == ["execute_task", "tree", "tasks/send", "anything", "get_task_result"]
    for method in methods.values():
        assert method["paramStructure"] == "by-name"
        assert {error["code"] for error in method["errors"]} >= {
            -32700,
            -32600,
            -32601,
            -32602,
            -32603,
            -32001,
        }
    required = {param["name"]: param["required"] for param in methods["tasks/send"]["params"]}
    assert required == {"a/b": True, "c~d": False, "e f": False, "ä%": False}


def test_a_method_that_is_registered_later_is_in_the_documents_too() -> None:
    zone = example()
    assert zone.document("/schemas/later.params.json") is None
    zone.method("later")(str)
    assert document(zone, "/schemas/later.params.json") == {"type": "object"}


def test_a_types_schema_stands_for_itself() -> None:
    zone = example()
    assert "$defs" not in document(zone, "/schemas/execute_task.params.json")
    assert "$defs" in document(zone, "/schemas/tree.params.json")


def test_every_schema_of_the_contract_can_hold_a_message() -> None:
    for name in contract_schemas():
        contract_validator(name).is_valid({})
