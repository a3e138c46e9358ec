"""Reading `publish`."""

from __future__ import annotations

import pytest

from trunkline.jsontypes import Json, JsonObject
from trunkline.publish_options import (
    DEFAULT_PUBLISH_OPTIONS,
    PublishFinding,
    PublishOptions,
    publish_options_to_json,
    read_publish_options,
)

SKILL: JsonObject = {"id": "a", "name": "A", "description": "Does a."}


@pytest.mark.parametrize("value", [None, False])
def test_nothing_is_published_unless_it_says_so(value: Json) -> None:
    assert read_publish_options(value) is None


@pytest.mark.parametrize("value", [True, {}, {"name": None}])
def test_the_defaults_can_be_asked_for(value: Json) -> None:
    assert read_publish_options(value) == DEFAULT_PUBLISH_OPTIONS


def test_options_come_back_as_they_were_given() -> None:
    given: JsonObject = {
        "name": "Tides",
        "skills": [{**SKILL, "tags": ["sea"]}],
        "streaming": False,
        "provider": {"organization": "O", "url": "https://o.example"},
        "security": "public",
        "input": {"q": "${ run.message.text }"},
        "artifacts": {"r": 1},
    }
    options = read_publish_options(given)
    assert isinstance(options, PublishOptions)
    assert publish_options_to_json(options) == given
    assert publish_options_to_json(DEFAULT_PUBLISH_OPTIONS) is True


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ("yes", ()),
        ({"nmae": "x"}, ()),
        ({"name": ""}, ("name",)),
        ({"security": "none"}, ("security",)),
        ({"documentation_url": "ftp://x"}, ("documentation_url",)),
        ({"skills": [SKILL, {"id": "b"}]}, ("skills",)),
        ({"skills": [SKILL, SKILL]}, ("skills",)),
        ({"input_modes": ["a/b"] * 101}, ("input_modes",)),
    ],
)
def test_a_mistake_says_where_it_is(value: Json, path: tuple[str, ...]) -> None:
    mistake = read_publish_options(value)
    assert isinstance(mistake, PublishFinding)
    assert tuple(mistake.path)[: len(path)] == path
