"""Profiles: which there are, how others are added, and what they say of params without repeating them."""

from __future__ import annotations

import pytest

from trunkline.errors import Finding
from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.protocols.zone.params_profiles import (
    InvalidProfile,
    find_profile,
    known_profiles,
    register_profile,
)

pytestmark = pytest.mark.usefixtures("own_profiles")

SECRET = "xoxb-very-secret"
MESSAGE: JsonObject = {"channel": "C1", "text": "hello", "bot_token": SECRET}


def without(*names: str) -> JsonObject:
    return {name: value for name, value in MESSAGE.items() if name not in names}


@pytest.mark.parametrize(
    "params",
    [
        MESSAGE,
        {**MESSAGE, "text": ""},
        {**MESSAGE, "correlation_id": "c", "thread_ts": "1.2", "team_id": "T", "user_id": "U"},
        {**MESSAGE, "attachments": [{}, {"id": "F1"}]},
        {**MESSAGE, "something_else": 1},
    ],
)
def test_a_chat_message_fits_the_slack_profile(params: Json) -> None:
    assert find_profile("slack").check(params) == []


@pytest.mark.parametrize(
    ("params", "path", "message"),
    [
        (without("channel"), "channel", "is required"),
        (without("text"), "text", "is required"),
        (without("bot_token"), "bot_token", "is required"),
        ({**MESSAGE, "channel": ""}, "channel", "the value is shorter than 1 character"),
        ({**MESSAGE, "text": None}, "text", 'the value is not of type "string"'),
        ({**MESSAGE, "bot_token": [SECRET]}, "bot_token", 'the value is not of type "string"'),
        (
            {**MESSAGE, "attachments": [{"id": "F1"}, SECRET]},
            "attachments[1]",
            'the value is not of type "object"',
        ),
        ([SECRET], "", "the params must be an object: they are passed by name"),
        (SECRET, "", "the params must be an object: they are passed by name"),
        (None, "", "the params must be an object: they are passed by name"),
    ],
)
def test_what_does_not_fit_is_named_and_not_quoted(params: Json, path: str, message: str) -> None:
    findings = find_profile("slack").check(params)
    assert findings == [Finding(path=path, message=message)]


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"const": 1}}},
        {"properties": {"a": {"enum": ["x"]}}},
        {"properties": {"a": {"pattern": "^[0-9]+$"}}},
        {"properties": {"a": {"maxLength": 2}}},
        {"properties": {"a": {"anyOf": [{"type": "null"}, {"maxLength": 1}]}}},
        {"properties": {"a": {"oneOf": [{"type": "null"}]}}},
        {"properties": {"a": {"not": {}}}},
        {"properties": {"a": False}},
        {"properties": {"b": {"uniqueItems": True}}},
        {"properties": {"b": {"items": {"type": "null"}}}},
        {"properties": {"b": {"contains": {"type": "null"}}}},
        {"properties": {"c": {"additionalProperties": {"type": "null"}}}},
        {"properties": {"a": {"format": "email"}}, "$schema": "http://json-schema.org/draft-07/schema#"},
        {"dependentSchemas": {"a": {"required": ["z"]}}},
    ],
    ids=lambda schema: encode(schema).decode(),
)
def test_no_kind_of_finding_quotes_a_value(schema: JsonObject) -> None:
    params: JsonObject = {"a": SECRET, "b": [SECRET, SECRET], "c": {"d": SECRET}}
    findings = find_profile(schema).check(params)
    assert findings
    assert SECRET not in encode(findings).decode()


def test_any_takes_every_object_and_nothing_else() -> None:
    profile = find_profile("any")
    assert profile.check({}) == []
    assert profile.check({"a": [1]}) == []
    assert [finding.message for finding in profile.check("x")] == [
        "the params must be an object: they are passed by name"
    ]


def test_a_profile_says_which_fields_it_knows() -> None:
    assert find_profile("slack").knows("correlation_id")
    assert not find_profile("any").knows("correlation_id")
    assert not find_profile({"properties": {"a": {}}}).knows("b")


def test_a_finding_for_each_field_but_never_thousands() -> None:
    profile = find_profile({"properties": {"a": {}}, "additionalProperties": False})
    unknown: JsonObject = {f"f{number}": 1 for number in range(1_000)}
    findings = profile.check(unknown)
    assert len(findings) == 20
    assert findings[0] == Finding(path="f0", message="is not allowed")


def test_a_pattern_cannot_hold_the_line_for_ever() -> None:
    profile = find_profile({"properties": {"a": {"pattern": r"^(a+)+\1$"}}})
    assert profile.check({"a": "a" * 5_000 + "!"})


def test_a_registered_profile_is_found_by_its_name() -> None:
    made = register_profile("invoice", {"required": ["number"]})
    assert find_profile("invoice") is made
    assert "invoice" in known_profiles()
    again = register_profile("invoice", {})
    assert find_profile("invoice") is again


@pytest.mark.parametrize("name", ["slack", "any"])
def test_a_shipped_profile_cannot_be_replaced(name: str) -> None:
    with pytest.raises(InvalidProfile, match="built-in profile"):
        register_profile(name, {})


@pytest.mark.parametrize("name", ["", "-a", "a b", "a/b", "../a", "ä", "x" * 65])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(InvalidProfile, match="not a valid profile name"):
        register_profile(name, {})


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "objekt"}, "type: the value is not valid"),
        ({"$ref": "https://example.org/schema.json"}, "Retrieval is disabled"),
        ({"$ref": "#/nowhere"}, "does not exist"),
        ({"properties": {"a": {"pattern": "("}}}, "properties.a.pattern"),
        ({"$schema": "https://example.org/mine"}, "Unknown meta-schema"),
    ],
)
def test_a_schema_that_is_none_is_refused_with_the_reason(schema: JsonObject, reason: str) -> None:
    with pytest.raises(InvalidProfile) as raised:
        find_profile(schema)
    assert raised.value.message.startswith("it is not valid JSON Schema: ")
    assert reason in raised.value.message


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        ("slak", "no profile is named 'slak'; did you mean 'slack'?"),
        ("zzz", "no profile is named 'zzz'; known here: slack, any"),
        (3, "it must be the name of a profile, or a JSON Schema object"),
        (None, "it must be the name of a profile, or a JSON Schema object"),
    ],
)
def test_an_unknown_profile_is_refused_with_the_known_ones(wanted: Json, reason: str) -> None:
    with pytest.raises(InvalidProfile) as raised:
        find_profile(wanted)
    assert raised.value.message == reason
