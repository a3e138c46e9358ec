"""
What a zone says about itself: an OpenRPC document of its methods, and the JSON Schemas of what travels.

    /openrpc.json                  the methods, which refer to
    /schemas/METHOD.params.json    what a method's params must be
    /schemas/NAME.json             the contract's own messages, from the files next to this module
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import cast
from urllib.parse import quote

import jsonschema_rs

from trunkline import __version__
from trunkline.jsontypes import Json, JsonObject, decode, encode
from trunkline.zones.errors import MESSAGES

_OPENRPC = "1.3.2"
_ENDING = ".json"


@cache
def contract_schemas() -> Mapping[str, JsonObject]:
    """The contract's schemas by name, e.g. `request`."""
    folder = files("trunkline.zones") / "contract"
    return {
        file.name.removesuffix(_ENDING): cast("JsonObject", decode(file.read_bytes()))
        for file in folder.iterdir()
        if file.name.endswith(_ENDING)
    }


def contract_validator(name: str) -> jsonschema_rs.Validator:
    """What holds a message to the contract, e.g. to its `response`."""
    place = "https://zone.invalid/schemas/"
    schemas = [(f"{place}{each}{_ENDING}", schema) for each, schema in contract_schemas().items()]
    registry = jsonschema_rs.Registry(schemas)
    return jsonschema_rs.validator_for({"$ref": f"{place}{name}{_ENDING}"}, registry=registry, offline=True)


def documents(zone: str, methods: Mapping[str, JsonObject]) -> Mapping[str, bytes]:
    """A zone's documents by their paths; `methods` has the schema of each one's params."""
    params = {_params_name(method): schema for method, schema in methods.items()}
    schemas = {**params, **contract_schemas()}
    texts = {f"/schemas/{name}{_ENDING}": encode(schema) for name, schema in schemas.items()}
    return {**texts, "/openrpc.json": encode(_openrpc(zone, methods))}


def _openrpc(zone: str, methods: Mapping[str, JsonObject]) -> JsonObject:
    return {
        "openrpc": _OPENRPC,
        "info": {"title": zone, "version": __version__},
        "methods": [_method(name, schema) for name, schema in methods.items()],
    }


def _method(name: str, schema: JsonObject) -> JsonObject:
    properties, required = schema.get("properties"), schema.get("required")
    params: list[Json] = [
        {
            "name": param,
            "required": isinstance(required, list) and param in required,
            "schema": _reference(_params_name(name), f"/properties/{_pointed_at(param)}"),
        }
        for param in (properties if isinstance(properties, dict) else ())
    ]
    errors: list[Json] = [{"code": code, "message": message} for code, message in MESSAGES.items()]
    return {
        "name": name,
        "paramStructure": "by-name",
        "params": params,
        "x-params": _reference(_params_name(name)),
        "result": {"name": "result", "schema": _reference("result")},
        "errors": errors,
    }


def _params_name(method: str) -> str:
    return f"{method}.params"


def _reference(schema: str, pointer: str = "") -> JsonObject:
    # Relative to the document's own address, wherever the zone is mounted.
    return {"$ref": f"schemas/{quote(schema)}{_ENDING}" + (f"#{pointer}" if pointer else "")}


def _pointed_at(name: str) -> str:
    return quote(name.replace("~", "~0").replace("/", "~1"))
