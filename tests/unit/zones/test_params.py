"""Params are held to a schema or a type, and a refusal names the field and never its value."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Literal, NotRequired, TypedDict

import msgspec
import pytest
from pydantic import BaseModel, field_validator

from trunkline.jsontypes import JsonObject
from trunkline.zones.errors import INVALID_PARAMS, ZoneFault
from trunkline.zones.params import MethodParams, ParamsForm

CANARY = "xoxb-canary"
SCHEMA: JsonObject = {
    "type": "object",
    "required": ["channel", "bot_token"],
    "properties": {
        "channel": {"type": "string", "pattern": "^C"},
        "bot_token": {"type": "string", "maxLength": 5},
        "kind": {"enum": ["a", "b"]},
        "attachments": {
            "type": "array",
            "items": {"type": "object", "required": ["name"]},
            "uniqueItems": True,
        },
    },
    "additionalProperties": False,
}


def fields_of(form: ParamsForm, params: JsonObject) -> dict[str, str]:
    with pytest.raises(ZoneFault) as caught:
        MethodParams(form).check(params)
    assert caught.value.code == INVALID_PARAMS
    fields = caught.value.data["fields"]
    assert isinstance(fields, list)
    found = msgspec.convert(fields, list[dict[str, str]])
    return {field["path"]: field["message"] for field in found}


def test_every_field_that_is_wrong_is_named_with_what_is_wrong() -> None:
    wrong: JsonObject = {"channel": 5, "kind": "c", "attachments": [{}, {"name": "x"}], "extra": 1}
    found = fields_of(SCHEMA, wrong)
    assert found["bot_token"] == "is required"
    assert found["attachments[0].name"] == "is required"
    assert found["extra"] == "is not allowed"
    assert "string" in found["channel"]
    assert set(found) == {"bot_token", "attachments[0].name", "extra", "channel", "kind"}


@pytest.mark.parametrize(
    "params",
    [
        {"channel": CANARY, "bot_token": CANARY},
        {"channel": "C", "bot_token": "x", "kind": CANARY},
        {"channel": "C", "bot_token": "x", "attachments": CANARY},
        {"channel": "C", "bot_token": "x", "attachments": [{"name": CANARY}, {"name": CANARY}]},
        {"channel": [CANARY], "bot_token": {"a": CANARY}},
    ],
)
def test_no_value_is_repeated(params: JsonObject) -> None:
    assert "canary" not in str(fields_of(SCHEMA, params))


def test_only_so_many_fields_are_named_and_long_names_are_cut() -> None:
    params: JsonObject = {"x" * 5_000 + str(number): 1 for number in range(1_000)}
    found = fields_of({**SCHEMA, "required": []}, params)
    assert len(str(found)) < 5_000


def test_right_params_come_as_they_are() -> None:
    params: JsonObject = {"channel": "C1", "bot_token": "x"}
    assert MethodParams(SCHEMA).check(params) is params
    assert MethodParams(None).check({"any": ["thing"]}) == {"any": ["thing"]}


def test_a_dict_is_a_type_too() -> None:
    assert MethodParams(dict).check({"any": ["thing"]}) == {"any": ["thing"]}
    assert MethodParams(dict[str, int]).check({"a": 1}) == {"a": 1}
    assert set(fields_of(dict[str, int], {"a": "b"})) == {"a"}


class Kind(Enum):
    A = "a"


class Struct(msgspec.Struct):
    channel: str
    count: Annotated[int, msgspec.Meta(ge=1)] = 1
    kind: Kind = Kind.A


@dataclass
class Plain:
    channel: str
    count: int = 1
    kind: Literal["a"] = "a"


class Typed(TypedDict):
    channel: str
    count: NotRequired[int]
    kind: NotRequired[Literal["a"]]


class Model(BaseModel):
    channel: str
    count: int = 1
    kind: Literal["a"] = "a"

    @field_validator("channel")
    @classmethod
    def _known(cls, value: str) -> str:
        if value == CANARY:
            raise ValueError(f"{value} is not a channel")
        return value


@pytest.mark.parametrize(
    ("form", "made"),
    [
        (Struct, Struct("C1", 2)),
        (Plain, Plain("C1", 2)),
        (Typed, {"channel": "C1", "count": 2}),
        (Model, Model(channel="C1", count=2)),
    ],
    ids=["struct", "dataclass", "typed_dict", "pydantic"],
)
def test_a_type_makes_an_instance(form: type[object], made: object) -> None:
    assert MethodParams(form).check({"channel": "C1", "count": 2}) == made


@pytest.mark.parametrize(
    "form", [Struct, Plain, Typed, Model], ids=["struct", "dataclass", "typed_dict", "pydantic"]
)
def test_a_type_is_held_to_its_schema_without_repeating_values(form: type[object]) -> None:
    found = fields_of(form, {"count": CANARY, "kind": CANARY})
    assert set(found) == {"channel", "count", "kind"}
    assert "canary" not in str(found)
    assert MethodParams(form).schema["properties"]


def test_what_a_models_own_rules_say_is_not_repeated() -> None:
    assert fields_of(Model, {"channel": CANARY}) == {"channel": "is not valid"}


class Even(msgspec.Struct):
    count: int

    def __post_init__(self) -> None:
        if self.count % 2:
            raise ValueError(f"{CANARY} {self.count}")


class Outer(msgspec.Struct):
    inner: list[Even]


def test_what_a_structs_own_rules_say_is_not_repeated() -> None:
    assert fields_of(Outer, {"inner": [{"count": 2}, {"count": 3}]}) == {"inner[1]": "is not valid"}
    assert fields_of(Even, {"count": 3}) == {"": "is not valid"}


class Tree(msgspec.Struct):
    name: str
    children: list[Tree] = []


def test_a_type_may_refer_to_itself() -> None:
    assert fields_of(Tree, {"name": "a", "children": [{"name": 1}]}).keys() == {"children[0].name"}


@pytest.mark.parametrize(
    "form", [int, "text", [], Kind, list[int]], ids=["int", "text", "list", "enum", "generic"]
)
def test_what_is_no_form_of_params_is_refused_when_it_is_registered(form: object) -> None:
    with pytest.raises(TypeError, match="params takes a JSON Schema"):
        MethodParams(form)  # pyright: ignore[reportArgumentType] - callers without a type checker may pass anything


@pytest.mark.parametrize(
    "schema",
    [{"type": "objekt"}, {"properties": 5}, {"$ref": "https://example.com/other.json"}, {"pattern": "("}],
    ids=["type", "properties", "elsewhere", "pattern"],
)
def test_a_schema_that_is_none_is_refused_when_it_is_registered(schema: JsonObject) -> None:
    with pytest.raises(ValueError, match="not a valid JSON Schema"):
        MethodParams(schema)
