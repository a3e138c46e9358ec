"""
The OpenAPI document, as checked in: a change of the REST interface shows up in review.

Write the file again with: TRUNKLINE_WRITE_PUBLIC=1 pytest tests/public/test_openapi.py
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import jsonschema_rs
import msgspec
import pytest

from trunkline.api.roles import ROLES
from trunkline.jsontypes import Json, JsonObject, decode
from trunkline.testing import running_system

pytestmark = pytest.mark.anyio
FILE = Path(__file__).with_name("openapi.json")
# The descriptions themselves.
NOT_DESCRIBED = {"GET /openapi.json", "GET /asyncapi.json"}


@pytest.fixture
async def document(tmp_path: Path) -> JsonObject:
    async with running_system(tmp_path / "data") as system:
        return (await system.call("GET", "//openapi.json")).json


def checked_in() -> JsonObject:
    document = decode(FILE.read_bytes())
    assert isinstance(document, dict)
    return document


async def test_the_document_is_the_one_that_is_checked_in(document: JsonObject) -> None:
    if os.environ.get("TRUNKLINE_WRITE_PUBLIC"):
        FILE.write_bytes(msgspec.json.format(msgspec.json.encode(document, order="sorted"), indent=1) + b"\n")
    assert document == checked_in()


def objects_in(value: Json) -> Iterator[JsonObject]:
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from objects_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from objects_in(inner)


def operations() -> Iterator[tuple[str, JsonObject]]:
    paths = checked_in()["paths"]
    assert isinstance(paths, dict)
    for path, methods in paths.items():
        assert isinstance(methods, dict)
        for method, operation in methods.items():
            assert isinstance(operation, dict)
            yield f"{method.upper()} {path}", operation


def test_every_reference_leads_somewhere() -> None:
    document = checked_in()
    for found in objects_in(document):
        reference = found.get("$ref")
        if isinstance(reference, str):
            target: Json = document
            for part in reference.removeprefix("#/").split("/"):
                assert isinstance(target, dict), reference
                target = target[part]


def test_every_default_is_valid_and_no_required_field_has_one() -> None:
    document = checked_in()
    for found in objects_in(document):
        fields = found.get("properties")
        required = found.get("required")
        if isinstance(fields, dict) and isinstance(required, list):
            for name in required:
                field = fields.get(str(name))
                assert not (isinstance(field, dict) and "default" in field), (found.get("title"), name)
        # A property may itself be called "default".
        if "default" in found and found.keys() & {"type", "anyOf", "$ref", "enum"}:
            schema = {**found, "components": document["components"]}
            assert jsonschema_rs.validator_for(schema).is_valid(found["default"]), found


def test_every_failure_is_a_problem() -> None:
    for call, operation in operations():
        responses = operation["responses"]
        assert isinstance(responses, dict)
        assert "5XX" in responses, call
        for status, response in responses.items():
            assert isinstance(response, dict)
            if status[0] in "45":
                content = response["content"]
                assert isinstance(content, dict)
                # People read what a page for them answers.
                allowed = {"application/problem+json", *(("text/html",) if "/answer/" in call else ())}
                assert len(content) == 1, (call, status)
                assert set(content) <= allowed, (call, status)


def test_every_answer_has_its_correlation_id() -> None:
    for call, operation in operations():
        responses = operation["responses"]
        assert isinstance(responses, dict)
        for response in responses.values():
            assert isinstance(response, dict)
            headers = response["headers"]
            assert isinstance(headers, dict)
            assert "X-Correlation-ID" in headers, call


def test_every_operation_explains_itself() -> None:
    names = [str(operation["operationId"]) for _, operation in operations()]
    assert len(names) == len(set(names))
    assert all(operation["description"] and operation["tags"] for _, operation in operations())


def test_every_operation_has_a_role_and_every_role_an_operation() -> None:
    described = {call for call, _ in operations()}
    assert set(ROLES) - described == NOT_DESCRIBED
    assert described - set(ROLES) == set()
