"""The contract's JSON Schemas, and the examples of its document."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import jsonschema_rs
import pytest

from trunkline.jsontypes import Json, JsonObject, decode

DOCUMENT = Path(__file__).parents[3] / "docs" / "reference" / "zone-contract.md"
EXAMPLES = re.findall(r"```json\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)


def _schemas() -> dict[str, Json]:
    folder = files("trunkline.zones") / "contract"
    return {file.name: decode(file.read_bytes()) for file in folder.iterdir() if file.name.endswith(".json")}


SCHEMAS = _schemas()


def _validator(name: str) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(
        {"$ref": name}, registry=jsonschema_rs.Registry(list(SCHEMAS.items()))
    )


_REQUEST: JsonObject = {"jsonrpc": "2.0", "id": "a", "method": "execute_task", "params": {}}


def _answer(**members: Json) -> JsonObject:
    return {"jsonrpc": "2.0", "id": "a", **members}


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example_of_the_document_is_a_message_of_the_contract(example: str) -> None:
    message = decode(example)
    assert isinstance(message, dict)
    _validator("request.json" if "method" in message else "response.json").validate(message)


def test_the_document_shows_both_requests_and_every_kind_of_answer() -> None:
    assert [text in "".join(EXAMPLES) for text in ("execute_task", "get_task_result")] == [True, True]
    assert [text in "".join(EXAMPLES) for text in ('"success"', '"accepted"', '"error"')] == [True] * 3


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_valid_and_is_known_by_its_file_name(name: str) -> None:
    schema = SCHEMAS[name]
    assert isinstance(schema, dict)
    assert schema["$id"] == name
    jsonschema_rs.meta.validate(schema)


@pytest.mark.parametrize(
    "message",
    [
        pytest.param({"jsonrpc": "2.0", "method": "execute_task", "params": {}}, id="no id"),
        pytest.param({"jsonrpc": "2.0", "id": None, "method": "execute_task", "params": {}}, id="id null"),
        pytest.param({"jsonrpc": "2.0", "id": True, "method": "execute_task", "params": {}}, id="id true"),
        pytest.param({"jsonrpc": "1.0", "id": "a", "method": "execute_task", "params": {}}, id="version"),
        pytest.param({"jsonrpc": "2.0", "id": "a", "method": "rpc.discover", "params": {}}, id="reserved"),
        pytest.param({"jsonrpc": "2.0", "id": "a", "method": "execute_task", "params": []}, id="by position"),
        pytest.param({"jsonrpc": "2.0", "id": "a", "method": "execute_task"}, id="no params"),
        pytest.param([_REQUEST], id="batch"),
    ],
)
def test_what_is_no_request_of_the_contract_does_not_pass(message: Json) -> None:
    assert not _validator("request.json").is_valid(message)


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(_answer(), id="neither"),
        pytest.param(_answer(result={"status": "success"}, error={"code": 1, "message": ""}), id="both"),
        pytest.param(_answer(result={"status": "failed"}), id="a status for failure"),
        pytest.param(_answer(result={"status": "accepted"}), id="accepted without a task"),
        pytest.param(_answer(result="done"), id="no object"),
        pytest.param({"jsonrpc": "2.0", "id": None, "result": {"status": "success"}}, id="result without id"),
        pytest.param(_answer(error={"code": -32600, "message": "Invalid Request"}), id="-32600 with an id"),
        pytest.param(_answer(error={"code": -32700, "message": "Parse error"}), id="-32700 with an id"),
        pytest.param(_answer(error={"code": "1", "message": ""}), id="code is a text"),
        pytest.param(_answer(error={"code": 1, "message": "", "trace": []}), id="more in the error"),
        pytest.param({"id": "a", "result": {"status": "success"}}, id="no version"),
    ],
)
def test_what_is_no_answer_of_the_contract_does_not_pass(message: Json) -> None:
    assert not _validator("response.json").is_valid(message)
